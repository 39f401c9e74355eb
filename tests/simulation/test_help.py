"""A person was needed and helps: while the run goes on, or before it is resumed."""  # K5

from pathlib import PurePath

import anyio.lowlevel
import pytest

from windlass.core.events import model as e
from windlass.core.exchange import Message
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.core.state import Phase
from windlass.ports import Brief, Report, Watch
from windlass.runner import loop
from windlass.testing.memory import Files, MemoryChecks
from worlds import NOON, World, plan_of, with_policy, writes

A, B, C = (Task(id=id_, title=id_) for id_ in "abc")
PLAYS = {id_: writes(id_, "1") for id_ in "abc"}
ASKING = with_policy(Settings(checks=("test",)), flaky="ask")


@pytest.fixture(autouse=True)
def _heard_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)


class Bare(MemoryChecks):
    """A machine that lacks what the checks of `a` need, until somebody installs it."""

    mended = False

    def _result(self, command: str, commit: str) -> e.CheckResult:
        if self.mended or "a" not in self.repository.files(commit):
            return super()._result(command, commit)
        absent = e.Absence.UNABLE_TO_START
        return e.CheckResult(command=command, outcome=e.Outcome.ABSENT, absence=absent)


def answered_while_c_is_played(world: World) -> list[Phase]:
    """Let somebody mend what `a` or `b` needs help with, and say so, while c's Player works."""
    work, asked = world.agent.work, list[Phase]()

    async def slow(brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        while brief.task == "c" and brief.role == "player" and not asked:
            await anyio.lowlevel.checkpoint()
            for task in world.runner.state.tasks.values():
                if task.question is not None:
                    asked.append(task.phase)
                    world.checks.mended = True
                    word = Message(command="answer", task=task.id, text="mended")
                    world.inbox.messages.append(word)
        while asked and not any(isinstance(event, e.Answered) for event in world.events):
            await anyio.lowlevel.checkpoint()
        return await work(brief, workspace, watch)

    world.agent.work = slow
    world.go()
    return asked


def test_an_answer_puts_a_task_back_into_the_merge_queue():
    together = iter((False, True, True))

    def rule(_command: str, files: Files) -> bool:
        return next(together, True) if {"a", "b"} <= files.keys() else True

    world = World(plan_of(A, B, C, dialect="feature"), PLAYS, rule=rule, settings=ASKING)
    assert answered_while_c_is_played(world) == [Phase.HELP_TO_MERGE]
    assert world.state.ended is e.RunEnd.COMPLETED, world.state.reason
    assert len(world.agent.calls) == 3, "nothing was played twice"


def test_a_check_that_could_not_start_is_tried_again_after_an_answer():
    world = World(plan_of(A, C, dialect="feature"), PLAYS)
    world.checks = Bare(world.repository, lambda _command, _files: True)
    assert answered_while_c_is_played(world) == [Phase.HELP_TO_CHECK]
    assert world.state.ended is e.RunEnd.COMPLETED, world.state.reason
    assert len(world.agent.calls) == 2, "nothing was played twice"


def test_a_flaky_check_is_asked_again_where_a_person_resumes():
    names = World(plan_of(A), PLAYS, settings=ASKING).go().names
    world = World(plan_of(A), PLAYS, settings=ASKING)
    world.go(crash_at=[i for i, name in enumerate(names, 1) if name == "checks:before"][1])
    begun = world.events[-1]
    assert isinstance(begun, e.ChecksStarted)

    def said(outcome: e.Outcome) -> e.ChecksFinished:
        result = e.CheckResult(command="test", outcome=outcome, exit_code=0)
        commit, tree = begun.commit, begun.tree
        return e.ChecksFinished(at=NOON, task="a", commit=commit, tree=tree, results=(result,))

    wavers = (said(e.Outcome.PASS), begun, said(e.Outcome.FAIL), begun, said(e.Outcome.FAIL))
    asked = e.HelpNeeded(at=NOON, task="a", question="flaky")
    world.journal.append((*wavers, asked), expected=len(world.events))
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED, world.state.reason
    assert len(world.agent.calls) == 1
