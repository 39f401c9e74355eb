"""Short stories of what is rare, each told by the real machinery: what golden journals are made of.

Law: nobody writes a fact here. A run leads to it, or a command; and whoever says something is
heard, or the story is none.
"""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path, PurePath
from typing import TypeAlias

from msgspec.structs import replace

import plans
from desk import Desk
from quick import quick_run
from windlass.core.events import codec
from windlass.core.events import model as e
from windlass.core.events.values import Amount
from windlass.core.exchange import Message
from windlass.core.plan import Plan, Stage, Task, validated
from windlass.core.scheduler.people import spoken
from windlass.core.settings import SandboxSettings, Settings
from windlass.core.state import RunState
from windlass.core.state.budget import No
from windlass.ports import Ask, Brief, Report, Watch
from windlass.testing.agents import ScriptedAgent
from windlass.testing.memory import Crashed, Files, MemoryInbox, Play
from worlds import World, plan_of, with_policy, writes

A, B = (Task(id=id_, title=id_) for id_ in "ab")
CHECKED = Settings(checks=("test",))
PROVEN = Settings(checks=("true",))
"""Checks of a world in memory, and of a real one."""

Story: TypeAlias = Callable[[Path], list[bytes]]
"""Gives the records of its journal, byte by byte; it may use the folder as its own."""


def say(world: World, command: str, to: str, text: str = "") -> None:
    """As a person says it to a run that is at rest."""
    message = Message(command=command, task=to, text=text)
    facts = spoken(message, world.state, world.clock.now())
    assert facts, f"nothing has a use for {message}"
    world.journal.append(facts, expected=len(world.events))


def staged(*tasks: Task, last: Task) -> Plan:
    """A plan of a stage with these tasks, and another with the last."""
    first = tuple(Task(id=t.id, title=t.title, stage="1", creates=t.creates) for t in tasks)
    stages = (Stage(name="1"), Stage(name="2"))
    whole = (*first, Task(id=last.id, title=last.title, stage="2"))
    plan = Plan(id="p", title="P", dialect="feature", path="p.md", tasks=whole, stages=stages)
    return validated(plan)


def main_moves_on(world: World, **files: str) -> None:
    """A commit of the user's own onto their branch."""
    repository = world.repository
    main = repository.branches["main"]
    kept = {**repository.files(main), **files}
    repository.branches["main"] = repository._commit(kept, (main,), "mine")


def quarrel(_folder: Path) -> list[bytes]:
    """Two write one file, after one wrote what must not be committed; so does the user on main.

    What their stage promised nobody makes, not even when told; a person lets that pass.
    """

    def quarrels(n: int, _turn: int, files: dict[str, str]) -> None:
        files.pop("FORBIDDEN", None)
        files["FORBIDDEN" if n == 1 else "shared"] = str(n)

    a, c = Task(id="a", title="a", creates=("wanted",)), Task(id="c", title="c")
    plays = {"a": quarrels, "b": writes("shared", "b"), "c": writes("c", "1")}
    retrying = with_policy(Settings(checks=("test",), land=True), stage="retry")
    world = World(staged(a, B, last=c), plays, settings=retrying)
    main_moves_on(world, shared="mine")
    world.go()
    say(world, "approve", "1")
    world.go()
    return world.journal.storage


def stands(_folder: Path) -> list[bytes]:
    """A stage is done once more: one task makes what was missing, the other finds all in order."""

    def makes_it_when_told(_n: int, _turn: int, files: dict[str, str]) -> None:
        files["wanted" if "a" in files else "a"] = "1"

    a, c = Task(id="a", title="a", creates=("wanted",)), Task(id="c", title="c")
    plays = {"a": makes_it_when_told, "b": writes("b", "1"), "c": writes("c", "1")}
    world = World(staged(a, B, last=c), plays, settings=CHECKED)
    world.go()
    say(world, "retry", "1")
    world.go()
    return world.journal.storage


def set_aside(_folder: Path) -> list[bytes]:
    """Of three whose merges wait for each other two wrote one file."""

    def settles(id_: str) -> Play:
        def play(_n: int, _turn: int, files: dict[str, str]) -> None:
            theirs = [other for other in "bc" if other in files.get("shared", "")]
            files["shared"] = "".join(sorted({id_, *theirs}))

        return play

    tasks = tuple(Task(id=id_, title=id_) for id_ in "abc")
    plays = {"a": writes("a", "1"), "b": settles("b"), "c": settles("c")}
    world = World(plan_of(*tasks, dialect="feature"), plays, settings=CHECKED)
    world.go()
    return world.journal.storage


def dirty(_folder: Path) -> list[bytes]:
    """The user's checkout is in the way of the landing; then it is tidied up."""
    world = World(plan_of(A), {"a": writes("a", "1")}, settings=Settings(land=True))
    world.repository.dirty.add("main")
    world.go()
    world.repository.dirty.clear()
    world.go()
    return world.journal.storage


def thought_better(_folder: Path) -> list[bytes]:
    """A task was given up; a person has it begin anew, then rather go on with what there is."""

    def green(_command: str, files: Files) -> bool:
        return files.get("a", "GREEN") == "GREEN"

    plays = {"a": writes("a", "RED")}
    world = World(plan_of(A), plays, rule=green, settings=Settings(checks=("test",), max_turns=1))
    world.go()
    say(world, "reset", "a")
    say(world, "reset", "a", "undo")
    say(world, "retry", "a")
    plays["a"] = writes("a", "GREEN")
    world.go()
    return world.journal.storage


def at_the_terminal(_folder: Path) -> list[bytes]:
    """A person is present: they accept a red base, and take a retry back before it is merged."""
    red = Settings(checks=("test",))
    world = World(plan_of(A), {"a": writes("a", "1")}, rule=_only_with_a, settings=red)
    world.attended = True

    def accept(entry: e.Entry, _state: RunState) -> None:
        if isinstance(entry.event, e.HelpAwaited):
            world.inbox.messages.append(Message(command="accept_base", by="Ada"))

    world.observers.append(accept)
    world.go()
    say(world, "retry", "a")
    say(world, "retry", "a", "undo")
    return world.journal.storage


def _only_with_a(_command: str, files: Files) -> bool:
    return "a" in files


def by_hand(_folder: Path) -> list[bytes]:
    """A person takes a task of a live run, does it in its workspace, and hands it back."""
    take = Message(command="take", task="a", text="Ada")
    world = World(plan_of(A), {}, settings=CHECKED, inbox=MemoryInbox(take))
    world.go()
    world.repository.workspaces["a"]["a"] = "by hand"
    world.repository.commit_in("a", "Do it by hand")
    say(world, "give", "a", "I did it myself")
    world.go()
    return world.journal.storage


def adopted(folder: Path) -> list[bytes]:
    """Another tool did the first of two tasks: `windlass adopt` takes its word, as git has it."""
    desk, plan = _desk(folder)
    head = desk.git("rev-parse", "HEAD").strip()
    done = f'"completed_tasks": ["1.1"], "task_results": {{"1.1": {{"commit": "{head}"}}}}'
    desk.write("old_state.json", f'{{"milestone_id": "plan", "plan_path": "plan.md", {done}}}')
    _call(desk, "adopt", "old_state.json", "--yes")
    first = codec.decode(_records(plan)[0])
    assert isinstance(first, e.RunStarted)
    quick_run(desk.repo, ScriptedAgent({"1.2": {"b": "1"}}), run=first.run, settings=PROVEN)
    return _records(plan)


def recovered(folder: Path) -> list[bytes]:
    """Journal and mirror were deleted half-way; `windlass recover` tells it from the pins."""
    desk, plan = _desk(folder)
    lazy = ScriptedAgent({"1.1": {"a": "1"}}, default={})
    quick_run(desk.repo, lazy, settings=Settings(checks=PROVEN.checks, max_turns=1))
    for path in plan.glob("journal.db*"):
        path.unlink()
    desk.git("update-ref", "-d", "refs/windlass/plan/r1/journal")
    _call(desk, "recover", "plan.md")
    quick_run(desk.repo, ScriptedAgent({"1.2": {"b": "1"}}), settings=PROVEN)
    return _records(plan)


def refused(folder: Path) -> list[bytes]:
    """A check asks for a host that it may not reach."""
    desk, plan = _desk(folder)
    ask = "python3 -c 'import urllib.request as u; u.urlopen(\"http://example.org\")' || true"
    walled = Settings(checks=(ask,), sandbox=SandboxSettings(network=True))
    quick_run(desk.repo, ScriptedAgent({"1.1": {"a": "1"}, "1.2": {"b": "1"}}), settings=walled)
    return _records(plan)


def _desk(folder: Path) -> tuple[Desk, Path]:
    """A repository with a plan of two tasks, and where its journal lies."""
    desk = Desk(folder)
    desk.build({"plan.md": plans.plan_text({"1.1": (), "1.2": ("1.1",)})})
    return desk, desk.repo / ".windlass/plans/plan"


def _call(desk: Desk, *args: str) -> None:
    answer = desk.call(*args)
    assert answer.code == 0, answer.err


def _records(plan: Path) -> list[bytes]:
    with closing(sqlite3.connect(plan / "journal.db")) as db:
        return [payload for (payload,) in db.execute("SELECT payload FROM entries ORDER BY seq")]


def accepted(_folder: Path) -> list[bytes]:
    """A merged task is edited, and a person accepts it as it is."""
    cheap = Settings(checks=CHECKED.checks, max_cost=0.015)
    then = Task(id="b", title="b", depends_on=("a",))
    world = World(plan_of(A, then), {"a": writes("a", "1"), "b": writes("b", "1")}, settings=cheap)
    world.go()
    world.go(settings=CHECKED, revised=plan_of(Task(id="a", title="Another"), then))
    assert world.state.stale == ("a",)
    say(world, "approve", "a", "ada")
    world.go(settings=CHECKED)
    assert world.state.ended is e.RunEnd.COMPLETED
    return world.journal.storage


def short_of_money(_folder: Path) -> list[bytes]:
    """A request is answered, one is killed while it streams, and for the next too little is left.

    With more money the run goes on, and comes to its end.
    """
    cheap = Settings(checks=CHECKED.checks, max_cost=1.0)
    world = World(plan_of(A), {"a": writes("a", "1")}, settings=cheap)
    plays, sent = world.agent.work, list[str]()

    async def spends(brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        most, least = Amount(usd=0.8, tokens=900), Amount(usd=0.7, tokens=600)
        ask = Ask(task=brief.task, role=brief.role, model="m", most=most, least=least)
        held = world.runner.reserve(ask)
        if isinstance(held, No):
            return Report(failure=e.Failure.BUDGET, message="the run's own budget is used up")
        sent.append(held.id)
        usage = e.Usage(cost_usd=0.25, input_tokens=200, output_tokens=40)
        if len(sent) == 2:
            world.runner.stream(held.id, replace(usage, cost_usd=0.125, known=False))
            raise Crashed("while it streams")
        world.runner.settle(held.id, usage)
        return replace(await plays(brief, workspace, watch), usage=e.Usage())

    world.agent.work = spends
    world.go()
    world.go(settings=cheap)
    assert world.state.ended is e.RunEnd.LIMIT
    world.go(settings=CHECKED)
    assert world.state.ended is e.RunEnd.COMPLETED
    return world.journal.storage


STORIES: Mapping[Story, tuple[type[e.Event], ...]] = {
    accepted: (e.TaskAccepted,),
    quarrel: (e.SnapshotRefused, e.MergeConflicted, e.BaseMergeConflicted, e.StagePassed),
    stands: (e.StageRetried, e.TaskReopened, e.MergeStands, e.StagePassed),
    set_aside: (e.MergeConflicted, e.MergeSetAside),
    dirty: (e.BranchMoveStarted, e.LandRefused, e.Landed),
    thought_better: (e.TaskAbandoned, e.TaskReset, e.TaskResetUndone, e.TaskReopened),
    at_the_terminal: (e.HelpAwaited, e.BaseAccepted, e.TaskReopened, e.RedoUndone),
    by_hand: (e.TaskTaken, e.TaskGiven),
    adopted: (e.TaskAdopted,),
    recovered: (e.RunRecovered,),
    refused: (e.HostsAsked,),
    short_of_money: (e.SpendReserved, e.SpendStreamed, e.SpendSettled, e.SpendRefused),
}
"""Each with the kinds of facts that it is told for."""
