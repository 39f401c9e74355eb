"""What every agent promises. Subclass the contract, bring the agent, and run it with pytest.

    class TestMine(AgentContract):
        @asynccontextmanager
        async def make(self, play): yield MyAgent(...)   # which will do as the play says

Each test's name is the promise. Nothing but the port is used, and no test framework is imported.
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
"""Seconds within which a cancelled agent must be gone."""
TOO_LONG = 60.0


class AgentContract:
    """The promises; `make` is the subclass's to bring, and `remains` where it starts processes."""

    failures: Sequence[Failure] = (Failure.AUTH, Failure.TRANSIENT)
    """What the agent that `make` brings can be made to fail with."""

    def make(self, play: Play) -> AbstractAsyncContextManager[Agent]:
        """An agent that will do what the play says, whatever it is asked."""
        raise NotImplementedError

    def remains(self) -> Sequence[str]:
        """Whatever still runs of the agents made so far."""
        return ()

    def test_the_work_is_in_the_workspace(self, tmp_path: Path) -> None:
        """Files are written where the agent was told to work, folders and all."""
        play = Play(edits={"a.txt": "alpha\n", "deep/down/b.txt": "beta — ü\n"})
        report, _ = self._run(play, tmp_path)
        assert report.failure is None, report.message
        assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "alpha\n"
        assert (tmp_path / "deep/down/b.txt").read_text(encoding="utf-8") == "beta — ü\n"
        assert self.remains() == ()

    def test_the_report_has_the_summary_and_what_it_cost(self, tmp_path: Path) -> None:
        """The last thing said is the summary; tokens are counted once, and money is known."""
        play = Play(edits={"a.txt": "x"}, summary="Wrote a.txt.", usage=USAGE)
        report, _ = self._run(play, tmp_path)
        assert report.failure is None, report.message
        assert report.summary == "Wrote a.txt."
        assert report.usage.input_tokens == USAGE.input_tokens
        assert report.usage.output_tokens == USAGE.output_tokens
        assert report.usage.cost_usd > 0
        assert report.usage.known

    def test_activity_streams_in_single_lines_of_its_task(self, tmp_path: Path) -> None:
        """What the agent does shows while it does it, in the order it does it."""
        _, seen = self._run(Play(edits={"one.txt": "1", "two.txt": "2"}), tmp_path)
        tools = [activity.text for activity in seen if activity.kind == "tool"]
        assert tools == ["Writing one.txt", "Writing two.txt"]
        assert all(activity.task == "1.1" for activity in seen)
        assert all(activity.text.isprintable() for activity in seen)

    def test_every_call_is_a_fresh_context(self, tmp_path: Path) -> None:
        """The second call knows nothing of the first: it does the whole of the work again."""
        folders = [tmp_path / "first", tmp_path / "second"]

        async def twice(agent: Agent) -> None:
            for folder in folders:
                folder.mkdir()
                await agent.work(brief(), folder, unseen)

        self._with(Play(edits={"a.txt": "x"}), twice)
        assert [(folder / "a.txt").exists() for folder in folders] == [True, True]

    def test_agents_work_side_by_side(self, tmp_path: Path) -> None:
        """One agent serves several calls at once, each in its own workspace."""
        folders = [tmp_path / "first", tmp_path / "second"]

        async def together(agent: Agent) -> None:
            async with anyio.create_task_group() as tasks:
                for folder in folders:
                    folder.mkdir()
                    tasks.start_soon(agent.work, brief(), folder, unseen)

        self._with(Play(edits={"a.txt": "x"}), together)
        assert [(folder / "a.txt").exists() for folder in folders] == [True, True]
        assert self.remains() == ()

    def test_a_failure_is_a_report_not_an_exception(self, tmp_path: Path) -> None:
        """Each failure is told by its class, with a word for people, on one line."""
        for failure in self.failures:
            report, _ = self._run(Play(failure=failure, message="it failed"), tmp_path)
            assert report.failure is failure
            assert report.message
            assert report.message.isprintable()
        assert self.remains() == ()

    def test_a_cancelled_call_ends_promptly_and_leaves_nothing(self, tmp_path: Path) -> None:
        """Cancelling is heard at once, and what was written so far stays."""
        took = self._with(
            Play(edits={"a.txt": "x"}, hangs=True), partial(cancelled_once_busy, tmp_path)
        )
        assert took < PROMPTLY
        assert (tmp_path / "a.txt").exists()
        assert self.remains() == ()

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


def unseen(_activity: Activity) -> None:
    """Watch nothing."""


def brief(model: str = "any") -> Brief:
    """The same question every time."""
    return Brief(task="1.1", n=1, role="player", prompt=PROMPT, model=model)


async def cancelled_once_busy(workspace: Path, agent: Agent) -> float:
    """Cancel a call when its first file is there; return how long that took to be heard."""
    written = workspace / "a.txt"
    before = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.work, brief(), workspace, unseen)
        with anyio.fail_after(TOO_LONG):
            while not written.exists():  # noqa: ASYNC110 (a file tells nobody)
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
        before = anyio.current_time()
    return anyio.current_time() - before
