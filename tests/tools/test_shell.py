"""The shell tool, with real shells: output, background children, timeouts, interrupts."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from concorde_trio import ShellTool, ToolResult
from concorde_trio.errors import UsageError
from concorde_trio.testing.tool_context import FakeToolContext, tool_context
from tests.processes.census import PATH, Census, is_alive, until

pytestmark = pytest.mark.slow

LEFT_RUNNING = {
    "background": "sleep $LABEL &",
    "setsid": "setsid sleep $LABEL &",
    "double_fork": "(setsid sh -c 'sleep $LABEL & sleep $LABEL &' &) ; sleep 0.2",
    "nohup": "nohup sleep $LABEL >/dev/null 2>&1 &",
    "only_stderr_held": "sleep $LABEL >/dev/null </dev/null &",
    "respawning": "setsid sh -c 'while true; do sleep $LABEL; done' &",
}


def _no_pidfds(pid: int) -> int:
    raise OSError(errno.ENOSYS, "no such call")


def shell(census: Census, folder: Path, **options: object) -> ShellTool:
    return ShellTool(folder / "{session}", env=census.env, inherit=(), stop=[(15, 0.5)], **options)  # type: ignore[arg-type]


async def run(tool: ShellTool, context: FakeToolContext, command: str, **arguments: object) -> ToolResult:
    return await tool.call({"command": command, **arguments}, context.another())


async def test_both_streams_come_in_their_order_and_the_exit_status_is_last(census: Census, tmp_path: Path) -> None:
    """SES-8: in the session's own workspace, which is made; a status that is not 0 is an error."""
    tool = shell(census, tmp_path)
    async with tool_context(session="../Ann") as context:
        result = await run(tool, context, "echo one; echo two >&2; echo three; pwd; exit 3")
        assert result == ToolResult(f"one\ntwo\nthree\n{tmp_path}/=2e.=2f=41nn\n[exit status 3]", is_error=True)
        assert await run(tool, context, "true") == ToolResult("[exit status 0]")
        assert (await run(tool, context, "kill -9 $$")).text == "[killed by SIGKILL]"
        assert "command not found" in (await run(tool, context, "no-such-command")).text
        assert "syntax error" in (await run(tool, context, "if")).text
        assert (await run(tool, context, "cat; echo end")).text == "end\n[exit status 0]"
        assert context.leftovers == []


async def test_a_command_gets_no_variable_that_is_not_named(
    census: Census, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets of ours stay here; what the context has is there."""
    monkeypatch.setenv("SECRET_OF_OURS", "1")
    monkeypatch.setenv("WANTED", "2")
    tool = ShellTool(tmp_path, env={"MINE": "3"}, inherit=["WANTED"])
    async with tool_context(env={"AGENT_SERVER_URL": "http://x", "PATH": PATH}) as context:
        lines = (await run(tool, context, "env")).text.splitlines()
    names = {line.partition("=")[0] for line in lines[:-1]}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {"MINE", "WANTED", "AGENT_SERVER_URL", "PATH", "CONCORDE_RUN_ID"}
    assert any(line.startswith("CONCORDE_RUN_ID=tests.") for line in lines)


@pytest.mark.parametrize("way", LEFT_RUNNING)
async def test_a_command_returns_though_a_child_holds_its_pipes_and_the_child_is_listed(
    census: Census, tmp_path: Path, way: str
) -> None:
    """SES-8, F-30: at once, with what was printed; the child's end comes with the run's."""
    async with tool_context() as context:
        result = await run(shell(census, tmp_path), context, f"{LEFT_RUNNING[way]}\necho done")
        assert result.text.startswith("done\n[exit status 0]\n[left running: ")
        assert not result.is_error
        assert context.leftovers
        for work in context.leftovers:
            assert work.leftover.what == "process"
            assert str(work.leftover.number) in result.text
            assert is_alive(work.leftover.number)
            assert not work.is_over
        assert census.guards()
    assert all(work.is_over for work in context.leftovers)
    assert census.alive() == census.guards() == []


@pytest.mark.parametrize("pidfds", [True, False])
async def test_a_child_that_ends_by_itself_is_seen_to_end_and_nothing_is_kept(
    census: Census, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pidfds: bool
) -> None:
    """SES-8: listed until it is seen to end; then the guard goes too, before the run's end. Also on an old kernel."""
    if not pidfds:
        monkeypatch.setattr(os, "pidfd_open", _no_pidfds)
    async with tool_context() as context:
        await run(shell(census, tmp_path), context, "(while [ ! -e go ]; do sleep 0.01; done) & echo done")
        work = context.leftovers[0]
        assert not work.is_over
        (tmp_path / "test" / "go").touch()
        await work.over.wait()
        await until(lambda: not census.guards())


async def test_a_timeout_ends_the_whole_tree_and_gives_what_was_printed(census: Census, tmp_path: Path) -> None:
    """F-29: the loop of the shell's child too, and one that hears no signal."""
    deaf = "sh -c \"trap '' TERM; setsid sleep $LABEL & while true; do sleep $LABEL; done\"; true"
    async with tool_context() as context:
        result = await run(shell(census, tmp_path), context, f"echo before; {deaf}", timeout=1)
        assert census.alive() == census.guards() == []
        assert result.is_error
        assert result.text.startswith("before\n")
        assert "took longer than 1 s" in result.text
        assert context.leftovers == []


async def test_a_cancelled_call_ends_the_whole_tree_before_it_returns(census: Census, tmp_path: Path) -> None:
    """SES-8, SES-12, F-29: an interrupt, shielded and bounded."""
    begun = tmp_path / "test" / "begun"
    async with tool_context() as context:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(
                    run, shell(census, tmp_path), context, "setsid sleep $LABEL & touch begun; sleep $LABEL"
                )
                await until(begun.exists)
                scope.cancel()
        assert census.alive() == census.guards() == []
        assert context.leftovers == []


async def test_a_call_that_is_cancelled_at_any_step_leaves_nothing(census: Census, tmp_path: Path) -> None:
    """SES-8: at every place where it waits, also before anything was started."""
    tool = shell(census, tmp_path)
    for step in range(25):
        async with tool_context() as context:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(run, tool, context, "sleep $LABEL & sleep $LABEL")
                    for _ in range(step):
                        await trio.lowlevel.checkpoint()
                    if step > 20:
                        await trio.sleep(0.02 * (step - 20))
                    scope.cancel()
            assert census.alive() == census.guards() == []


async def test_the_end_of_the_run_ends_a_command_that_is_still_at_work(census: Census, tmp_path: Path) -> None:
    """SES-8: the kept part is cancelled, and the call says so."""
    results = []
    async with trio.open_nursery() as nursery, tool_context() as context:

        async def call() -> None:
            results.append(await run(shell(census, tmp_path), context, "touch begun; sleep $LABEL"))

        nursery.start_soon(call)
        await until((tmp_path / "test" / "begun").exists)
    assert results[0].is_error
    assert "the run is over" in results[0].text
    assert census.alive() == []


async def test_a_long_output_is_cut_and_all_of_it_is_in_a_file(census: Census, tmp_path: Path) -> None:
    """SES-14: written while it streams; the result names it."""
    tool = shell(census, tmp_path, max_output=2_000)
    async with tool_context(outputs=tmp_path / "outputs") as context:
        result = await run(tool, context, "seq 1 2000000; echo last")
        assert len(result.text) < 2_500
        assert result.text.startswith("1\n2\n")
        assert "last\n[the output was cut; all of it is in " in result.text
        assert result.path is not None
        assert Path(result.path).read_text() == "".join(f"{n}\n" for n in range(1, 2_000_001)) + "last\n"
        assert os.stat(result.path).st_mode & 0o777 == 0o600
        short = await run(tool, context, "seq 1 10")
        assert short.path is None
        assert len(list((tmp_path / "outputs").iterdir())) == 1


async def test_a_flood_fills_neither_memory_nor_disk_and_holds_up_nobody(census: Census, tmp_path: Path) -> None:
    """300 MB through a bound of 10 MB: other tasks get their turns, and the result says what there is."""
    tool = shell(census, tmp_path, max_file=10_000_000)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await trio.lowlevel.checkpoint()
            ticks += 1

    def memory() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    async with tool_context(outputs=tmp_path / "outputs") as context, trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        before = memory()
        result = await run(tool, context, "head -c 300000000 /dev/zero")
        assert memory() - before < 100_000_000
        nursery.cancel_scope.cancel()
    assert ticks > 1_000
    assert "its first 10,000,000 bytes are in" in result.text
    assert (tmp_path / "outputs").exists()
    assert [file.stat().st_size for file in (tmp_path / "outputs").iterdir()] == [10_000_000]


async def test_an_output_that_cannot_be_kept_is_said_and_the_command_goes_on(census: Census, tmp_path: Path) -> None:
    """A full or broken disk ends the file and not the command."""
    (tmp_path / "outputs").write_text("in the way")
    async with tool_context(outputs=tmp_path / "outputs") as context:
        result = await run(shell(census, tmp_path), context, "seq 1 100000; exit 4")
        assert result.path is None
        assert "all of it could not be kept in a file" in result.text
        assert result.text.endswith("[exit status 4]")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "missing required field `command`"),
        ({"command": ["ls"]}, "expected `str`, got `array` at command"),
        ({"command": "  "}, "it is empty"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "\ud800"}, "lone surrogate"),
        ({"command": "x" * 200_000}, "200,000 bytes"),
        ({"command": "ls", "timeout": 121}, "<= 120"),
        ({"command": "ls", "timeout": 0}, "> 0"),
    ],
)
async def test_arguments_that_cannot_be_run_are_error_results(
    census: Census, tmp_path: Path, arguments: dict[str, object], words: str
) -> None:
    """SES-13: nothing was started."""
    async with tool_context() as context:
        result = await shell(census, tmp_path).call(arguments, context)
        assert result.is_error
        assert words in result.text
        assert "not run" in result.text


async def test_a_workspace_that_cannot_be_made_is_an_error_result(census: Census, tmp_path: Path) -> None:
    """It names the folder."""
    (tmp_path / "test").write_text("in the way")
    async with tool_context() as context:
        result = await run(shell(census, tmp_path), context, "ls")
        assert result.is_error
        assert str(tmp_path / "test") in result.text


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ShellTool("work"), "absolute folder"),
        (lambda: ShellTool("/work/{user}"), "{session} only"),
        (lambda: ShellTool("/work", inherit="PATH"), "list of names"),
        (lambda: ShellTool("/work", env={"A=B": "x"}), "environment variable"),
        (lambda: ShellTool("/work", env={"CONCORDE_RUN_ID": "x"}), "CONCORDE_RUN_ID"),
        (lambda: ShellTool("/work", timeout=0), "seconds above 0"),
        (lambda: ShellTool("/work", name="a b"), "1 to 64"),
        (lambda: ShellTool("/work", shell="bash"), "absolute path"),
        (lambda: ShellTool("/work", max_output=1), "at least 1,000"),
        (lambda: ShellTool("/work", stop=[15]), "stop ladder"),  # type: ignore[list-item]
    ],
)
def test_what_can_never_be_right_is_refused_where_it_is_written(make: Callable[[], object], words: str) -> None:
    """A UsageError says what was expected."""
    with pytest.raises(UsageError) as caught:
        make()
    assert words in str(caught.value)
