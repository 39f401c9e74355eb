"""Intents: effects to begin, each with all that it needs. Pure.

Law: an intent follows from the state and a recorded fact, and is not recorded itself. After a
crash the same facts give the same intents, so an effect may be started again: it finds the result
of its first try by its pins. No effect sees the state.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.excerpts import indented
from windlass.core.exchange import Authorship, StageWork
from windlass.core.plan import Task, digest_of
from windlass.core.plan.judges import judges
from windlass.core.plan.names import escaped
from windlass.core.scheduler.deliverables import work_of
from windlass.core.scheduler.evidence import criteria, doubted_checks, less_proven
from windlass.core.state import RunState, TaskState
from windlass.core.state.checks import task_checks
from windlass.core.state.quota import (
    coach_model,
    coach_model_source,
    player_model,
    player_model_source,
)
from windlass.core.state.work import attempts_of_work, base_of_work


class CheckBase(Struct, frozen=True, kw_only=True):
    """Run the project's checks on the run's base commit."""

    commit: str
    checks: tuple[str, ...]


class Play(Struct, frozen=True, kw_only=True):
    """Start a fresh Player in the task's workspace."""

    task: str
    n: int
    turn: int
    start: str
    onto: str | None
    begun_after: int
    """Starts up to this one belong to earlier work that was set aside."""
    spec: Task
    model: str
    model_source: str
    """What names the model: the task, a file or a variable; empty: an option, or the default."""
    criteria: tuple[str, ...]
    checks: tuple[str, ...]
    answers: tuple[str, ...]
    """People's answers to the task's questions."""
    feedback: str | None
    interrupted: bool
    """Whether the previous Player was interrupted and left partial work."""


class SaveWork(Struct, frozen=True, kw_only=True):
    """Commit the content of the workspace, and pin the commit."""

    author: Authorship
    kind: Literal["snapshot", "partial"]
    parents: tuple[str, ...]


class RunChecks(Struct, frozen=True, kw_only=True):
    """Run checks on a task's commit, or on a merge of it."""

    task: str
    commit: str
    tree: str
    checks: tuple[str, ...]
    log: str
    """The name of its log."""


class Review(Struct, frozen=True, kw_only=True):
    """Start a fresh Coach on exactly this commit."""

    task: str
    n: int
    k: int
    turn: int
    commit: str
    base: str
    """The commit to compare the change with."""
    is_tip: bool
    """Whether it is the tip itself, on which a scenario is tried."""
    earlier: str | None
    """The pin under which an earlier process may have left its verdict on this commit."""
    spec: Task
    model: str
    model_source: str
    may_run: bool
    """Whether the Coach may run commands."""
    criteria: tuple[str, ...]
    checks: tuple[tuple[str, str], ...]
    """Each check of the task with its result on this commit."""
    answers: tuple[str, ...]
    judging: tuple[str, ...]
    """Changed files that judge the work, each with the reason."""
    fewer: tuple[str, ...]
    """Checks that prove less than before, each with the reason."""
    doubted: tuple[str, ...]
    """The names of the same checks; an approval must have evidence about each."""
    uncounted: str
    """Why the last answer about this commit did not count; empty if there was none."""


class WaitUntil(Struct, frozen=True, kw_only=True):
    """Wait before the task's next agent starts."""

    task: str
    until: datetime


class BuildMerge(Struct, frozen=True, kw_only=True):
    """Merge a task's commit onto another, in memory, and pin the result."""

    author: Authorship
    candidate: int
    commit: str
    onto: str


class Merging(Struct, frozen=True, kw_only=True):
    """One task of the batch that the tip moves to."""

    task: str
    candidate: int
    commit: str


class MoveTip(Struct, frozen=True, kw_only=True):
    """Move the tip to the last merge of a batch."""

    tip: str
    commit: str
    batch: tuple[Merging, ...]


class ReleaseWorkspace(Struct, frozen=True, kw_only=True):
    """Release a merged task's workspace."""

    task: str


class LendWorkspace(Struct, frozen=True, kw_only=True):
    """Make the workspace for a task that a person has taken."""

    task: str
    n: int
    turn: int
    start: str
    onto: str | None
    begun_after: int


class VerifyTip(Struct, frozen=True, kw_only=True):
    """Run checks on the tip; after a stage, also verify the stage's commits and files."""

    commit: str
    tree: str
    checks: tuple[str, ...]
    stage: str | None
    work: StageWork | None


class LookAtBranch(Struct, frozen=True, kw_only=True):
    """Read where the base branch is."""

    branch: str
    tip: str


class BuildBaseMerge(Struct, frozen=True, kw_only=True):
    """Merge the tip onto a base branch that has moved, and pin the result."""

    author: Authorship
    candidate: int
    base: str
    tip: str


class Squash(Struct, frozen=True, kw_only=True):
    """Write one commit for each task onto the base branch's commit, and pin the last."""

    candidate: int
    base: str
    tip: str


class MoveBranch(Struct, frozen=True, kw_only=True):
    """Move the base branch, with its checkout."""

    branch: str
    old: str
    new: str


class LookAtPlan(Struct, frozen=True, kw_only=True):
    """Read the plan's files again, because the run is about to be complete."""


Intent: TypeAlias = (
    CheckBase
    | Play
    | SaveWork
    | RunChecks
    | Review
    | WaitUntil
    | BuildMerge
    | MoveTip
    | ReleaseWorkspace
    | LendWorkspace
    | VerifyTip
    | LookAtBranch
    | BuildBaseMerge
    | Squash
    | MoveBranch
    | LookAtPlan
)

DROPPABLE = (CheckBase, Play, RunChecks, Review, WaitUntil, VerifyTip)
"""A stop ends these at once; the others are short, and the stop waits for them."""


def intents_of(state: RunState, facts: Iterable[e.Event]) -> tuple[Intent, ...]:
    """The intents of these facts, given the state after them."""
    found = (_intent_of(state, fact) for fact in facts)
    return tuple(intent for intent in found if intent is not None)


def _intent_of(state: RunState, fact: e.Event) -> Intent | None:  # noqa: C901, PLR0912  one arm a fact
    match fact:
        case e.BaselineStarted():
            return CheckBase(commit=fact.commit, checks=fact.checks)
        case e.PlayerStarted():
            return _play(state, fact)
        case e.SnapshotStarted():
            return _save(state, fact)
        case e.ChecksStarted():
            return _check(state, fact)
        case e.CoachStarted():
            return _review(state, fact)
        case e.WaitStarted():
            return WaitUntil(task=fact.task, until=fact.until)
        case e.MergeStarted():
            author = _merge_authorship(state, fact.task)
            return BuildMerge(
                author=author, candidate=fact.candidate, commit=fact.commit, onto=fact.onto
            )
        case e.TipMoveStarted():
            return _move_tip(state, fact)
        case e.TaskMerged() | e.MergeStands():
            return ReleaseWorkspace(task=fact.task)
        case e.TaskTaken():
            return lent_workspace(state.tasks[fact.task])
        case e.VerificationStarted():
            work = work_of(state, fact.stage) if fact.stage is not None else None
            return VerifyTip(
                commit=fact.commit,
                tree=fact.tree,
                checks=fact.checks,
                stage=fact.stage,
                work=work,
            )
        case e.BaseLookStarted():
            return LookAtBranch(branch=fact.branch, tip=fact.tip)
        case e.BaseMergeStarted(squash=True):
            return Squash(candidate=fact.candidate, base=fact.base, tip=fact.tip)
        case e.BaseMergeStarted():
            author = Authorship(task="", title=state.plan.title, n=0, turn=0)
            return BuildBaseMerge(
                author=author, candidate=fact.candidate, base=fact.base, tip=fact.tip
            )
        case e.BranchMoveStarted():
            return MoveBranch(branch=fact.branch, old=fact.old, new=fact.new)
        case (
            e.RunStarted()
            | e.RunResumed()
            | e.RunRecovered()
            | e.RunEnded()
            | e.PlanRevised()
            | e.StopRequested()
            | e.SpendReserved()
            | e.SpendStreamed()
            | e.SpendSettled()
            | e.SpendRefused()
            | e.HostsAsked()
            | e.BaselineFinished()
            | e.VerificationFinished()
            | e.StagePassed()
            | e.StageRetried()
            | e.LandRequested()
            | e.BaseSeen()
            | e.BaseMergeBuilt()
            | e.BaseMergeConflicted()
            | e.Landed()
            | e.LandRefused()
            | e.TipTaken()
            | e.PlayerFinished()
            | e.PlayerFailed()
            | e.SnapshotTaken()
            | e.SnapshotRefused()
            | e.ChecksFinished()
            | e.CoachAnswered()
            | e.CoachFailed()
            | e.TurnReturned()
            | e.TaskApproved()
            | e.TaskAbandoned()
            | e.TaskAdopted()
            | e.TaskAccepted()
            | e.TaskReopened()
            | e.TaskReset()
            | e.TaskResetUndone()
            | e.RedoUndone()
            | e.HelpAwaited()
            | e.BaseAccepted()
            | e.TaskGiven()
            | e.HelpNeeded()
            | e.CheckpointPassed()
            | e.Answered()
            | e.TimerFired()
            | e.MergeBuilt()
            | e.MergeConflicted()
            | e.MergeSetAside()
        ):
            return None  # these announce no effect
        case _:
            assert_never(fact)


def lent_workspace(task: TaskState) -> LendWorkspace:
    attempt = task.last
    return LendWorkspace(
        task=task.id,
        n=attempt.n,
        turn=attempt.turn,
        start=attempt.start,
        onto=attempt.onto,
        begun_after=task.begun_after,
    )


def _play(state: RunState, fact: e.PlayerStarted) -> Play:
    task = state.tasks[fact.task]
    before = task.attempts[: fact.n - 1]
    return Play(
        task=fact.task,
        n=fact.n,
        turn=fact.turn,
        start=fact.start,
        onto=fact.onto,
        begun_after=task.begun_after,
        spec=state.specs[fact.task],
        model=player_model(state, fact.task),
        model_source=player_model_source(state, fact.task),
        criteria=criteria(state, fact.task),
        checks=task_checks(state, fact.task),
        answers=task.answers,
        feedback=task.feedback,
        interrupted=bool(before) and before[-1].failure is not None,
    )


def _save(state: RunState, fact: e.SnapshotStarted) -> SaveWork:
    attempt = state.tasks[fact.task].last
    parents = (attempt.start,) if attempt.onto is None else (attempt.start, attempt.onto)
    return SaveWork(author=_authorship(state, fact.task), kind=fact.kind, parents=parents)


def _check(state: RunState, fact: e.ChecksStarted) -> RunChecks:
    attempt = state.tasks[fact.task].last
    merging = "" if attempt.commit == fact.commit else "-merged"
    return RunChecks(
        task=fact.task,
        commit=fact.commit,
        tree=fact.tree,
        checks=fact.checks,
        log=f"{fact.task}-{attempt.n}{merging}",
    )


def _review(state: RunState, fact: e.CoachStarted) -> Review:
    spec, task = state.specs[fact.task], state.tasks[fact.task]
    results = state.evidence.get(task.last.tree or "", {})
    checks = task_checks(state, fact.task)
    return Review(
        task=fact.task,
        n=fact.n,
        k=fact.k,
        turn=task.last.turn,
        commit=fact.commit,
        base=base_of_work(task),
        is_tip=task.last.is_tip,
        earlier=_earlier_verdict(task, fact.commit),
        spec=spec,
        model=coach_model(state),
        model_source=coach_model_source(state),
        may_run=state.coach_commands,
        criteria=criteria(state, fact.task),
        checks=tuple(
            (each, _said(results[each]) if each in results else "not run") for each in checks
        ),
        answers=task.answers,
        judging=_judging(state, task, spec),
        fewer=tuple(
            f"`{escaped(short.command)}`: {escaped(short.reason)}"
            for short in less_proven(state, task)
        ),
        doubted=doubted_checks(state, task),
        uncounted=_uncounted(task),
    )


def _said(result: e.CheckResult) -> str:
    """The outcome of a check for the Coach; if it did not pass, with its output."""
    word = (result.absence or result.outcome).replace("_", " ")
    return "\n".join(filter(None, (word, indented(result.output))))


def _earlier_verdict(task: TaskState, commit: str) -> str | None:
    """The pin of a verdict that an earlier process paid for and did not record."""
    before = task.last.coachings[task.verdicts_before : -1]
    if not before or before[-1].commit != commit or before[-1].review is not None:
        return None
    return f"verdict-{before[-1].k}"


def _judging(state: RunState, task: TaskState, spec: Task) -> tuple[str, ...]:
    """Changed files that judge the work and are not among the task's files."""
    work = attempts_of_work(task)
    new = {path for attempt in work for path in attempt.created}
    changed = sorted({path for attempt in work for path in attempt.files} - set(spec.files))
    plan = {state.plan.path, *(each.path for each in state.plan.tasks)}
    kinds = {path: judges(path) or ("is the plan" if path in plan else "") for path in changed}
    return tuple(
        f"{escaped(path)} ({kind}; {'new' if path in new else 'changed or removed'})"
        for path, kind in kinds.items()
        if kind
    )


def _uncounted(task: TaskState) -> str:
    """Why the previous Coach's answer about the same commit did not count."""
    before = [each for each in task.last.coachings[:-1] if each.commit == task.last.commit]
    if not before or before[-1].failure is not e.Failure.INCONCLUSIVE:
        return ""
    return before[-1].message


def _move_tip(state: RunState, fact: e.TipMoveStarted) -> MoveTip:
    batch = (state.tasks[id_] for id_ in fact.tasks)
    return MoveTip(
        tip=fact.tip,
        commit=fact.commit,
        batch=tuple(
            Merging(task=task.id, candidate=task.candidate or 0, commit=task.candidate_commit or "")
            for task in batch
        ),
    )


def _authorship(state: RunState, task_id: str) -> Authorship:
    """For the snapshot of one turn: what its Player said."""
    attempt = state.tasks[task_id].last
    return Authorship(
        task=task_id,
        title=state.specs[task_id].title,
        n=attempt.n,
        turn=attempt.turn,
        by_person=attempt.by is not None,
        text=digest_of(state.specs[task_id]),
        summary=attempt.summary,
        by_agent=attempt.by is None,
    )


def _merge_authorship(state: RunState, task_id: str) -> Authorship:
    """For the merge of a task: what was said in each of its turns, the first turn first."""
    work = attempts_of_work(state.tasks[task_id])
    said = dict.fromkeys(attempt.summary.strip() for attempt in reversed(work))
    return replace(
        _authorship(state, task_id),
        summary="\n\n".join(filter(None, said)),
        by_agent=any(attempt.by is None for attempt in work),
    )
