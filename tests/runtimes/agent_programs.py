"""The real agent programs, where `make agents` has put them, and the settings that point each at a scripted model."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.processes.census import PATH

ROOT = Path(__file__).parents[2]
MODULES = ROOT / ".venv-npm" / "node_modules"


def program(path: str) -> str:
    """The absolute path of a program below node_modules; the test is skipped where it is not installed."""
    for needed in ("node", "curl"):
        if shutil.which(needed) is None:
            pytest.skip(f"there is no {needed} here, which the agent programs need")
    found = MODULES / path
    if not found.exists():
        pytest.skip(f"{path} is not installed; `make agents` installs the agent programs (npm, 1.2 GB)")
    return str(found)


def path() -> str:
    """A PATH with node in it."""
    return os.pathsep.join([os.path.dirname(shutil.which("node") or "/usr/bin/node"), PATH])


def pi_settings(folder: Path, url: str) -> dict[str, str]:
    """Settings of pi in ``folder``, and the environment that makes it use them."""
    folder.mkdir(parents=True, exist_ok=True)
    model = {"id": "fake-1", "contextWindow": 128000, "maxTokens": 4096}
    model["cost"] = {"input": 1, "output": 10, "cacheRead": 0.1, "cacheWrite": 0}  # type: ignore[assignment]
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "k", "models": [model]}
    (folder / "models.json").write_text(json.dumps({"providers": {"fake": provider}}))
    chosen = {
        "defaultProvider": "fake",
        "defaultModel": "fake-1",
        "enableInstallTelemetry": False,
        "quietStartup": True,
    }
    (folder / "settings.json").write_text(json.dumps(chosen))
    return {
        "PI_CODING_AGENT_DIR": str(folder),
        "PI_OFFLINE": "1",
        "PI_SKIP_VERSION_CHECK": "1",
        "PI_TELEMETRY": "0",
    }
