"""What every agent promises. Subclass the contract, provide the agent, and run it with pytest.

    class TestMine(AgentContract):
        @asynccontextmanager
        async def make(self, play): yield MyAgent(...)   # an agent that follows the play

Each test's name is the promise. The tests use only the port, and import no test framework.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio

from windlass.core.events.model import Failure, Usage
from windlass.ports import Activity, Agent, Brief, Report
from windlass.testing.agents import Play

T = TypeVar("T")

PROMPT = "Task: 1.1\nRole: Player\nStart: 1\n\nDo it.\n"
USAGE = Usage(cost_usd=0.5, input_tokens=1234, output_tokens=56)
PROMPTLY = 2.0
"""Seconds within which a cancelled agent must end."""
TOO_LONG = 60.0


class AgentContract:
    """The promises. A subclass provides `make`, and `left_running` if it starts processes."""

    failures: Sequence[Failure] = (Failure.AUTH, Failure.TRANSIENT)
    """The failures that a play can produce with this agent."""

    def make(self, play: Play) -> AbstractAsyncContextManager[Agent]:
        """An agent that follows the play, whatever its brief."""
        raise NotImplementedError

    def left_running(self) -> Sequence[str]:
        """The processes of all agents so far that still run."""
        return ()

    def test_the_work_is_in_the_workspace(self, tmp_path: Path) -> None:
        """Files are written in the given workspace, with their folders."""
        play = Play(edits={"a.txt": "alpha\n", "deep/down/b.txt": "beta — ü\n"})
        report, _ = self._run(play, tmp_path)
        assert report.failure is None, report.message
        assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "alpha\n"
        assert (tmp_path / "deep/down/b.txt").read_text(encoding="utf-8") == "beta — ü\n"
        assert self.left_running() == ()

    def test_the_report_has_the_summary_and_what_it_cost(self, tmp_path: Path) -> None:
        """The last message is the summary; tokens are counted once, and the cost is known."""
        play = Play(edits={"a.txt": "x"}, summary="Wrote a.txt.", usage=USAGE)
        report, _ = self._run(play, tmp_path)
        assert report.failure is None, report.message
        assert report.summary == "Wrote a.txt."
        assert report.usage.input_tokens == USAGE.input_tokens
        assert report.usage.output_tokens == USAGE.output_tokens
        assert report.usage.cost_usd > 0
        assert report.usage.known

    def test_activity_streams_in_single_lines_of_its_task(self, tmp_path: Path) -> None:
        """Activity arrives while the agent works, in order."""
        _, seen = self._run(Play(edits={"one.txt": "1", "two.txt": "2"}), tmp_path)
        tools = [activity.text for activity in seen if activity.kind == "tool"]
        assert tools == ["Writing one.txt", "Writing two.txt"]
        assert all(activity.task == "1.1" for activity in seen)
        assert all(activity.text.isprintable() for activity in seen)

    def test_every_call_is_a_fresh_context(self, tmp_path: Path) -> None:
        """The second call knows nothing of the first: it does all the work again."""
        folders = [tmp_path / "first", tmp_path / "second"]

        async def twice(agent: Agent) -> None:
            for folder in folders:
                folder.mkdir()
                await agent.work(brief(), folder, ignore_activity)

        self._with(Play(edits={"a.txt": "x"}), twice)
        assert [(folder / "a.txt").exists() for folder in folders] == [True, True]

    def test_agents_work_side_by_side(self, tmp_path: Path) -> None:
        """One agent serves several calls at once, each in its own workspace."""
        folders = [tmp_path / "first", tmp_path / "second"]

        async def together(agent: Agent) -> None:
            async with anyio.create_task_group() as tasks:
                for folder in folders:
                    folder.mkdir()
                    tasks.start_soon(agent.work, brief(), folder, ignore_activity)

        self._with(Play(edits={"a.txt": "x"}), together)
        assert [(folder / "a.txt").exists() for folder in folders] == [True, True]
        assert self.left_running() == ()

    def test_a_failure_is_a_report_not_an_exception(self, tmp_path: Path) -> None:
        """Each failure is reported with its class and a message of one line."""
        for failure in self.failures:
            report, _ = self._run(Play(failure=failure, message="it failed"), tmp_path)
            assert report.failure is failure
            assert report.message
            assert report.message.isprintable()
        assert self.left_running() == ()

    def test_a_cancelled_call_ends_promptly_and_leaves_nothing(self, tmp_path: Path) -> None:
        """A cancelled call ends at once, and the files written so far stay."""
        took = self._with(
            Play(edits={"a.txt": "x"}, hangs=True), partial(cancel_when_busy, tmp_path)
        )
        assert took < PROMPTLY
        assert (tmp_path / "a.txt").exists()
        assert self.left_running() == ()

    def _run(self, play: Play, workspace: Path) -> tuple[Report, list[Activity]]:
        seen: list[Activity] = []

        async def once(agent: Agent) -> Report:
            with anyio.fail_after(TOO_LONG):
                return await agent.work(brief(), workspace, seen.append)

        return self._with(play, once), seen

    def _with(self, play: Play, use: Callable[[Agent], Awaitable[T]]) -> T:
        async def main() -> T:
            async with self.make(play) as agent:
                return await use(agent)

        return anyio.run(main)


def ignore_activity(_activity: Activity) -> None:
    """Watch nothing."""


def brief(model: str = "any") -> Brief:
    """The brief that every test uses."""
    return Brief(task="1.1", n=1, role="player", prompt=PROMPT, model=model)


async def cancel_when_busy(workspace: Path, agent: Agent) -> float:
    """Cancel a call when its first file is there; returns the seconds until it ended."""
    written = workspace / "a.txt"
    before = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.work, brief(), workspace, ignore_activity)
        with anyio.fail_after(TOO_LONG):
            while not written.exists():  # noqa: ASYNC110  a file sends no event
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
        before = anyio.current_time()
    return anyio.current_time() - before
