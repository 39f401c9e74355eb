"""The log of a run: a line for each fact that a person wants to know.

Law: every fact has an arm here, even if it prints nothing, so that a new one is not forgotten.
"""

from datetime import UTC, datetime, tzinfo
from typing import TypeAlias, assert_never

from windlass.core.events import model as e
from windlass.core.events.landing import LandEvent
from windlass.core.events.review import Review
from windlass.core.state import RunState, TaskState
from windlass.core.state.selection import blocked
from windlass.core.state.stretches import task_seconds, turn_seconds
from windlass.views.activity import quota, unreached, wait_line
from windlass.views.cost import column, task_cost
from windlass.views.lines import (
    ALL,
    Line,
    Room,
    failure_lines,
    flaky,
    harmless_line,
    hosts_setting,
    listed_hosts,
    must_fix,
    not_passed,
    room_for,
    tally,
    warnings,
)
from windlass.views.outcome import STALE_BECAUSE, check_lines
from windlass.views.progress import turns_allowed
from windlass.views.times import moment
from windlass.views.tree import position, verified
from windlass.views.words import one_line, plural, tokens

# fmt: off
WORDS = (
    "ABANDONED", "ABORT", "ACCEPTED", "ADOPTED", "AGAIN", "ANSWER", "BASE", "CHECKS", "COACH",
    "CONFLICT", "DONE", "E2E", "FAILED", "GIVEN", "GO", "LAND", "LANDED", "LIMIT", "NEEDS YOU",
    "NETWORK", "NOT MOVED", "PAUSE", "PLAN", "PLAYER", "RECOVERED", "RESET", "RESUME", "RETURNED",
    "STAGE", "STALE", "START", "STOP", "STOPPED", "TAKEN", "VERIFY", "WAIT",
)
# fmt: on
"""Every word that a line of the log can begin with."""

_RESTS = {
    "stop": ("STOP", "the agents' work so far is kept"),
    "pause": ("PAUSE", "turns that have started finish first"),
    "pause_now": ("PAUSE", "the agents' work so far is kept"),
    "abort": ("ABORT", "the run is aborted; its work stays pinned"),
}

_OfRun: TypeAlias = (
    e.RunStarted
    | e.RunResumed
    | e.RunRecovered
    | e.PlanRevised
    | e.HostsAsked
    | e.HelpAwaited
    | e.BaseAccepted
    | e.StopRequested
    | e.SpendReserved
    | e.SpendStreamed
    | e.SpendSettled
    | e.SpendRefused
    | e.RunEnded
)
_OfTurn: TypeAlias = (
    e.TipTaken
    | e.PlayerStarted
    | e.PlayerFinished
    | e.PlayerFailed
    | e.SnapshotStarted
    | e.SnapshotTaken
    | e.SnapshotRefused
    | e.ChecksStarted
    | e.ChecksFinished
    | e.CoachStarted
    | e.CoachAnswered
    | e.CoachFailed
    | e.TurnReturned
    | e.TaskApproved
    | e.TaskAbandoned
    | e.HelpNeeded
    | e.WaitStarted
    | e.TimerFired
)
_OfPeople: TypeAlias = (
    e.TaskAdopted
    | e.TaskAccepted
    | e.TaskReopened
    | e.CheckpointPassed
    | e.Answered
    | e.TaskReset
    | e.TaskResetUndone
    | e.RedoUndone
    | e.TaskTaken
    | e.TaskGiven
)
_OfMerge: TypeAlias = (
    e.MergeStarted
    | e.MergeBuilt
    | e.MergeConflicted
    | e.MergeSetAside
    | e.MergeStands
    | e.TaskMerged
)
_OfChecks: TypeAlias = (
    e.BaselineStarted
    | e.BaselineFinished
    | e.VerificationStarted
    | e.VerificationFinished
    | e.StagePassed
    | e.StageRetried
)


def line_of(
    event: e.Event, state: RunState, zone: tzinfo = UTC, *, whole: bool = False
) -> Line | None:
    """The line for an event, given the state after it; None if there is nothing to show.

    `whole`: with all of each text, as the log has it; else a screen shows a few lines of it.
    """
    if isinstance(event, e.BatchEvent):
        return None
    room = ALL if whole else room_for(state, getattr(event, "task", ""))
    if isinstance(event, LandEvent):
        line = _of_landing(event, room)
    elif isinstance(event, _OfChecks):
        line = _of_checks(event, state, room)
    elif isinstance(event, _OfRun):
        line = _of_run(event, state)
    elif isinstance(event, _OfPeople):
        line = _of_people(event, state, room)
    elif isinstance(event, _OfMerge):
        line = _of_merge(event, state, room)
    else:
        line = _of_turn(event, state, room, zone)
    return None if line is None else harmless_line(line)


def _of_run(event: _OfRun, state: RunState) -> Line | None:  # noqa: C901  one arm a fact
    match event:
        case e.RunStarted():
            return Line(
                "START",
                f"{state.plan.title} · {plural(len(state.tasks), 'task')}"
                f" · run {event.run} · from {event.base[:10]} · sandbox {event.sandbox}",
                warnings(state),
            )
        case e.RunResumed():
            found = verified(state, event.found)
            lines = ("Verified:", *(f"- {line}" for line in found)) if found else ()
            return Line("RESUME", _resumed(state), (*lines, *warnings(state)))
        case e.RunRecovered():
            return Line("RECOVERED", "everything before this was restored from git", event.notes)
        case e.PlanRevised():
            stale = (f"{id_} is stale: {STALE_BECAUSE}" for id_ in state.stale)
            text = "the plan was edited; the run continues with the new text"
            return Line("PLAN", text, tuple(stale))
        case e.HostsAsked():
            return _of_hosts(event)
        case e.HelpAwaited():
            return Line("WAIT", f"nothing else can continue: {one_line(event.reason, 200)}")
        case e.BaseAccepted():
            return Line("GO", f"on the red base · accepted by {one_line(event.by, 60)}")
        case e.StopRequested():
            word, what = _RESTS[event.how]
            return Line(word, f"asked by {event.by}; {what}")
        case e.SpendReserved() | e.SpendStreamed() | e.SpendSettled() | e.SpendRefused():
            return None  # the footer shows the sum
        case e.RunEnded():
            return None  # `closing` prints the last lines
        case _:
            assert_never(event)


def _of_hosts(event: e.HostsAsked) -> Line:
    who = " ".join(part for part in (event.task, event.role) if part)
    if event.refused:
        allow = f"to allow: {hosts_setting(event.refused)}"
        return Line("NETWORK", f"{who} was refused {listed_hosts(event.refused)}", (allow,))
    reached = listed_hosts(event.reached)
    return Line("NETWORK", f"{who} reached {reached}; this run's agents may too")


def _of_checks(event: _OfChecks, state: RunState, room: Room) -> Line | None:
    match event:
        case e.BaselineStarted():
            text = f"running {plural(len(event.checks), 'check')} on the base"
            return Line("BASE", text) if event.checks else None
        case e.BaselineFinished():
            line = Line("BASE", tally(event.results), not_passed(event.results, room))
            return line if event.results else None
        case e.VerificationStarted():
            checks = plural(len(event.checks), "check")
            if event.stage is None:
                return Line("VERIFY", f"running {checks} on the tip")
            return Line("VERIFY", f"stage {one_line(event.stage, 60)} is done: {checks}, its files")
        case e.VerificationFinished():
            named = flaky(state, event.tree, event.results)
            details = (*not_passed(event.results, room), *named, *event.problems)
            text = tally(event.results) or ("problems found" if details else "no problems")
            return Line("VERIFY", text, details)
        case e.StagePassed():
            why = "" if event.by == "verification" else f" · approved by {event.by}"
            return Line("STAGE", f"{one_line(event.stage, 60)} passed{why}")
        case e.StageRetried():
            return Line("AGAIN", f"stage {one_line(event.stage, 60)} · requested by {event.by}")
        case _:
            assert_never(event)


def _of_landing(event: LandEvent, room: Room) -> Line | None:
    match event:
        case e.BaseSeen():
            text = f"{event.branch} has moved to {event.commit[:10]}; merging with it"
            return Line("LAND", text) if event.relation == "apart" else None
        case e.BaseMergeStarted():
            text = f"one commit for each task, onto {event.base[:10]}"
            return Line("LAND", text) if event.squash else None
        case e.BaseMergeConflicted():
            return Line("CONFLICT", f"with the base: {', '.join(event.files[:5])}")
        case e.Landed():
            return Line("LANDED", f"{event.branch} is now at {event.commit[:10]}")
        case e.LandRefused():
            return Line("NOT MOVED", event.branch or "the base", room.prose(event.reason))
        case e.LandRequested() | e.BaseLookStarted() | e.BaseMergeBuilt() | e.BranchMoveStarted():
            return None
        case _:
            assert_never(event)


def _resumed(state: RunState) -> str:
    merged = len(state.done)
    left = merged < len(state.tasks)
    going_on = f"Resuming from {position(state)}..." if left else "Nothing is left to do."
    return f"{going_on} {merged} of {plural(len(state.tasks), 'task')} merged · run {state.run}"


def _of_turn(  # noqa: C901, PLR0912  one arm a fact
    event: _OfTurn, state: RunState, room: Room, zone: tzinfo
) -> Line | None:
    name = _name(event.task, state)
    match event:
        case e.TipTaken():
            return Line("E2E", f"{name} · everything is merged: tried on {event.commit[:10]}")
        case e.PlayerStarted():
            again = " · settling a conflict" if event.onto is not None else ""
            limit = turns_allowed(state, state.tasks[event.task])
            return Line("PLAYER", f"{name} · turn {event.turn}/{limit}{again}")
        case e.ChecksStarted():
            checks = plural(len(event.checks), "check")
            return Line("CHECKS", f"{name} · {checks} on {event.commit[:10]}")
        case e.ChecksFinished():
            named = flaky(state, event.tree, event.results)
            # On a screen the next line says what they printed.
            details = (*not_passed(event.results, room, outputs=room == ALL), *named)
            return Line("CHECKS", f"{name} · {tally(event.results)}", details)
        case e.CoachStarted():
            verb = "tries" if state.specs[event.task].scenario else "reviews"
            return Line("COACH", f"{name} · {verb} {event.commit[:10]}")
        case e.CoachAnswered():
            criteria = len(state.specs[event.task].acceptance_criteria) or 1
            verdict = _verdict(event.review, criteria)
            return Line("COACH", f"{name} · {verdict}", _changed_by_coach(event.touched))
        case e.PlayerFailed() | e.CoachFailed():
            return _failed(event, state, room)
        case e.WaitStarted():
            return _waits(event, state, event.at.astimezone(zone))
        case e.TurnReturned():
            return _returned(event, state, room)
        case e.HelpNeeded():
            return Line("NEEDS YOU", name, room.prose(event.question))
        case e.TaskAbandoned():
            took = task_seconds(state, state.tasks[event.task])
            return Line("ABANDONED", name, _abandoned(event, state, room), took)
        case (
            e.PlayerFinished()
            | e.SnapshotStarted()
            | e.SnapshotTaken()
            | e.SnapshotRefused()
            | e.TaskApproved()
            | e.TimerFired()
        ):
            return None  # the next line says more
        case _:
            assert_never(event)


def _failed(event: e.PlayerFailed | e.CoachFailed, state: RunState, room: Room) -> Line | None:
    name, task = _name(event.task, state), state.tasks[event.task]
    if event.failure is e.Failure.USAGE_LIMIT:
        return None  # the wait that follows names it
    if event.failure is e.Failure.INTERRUPTED:
        return Line("STOPPED", f"{name} · its work so far is kept · {_toll(task)}")
    who = "the Coach, " if isinstance(event, e.CoachFailed) else ""
    why = failure_lines(event.message, event.setup, room)
    return Line("FAILED", f"{name} · {who}{event.failure} · {_toll(task)}", why)


def _toll(task: TaskState) -> str:
    """What a failure costs: the turn is not used up by it."""
    return f"turn {task.last.turn} goes on" if task.last.turn else "it is tried again"


def _waits(event: e.WaitStarted, state: RunState, now: datetime) -> Line | None:
    if event.until <= now:
        return None  # the wait ended while the run was stopped
    if event.failure is not e.Failure.USAGE_LIMIT:
        name = _name(event.task, state)
        why = unreached(state.tasks[event.task])
        return Line("WAIT", f"{name} · {wait_line(event.failure, event.until, now, why)}")
    until = f"{quota(state)} until {moment(event.until, now)}"
    return Line("LIMIT", f"{until}; {event.task} waits, no turn spent")


def _returned(event: e.TurnReturned, state: RunState, room: Room) -> Line:
    task = state.tasks[event.task]
    turn = f"turn {task.last.turn}/{turns_allowed(state, task)}"
    found = len(must_fix(task)) if event.cause == "review" else 0
    why = f"{found} must_fix" if found else event.cause.replace("_", " ")
    text = f"{_name(event.task, state)} · {turn} · {why}"
    by_checks = event.cause in {"checks", "merged_checks"} and room != ALL
    red = not_passed(task.last.results, room) if by_checks else ()
    said = red or room.prose(event.feedback)
    return Line("RETURNED", text, said, turn_seconds(state, task))


def _verdict(review: Review, criteria: int) -> str:
    counts = {s: sum(i.severity == s for i in review.issues) for s in ("must_fix", "should_fix")}
    found = "".join(f" · {count} {severity}" for severity, count in counts.items() if count)
    met = len({item.criterion for item in review.evidence if item.met} & {*range(1, criteria + 1)})
    return f"{review.decision} · evidence for {met} of {criteria}{found}"


def _changed_by_coach(touched: tuple[str, ...]) -> tuple[str, ...]:
    if not touched:
        return ()
    return (f"it changed {', '.join(touched[:5])} in its own checkout; that does not count",)


def _abandoned(event: e.TaskAbandoned, state: RunState, room: Room) -> tuple[str, ...]:
    waiting = sorted(dep for dep, cause in blocked(state).items() if cause == event.task)
    lost = (f"blocks {', '.join(waiting)}",) if waiting else ()
    # On a screen the line above it says what was returned last.
    why = room if room == ALL else Room(room.command, 1)
    return (*why.prose(event.reason), *lost)


def _of_people(event: _OfPeople, state: RunState, room: Room) -> Line:  # noqa: C901  one arm a fact
    name = _name(event.task, state)
    match event:
        case e.TaskAdopted():
            where = event.commit[:10] if event.commit else "no commit named"
            return Line("ADOPTED", f"{name} · {where} · by {event.source}")
        case e.TaskAccepted():
            who = one_line(event.by, 60)
            red = check_lines(state, event.task)
            return Line("ACCEPTED", f"{name} · the merged work, for the new text · by {who}", red)
        case e.TaskReopened():
            undo = f"undo it: windlass retry {state.plan.id}:{event.task} --undo"
            details = (undo,) if state.tasks[event.task].redoes is not None else ()
            return Line("AGAIN", f"{name} · requested by {one_line(event.by, 60)}", details)
        case e.CheckpointPassed():
            return Line("GO", f"{name} · approved by {one_line(event.by, 60)}")
        case e.Answered():
            short = one_line(event.text, 60)
            if short == event.text:
                return Line("ANSWER", f"{name} · {short}")
            return Line("ANSWER", name, room.prose(event.text))
        case e.TaskReset():
            undo = f"windlass reset {state.plan.id}:{event.task} --undo"
            return Line("RESET", f"{name} · starts again from the tip", (f"undo it: {undo}",))
        case e.TaskResetUndone():
            return Line("RESET", f"{name} · undone")
        case e.RedoUndone():
            return Line("AGAIN", f"{name} · undone; the earlier merge counts again")
        case e.TaskTaken():
            return Line("TAKEN", f"{name} · by {one_line(event.by, 60)}")
        case e.TaskGiven():
            return Line("GIVEN", f"{name} · handed back", room.prose(event.summary))
        case _:
            assert_never(event)


def _of_merge(event: _OfMerge, state: RunState, room: Room) -> Line | None:
    name = _name(event.task, state)
    match event:
        case e.MergeConflicted():
            return Line("CONFLICT", f"{name} · {', '.join(event.files[:5])}")
        case e.MergeStands():
            return Line("DONE", f"{name} · nothing to change; {event.commit[:10]} stays")
        case e.TaskMerged():
            bill, took = _bill(event.task, state), task_seconds(state, state.tasks[event.task])
            if state.is_stale(event.task):
                return Line("STALE", f"{name} · merged for an older text · {bill}", (), took)
            return Line("DONE", f"{name} · {bill}", _summary(event, state, room), took)
        case e.MergeStarted() | e.MergeBuilt() | e.MergeSetAside():
            return None
        case _:
            assert_never(event)


def _name(task_id: str, state: RunState) -> str:
    return f"{task_id} {one_line(state.specs[task_id].title, 60)}"


def _bill(task_id: str, state: RunState) -> str:
    task = state.tasks[task_id]
    cost = task_cost(state, task)
    turns, used = plural(task.last.turn, "turn"), f"{tokens(cost.tokens)} tokens"
    return f"{turns} · {used} · {column(cost)}"


def _summary(event: e.TaskMerged, state: RunState, room: Room) -> tuple[str, ...]:
    summary = state.tasks[event.task].last.summary
    return (*room.prose(summary), *((event.note,) if event.note else ()))
