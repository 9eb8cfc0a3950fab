"""How a program is started, and what a person is told when it cannot be."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from pathlib import Path

import pytest
import trio
import trio.testing

from concorde_trio.errors import ProgramNotStarted, UsageError
from concorde_trio.processes.ending import Exit
from concorde_trio.processes.runner import open_program
from concorde_trio.processes.sweep import new_marker
from tests.processes.census import Census, python

pytestmark = pytest.mark.slow


async def run(
    argv: list[str], env: dict[str, str], cwd: str | Path = "/tmp", stdin: bytes | None = None
) -> tuple[Exit, str]:
    """How it ended, and what it printed on stdout."""
    async with open_program(argv, env=env, cwd=cwd, marker=new_marker("q"), stdin=stdin) as program:
        exit = await program.wait()
    return exit, program.stdout.text()


async def test_the_environment_has_what_is_named_and_the_marker(
    census: Census, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-6: it starts empty; the marker wins over what is named."""
    monkeypatch.setenv("A_SECRET_OF_THE_WORKER", "s3cret")
    marker = new_marker("q")
    async with open_program(
        ["/usr/bin/env"], env={"ONE": "1", "CONCORDE_RUN_ID": "x"}, cwd="/tmp", marker=marker
    ) as program:
        await program.wait()
    assert sorted(program.stdout.text().splitlines()) == [f"CONCORDE_RUN_ID={marker}", "ONE=1"]


async def test_arguments_and_environment_go_over_byte_for_byte(census: Census) -> None:
    """RUN-4: no shell, no splitting, no encoding of their own."""
    code = (
        "import os,sys,json; print(json.dumps([[os.fsencode(a).hex() for a in sys.argv[1:]], os.environb[b'V'].hex()]))"
    )
    odd = ["a b", "$(reboot)", "", "--", "日本", "\udcff\udcfe", "new\nline", "'\"\\"]
    exit, printed = await run([*python(code), *odd], {**census.env, "V": "x=\udc80\n"})
    assert exit.code == 0
    arguments, value = json.loads(printed)
    assert [os.fsdecode(bytes.fromhex(one)) for one in arguments] == odd
    assert bytes.fromhex(value) == b"x=\x80\n"


async def test_a_program_gets_its_three_streams_and_nothing_else(census: Census, tmp_path: Path) -> None:
    """REC-6: neither the guard's socket nor the programs lock."""
    async with open_program(
        ["sh", "-c", "ls -l /proc/self/fd"],
        env=census.env,
        cwd="/tmp",
        marker=new_marker("q"),
        programs_lock=tmp_path / "lock",
    ) as program:
        await program.wait()
    numbers = {line.split()[-3] for line in program.stdout.text().splitlines() if "->" in line}
    assert numbers == {"0", "1", "2", "3"}  # 3 is the folder that ls reads
    assert "socket" not in program.stdout.text()
    assert "lock" not in program.stdout.text()


async def test_a_program_starts_with_default_signals(census: Census) -> None:
    """REC-6: what the guard and Python ignore is not ignored by the program."""
    exit, printed = await run(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"], census.env)
    assert exit.code == 0
    of_the_c_library = 1 << 31 | 1 << 32  # its signals 32 and 33, which nobody can set
    assert [int(line.split()[1], 16) & ~of_the_c_library for line in printed.splitlines()] == [0, 0]
    exit, _ = await run(["sh", "-c", "kill -INT $$"], census.env)
    assert exit.signal == signal.SIGINT


async def test_stdin_is_the_text_and_then_its_end(census: Census) -> None:
    """RUN-4: the prompt on stdin, then EOF; without one, EOF at once."""
    assert (await run(["cat"], census.env, stdin=b"-n @file\0\xff"))[1].encode("utf-8", "replace")[:9] == b"-n @file\0"
    assert await run(["cat"], census.env) == (Exit(code=0, signal=None), "")


async def test_it_works_in_its_folder(census: Census, tmp_path: Path) -> None:
    """REC-6: and a relative program is looked for there."""
    (tmp_path / "tool").write_text("#!/bin/sh\npwd\n")
    (tmp_path / "tool").chmod(0o755)
    assert (await run(["./tool"], census.env, cwd=tmp_path))[1] == f"{tmp_path}\n"


async def refusal(argv: list[str], env: dict[str, str], cwd: str | Path = "/tmp") -> str:
    """What ProgramNotStarted says; its process has not been started."""
    with pytest.raises(ProgramNotStarted) as caught:
        async with open_program(argv, env=env, cwd=cwd, marker=new_marker("q")):
            raise AssertionError("it runs")
    return str(caught.value)


async def test_a_program_that_cannot_be_started_is_explained(census: Census, tmp_path: Path) -> None:
    """RUN-7: one sentence with the program in it, and what to do."""
    plain, orphan, text = tmp_path / "plain", tmp_path / "orphan", tmp_path / "text"
    plain.write_text("#!/bin/sh\n")
    orphan.write_text("#!/no/such/interpreter\n")
    text.write_text("just words")
    orphan.chmod(0o755)
    text.chmod(0o755)
    assert "in no folder of the PATH" in await refusal(["no-such-program"], census.env)
    assert "in no folder of the PATH" in await refusal(["no-such-program"], {})
    assert "no such file" in await refusal([str(tmp_path / "missing")], census.env)
    assert "may not be executed (chmod +x)" in await refusal([str(plain)], census.env)
    assert "may not be executed (chmod +x)" in await refusal(["plain"], {"PATH": f"/nowhere:{tmp_path}:/bin"})
    assert "the interpreter that its first line names is not" in await refusal([str(orphan)], census.env)
    assert "neither a program for this machine nor a script" in await refusal([str(text)], census.env)
    assert "too long; hand large texts over on stdin" in await refusal(["echo", "x" * 3_000_000], census.env)
    assert f"its folder '{tmp_path}/gone': No such file" in await refusal(["true"], census.env, tmp_path / "gone")
    assert f"its folder '{plain}': Not a directory" in await refusal(["true"], census.env, plain)
    for message in (
        await refusal(["no-such-program"], {"KEY": "s3cret"}),
        await refusal(["true"], {"KEY": "s3cret"}, plain),
    ):
        assert "s3cret" not in message


@pytest.mark.parametrize(
    ("argv", "env", "cwd", "ladder", "says"),
    [
        ("echo hi", {}, "/tmp", [], "list of at least one string"),
        ([], {}, "/tmp", [], "list of at least one string"),
        ([""], {}, "/tmp", [], "it is empty"),
        (["a\0b"], {}, "/tmp", [], "without NUL"),
        (["a", 1], {}, "/tmp", [], "without NUL"),
        (["a"], {"A=B": "x"}, "/tmp", [], "without '=' and NUL"),
        (["a"], {"A": "s3cret\0"}, "/tmp", [], "variable A must be"),
        (["a"], {}, "tmp", [], "must be an absolute folder"),
        (["a"], {}, "/tmp", [15], "a stop ladder is a list"),
        (["a"], {}, "/tmp", [(15, -1)], "a stop ladder is a list"),
        (["a"], {}, "/tmp", [(99, 1)], "a stop ladder is a list"),
    ],
)
async def test_misuse_is_refused_before_anything_starts(argv, env, cwd, ladder, says) -> None:  # type: ignore[no-untyped-def]
    """RUN-4: what can never be right fails where it was written."""
    with pytest.raises(UsageError, match=says) as caught:
        async with open_program(argv, env=env, cwd=cwd, marker=new_marker("q"), ladder=ladder):
            pass
    assert "s3cret" not in str(caught.value)


async def test_a_start_without_file_descriptors_is_a_plain_error(census: Census) -> None:
    """RUN-3: it fails that run alone, and leaks nothing."""
    import resource

    before = len(os.listdir("/proc/self/fd"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for spare in range(1, 9):
        resource.setrlimit(resource.RLIMIT_NOFILE, (before - 1 + spare, hard))
        try:
            with pytest.raises(ProgramNotStarted, match="Too many open files.*raise ulimit"):
                async with open_program(["true"], env=census.env, cwd="/tmp", marker=new_marker("q")):
                    pass
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with trio.fail_after(30):
        assert (await run(["true"], census.env))[0].code == 0
    assert len(os.listdir("/proc/self/fd")) == before


async def test_nothing_starts_while_another_holds_the_programs_lock_alone(census: Census, tmp_path: Path) -> None:
    """REC-6: a recovery that is looking whether all programs are dead; a cancelled wait leaves nothing."""
    path, ran = tmp_path / "lock", tmp_path / "ran"
    before = len(os.listdir("/proc/self/fd"))
    held = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)

    async def touch() -> None:
        async with open_program(
            ["touch", str(ran)], env=census.env, cwd="/tmp", marker=new_marker("q"), programs_lock=path
        ) as program:
            await program.wait()

    with trio.move_on_after(0.3) as scope:
        await touch()
    assert scope.cancelled_caught
    assert not ran.exists()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(touch)
        await trio.testing.wait_all_tasks_blocked()
        assert not ran.exists()
        os.close(held)
    assert ran.exists()
    assert len(os.listdir("/proc/self/fd")) == before
