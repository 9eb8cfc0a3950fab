"""The endpoint file: how a command finds a running worker."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from concorde_trio.server.endpoint import endpoint_path, read_endpoint, write_endpoint

URL = "http://127.0.0.1:4711"


def test_a_command_finds_a_gateway_while_it_serves_and_not_after(tmp_path: Path) -> None:
    """REC-1: the endpoint of a queue's one worker."""
    database = tmp_path / "q.db"
    assert read_endpoint(database) is None
    with write_endpoint(database, url=URL + "/", token="secret") as endpoint:
        assert read_endpoint(database) == endpoint
        assert (endpoint.url, endpoint.token, endpoint.pid) == (URL, "secret", os.getpid())
    assert read_endpoint(database) is None
    assert list(tmp_path.iterdir()) == []


def test_an_endpoint_file_is_readable_by_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    """SRV-6: the token is the operator's."""
    before = os.umask(0)
    try:
        with write_endpoint(tmp_path / "q.db", url=URL, token="secret"):
            assert stat.S_IMODE(endpoint_path(tmp_path / "q.db").stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_an_endpoint_never_shows_its_token_in_a_log(tmp_path: Path) -> None:
    """SRV-6: the token is the operator's."""
    with write_endpoint(tmp_path / "q.db", url=URL, token="secret") as endpoint:
        assert "secret" not in repr(endpoint)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"url": "http://127.0.0.1:1", "token": 3, "pid": 1, "started": 1}',
        b'{"url": "http://127.0.0.1:1", "token": "t", "pid": "x", "started": 1}',
        b"\xff\xfe",
    ],
)
def test_a_file_that_is_no_endpoint_is_ignored_even_while_it_is_locked(tmp_path: Path, content: bytes) -> None:
    """REC-1: no nonsense in that place stops a command."""
    import fcntl

    path = endpoint_path(tmp_path / "q.db")
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(content)
        file.flush()
        assert read_endpoint(tmp_path / "q.db") is None


def test_a_file_without_its_writer_is_stale_even_if_its_process_id_lives(tmp_path: Path) -> None:
    """REC-1: a lock tells of death, a process id can be somebody else's by now."""
    path = endpoint_path(tmp_path / "q.db")
    path.write_text(json.dumps({"url": URL, "token": "t", "pid": os.getpid(), "started": 1.0}))
    assert read_endpoint(tmp_path / "q.db") is None


def test_an_earlier_gateway_that_ends_late_leaves_the_file_of_a_later_one(tmp_path: Path) -> None:
    """REC-1: whoever leaves removes what is its own."""
    database = tmp_path / "q.db"
    first = write_endpoint(database, url=URL, token="first")
    first.__enter__()
    with write_endpoint(database, url=URL, token="second") as second:
        first.__exit__(None, None, None)
        assert read_endpoint(database) == second
    assert list(tmp_path.iterdir()) == []


def test_a_database_reached_by_a_link_has_the_same_endpoint(tmp_path: Path) -> None:
    """REC-1: one queue is one file, whatever it is called."""
    real = tmp_path / "real.db"
    real.touch()
    link = tmp_path / "link.db"
    link.symlink_to(real)
    with write_endpoint(link, url=URL, token="t") as endpoint:
        assert read_endpoint(real) == endpoint


def test_a_folder_that_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    """SRV-6: no half endpoint."""
    with pytest.raises(OSError), write_endpoint(tmp_path / "missing" / "q.db", url=URL, token="t"):
        raise AssertionError("entered")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_endpoint_of_a_killed_process_is_ignored_at_once(tmp_path: Path) -> None:
    """REC-1: the system lets go of the lock on death."""
    database = tmp_path / "q.db"
    program = (
        "import sys; from concorde_trio.server.endpoint import write_endpoint\n"
        "with write_endpoint(sys.argv[1], url='http://127.0.0.1:1', token='t'):\n"
        "    print('serving', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"serving\n"
        found = read_endpoint(database)
        assert found is not None and found.pid == process.pid
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert endpoint_path(database).exists()
        assert read_endpoint(database) is None


def test_reading_an_endpoint_imports_nothing_of_the_web() -> None:
    """The command line reads it in every command, so it must be light."""
    program = (
        "import sys, concorde_trio.server.endpoint\n"
        "print([name for name in ('quart', 'hypercorn', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
