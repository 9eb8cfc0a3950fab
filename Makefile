# Everything here needs Python 3.11 or later and make, and nothing else: the first target that needs packages makes
# $(VENV) by itself. `make` alone says what there is.

PYTHON ?= $(shell for python in python3.11 python3; do $$python -c '' 2>/dev/null && { echo $$python; exit; }; done)
VENV ?= .venv
ARGS ?=

BIN := $(VENV)/bin
# Two rounds of tests read the same files: what pytest made of them in the first is worth keeping.
unexport PYTHONDONTWRITEBYTECODE
PACKAGE := concorde_trio
# flake8-async reads two files a second, so it gets those that have something asynchronous in them and have changed
# since it last found nothing.
ASYNC_FILES = $(shell grep -rlE --include='*.py' 'async (def|with|for)' $(PACKAGE) | while read -r file; do \
	test "$$file" -ot $(VENV)/.async-checked || echo "$$file"; done)
# Left out: 113, 114 and 128 want every startable function listed; 123 and 124 are against things done on purpose
# (unwrapping a group to its cause, RUN-3; an async method that a protocol asks for).
ASYNC_RULES := --enable ASYNC1,ASYNC2,ASYNC3 --disable ASYNC113,ASYNC114,ASYNC123,ASYNC124,ASYNC128

# The agent programs in the versions that the recipes were tried with; all of them run on Node 20.
AGENTS := @mariozechner/pi-coding-agent@0.73.1 @openai/codex@0.171.0 @anthropic-ai/claude-code@2.1.197 opencode-ai@1.18.33

.DEFAULT_GOAL := help
.PHONY: help demo test check fast slow soak bench agents rules site dist clean

help: ## this list
	@echo "make TARGET [PYTHON=python3.13] [VENV=.venv] [ARGS=...]"
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: $(VENV)/.for-use ## a household of agents at work, live; ARGS=--keep leaves it serving
	@trap : INT; $(BIN)/concorde-trio demo $(ARGS) || test $$? -eq 130

test: $(VENV)/.for-tests ## check, fast and slow
	@start=$$(date +%s) && \
	$(MAKE) --no-print-directory check && $(MAKE) --no-print-directory fast && $(MAKE) --no-print-directory slow && \
	echo "== test: all passed in $$(($$(date +%s) - start)) s"

check: $(VENV)/.for-tests ## ruff, mypy, flake8-async, import-linter
	@set -e; start=$$(date +%s); \
	$(BIN)/ruff check --quiet .; \
	$(BIN)/ruff format --quiet --check .; \
	$(BIN)/lint-imports --no-logo > $(VENV)/lint-imports.txt || { cat $(VENV)/lint-imports.txt; exit 1; }; \
	$(BIN)/mypy; \
	echo $(ASYNC_FILES) | xargs -r -n 12 -P 2 $(BIN)/flake8-async $(ASYNC_RULES); \
	touch -d "@$$start" $(VENV)/.async-checked; \
	echo "== check: passed in $$(($$(date +%s) - start)) s"

fast: $(VENV)/.for-tests ## the tests that need no real processes, sockets or time
	@start=$$(date +%s) && $(BIN)/python -m pytest -q -n 2 -m "not slow" $(ARGS) && \
	echo "== fast: passed in $$(($$(date +%s) - start)) s"

slow: $(VENV)/.for-tests ## the tests with real processes, sockets, signals and kill -9
	@start=$$(date +%s) && $(BIN)/python -m pytest -q -n 3 --dist loadfile -m slow --durations=5 $(ARGS) && \
	echo "== slow: passed in $$(($$(date +%s) - start)) s"

soak: $(VENV)/.for-tests ## the same for much longer: 200 kills, ten minutes of faults in a fleet, thousands of examples
	@KILLS=$${KILLS:-200} FLEET_SECONDS=$${FLEET_SECONDS:-600} HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -q --timeout=3600 $(ARGS)

bench: $(VENV)/.for-bench ## measure everything, peers too, for docs/performance.md; or what ARGS say
	@$(BIN)/python -m benchmarks $(or $(ARGS),--publish)

agents: ## install the agent programs that slow tests drive (npm, 1.2 GB); without it those tests are skipped
	@npm install --prefix .venv-npm --no-save --no-audit --no-fund --ignore-scripts $(AGENTS)

rules: $(VENV)/.for-tests ## write docs/rules.md anew from docs/rules.toml and the tests
	@$(BIN)/python -m tests.docs.rules --write

site: $(VENV)/.for-tests ## the documentation as a site in build/site, without the network
	@$(BIN)/python -m docs.site $(ARGS)

dist: $(VENV)/.for-tests ## a wheel and an sdist in dist/
	@$(BIN)/hatchling build

clean: ## remove what the other targets made
	rm -rf .venv .venv-* dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# The stamps of a virtual environment: installed for use, for the benchmarks, for tests too.
$(VENV)/.for-use: pyproject.toml
	@VENV=$(VENV) PYTHON=$(PYTHON) sh .ci/venv "$@" .

$(VENV)/.for-bench: pyproject.toml
	@VENV=$(VENV) PYTHON=$(PYTHON) sh .ci/venv "$@" ".[bench]"
	@touch $(VENV)/.for-use

$(VENV)/.for-tests: pyproject.toml
	@VENV=$(VENV) PYTHON=$(PYTHON) sh .ci/venv "$@" ".[test,check,openai,anthropic,mcp,postgres,schedule,docs]" ".[browser]"
	@touch $(VENV)/.for-use
	@rm -f $(VENV)/.async-checked
