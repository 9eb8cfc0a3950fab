"""What ``from concorde_trio import`` gives."""

from __future__ import annotations

import subprocess
import sys

import concorde_trio


def test_every_public_name_is_there_and_nothing_else_is_promised() -> None:
    """The design's public names: each can be imported, and is what its home calls so."""
    for name in concorde_trio.__all__:
        assert getattr(concorde_trio, name).__name__ == name
    assert sorted(concorde_trio._HOMES) == sorted(concorde_trio.__all__)


def test_importing_the_package_imports_no_other_library() -> None:
    """A name's home is imported when the name is used, so that a small command starts fast."""
    code = "import sys, concorde_trio; print(sorted({'trio', 'quart', 'jinja2', 'attrs'} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_everything_can_be_looked_at_without_an_extra() -> None:
    """The package is read by help() and editors, on a machine that has no psycopg too."""
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "import inspect, concorde_trio\n"
        "names = {name for name, _ in inspect.getmembers(concorde_trio)}\n"
        "print(sorted(set(concorde_trio._HOMES) - names))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "['PostgresStore']"


def test_a_star_gives_everything_but_what_needs_an_extra_that_is_not_there() -> None:
    """And whoever asks for that by its name is told what to install."""
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from concorde_trio import *\n"
        "import concorde_trio\n"
        "print(sorted(set(concorde_trio._HOMES) - set(globals())))\n"
        "try: concorde_trio.PostgresStore\n"
        "except ImportError as error: print(error)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    missing, told = printed.splitlines()
    assert missing == "['PostgresStore']"
    assert "pip install 'concorde-trio[postgres]'" in told
