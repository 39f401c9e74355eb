"""The story of a run, a line for each thing that a person would want to know."""

from windlass.events import model as e
from windlass.events.review import Review
from windlass.state import RunState
from windlass.state.reach import blocked
from windlass.state.stretches import task_seconds, turn_seconds
from windlass.views.cost import task_cost
from windlass.views.lines import (
    WIDTH,
    Line,
    flaky,
    harmless,
    must_fix,
    not_passed,
    quoted,
    tally,
)
from windlass.views.progress import turns_allowed
from windlass.views.stale_tasks import check_lines
from windlass.views.story_run import of_run
from windlass.views.waiting import moment, wait_line
from windlass.views.words import money, one_line, plural, tokens

# fmt: off
WORDS = (
    "ABANDONED", "ABORT", "ACCEPTED", "ADOPTED", "AGAIN", "ANSWER", "BASE", "CHECKS", "COACH",
    "CONFLICT", "DONE", "E2E", "FAILED", "GIVEN", "GO", "LAND", "LANDED", "LIMIT", "NEEDS YOU",
    "NETWORK", "NOT MOVED", "PAUSE", "PLAN", "PLAYER", "RECOVERED", "RESET", "RESUME", "RETURNED",
    "STAGE", "STALE", "START", "STOP", "STOPPED", "TAKEN", "VERIFY", "WAIT",
)
# fmt: on
"""Every word that a line of the story may begin with."""


def line_of(event: e.Event, state: RunState) -> Line | None:
    """What to say of an event, given the state it led to; None where there is nothing to say."""
    if isinstance(event, e.BatchEvent):
        return None
    tellers = (_of_work, _of_trouble, _of_review, _of_people, _of_merge)
    if isinstance(event, e.RunEvent):
        line = of_run(event, state)
    else:
        line = next((line for tell in tellers if (line := tell(event, state)) is not None), None)
    return None if line is None else harmless(line)


def _of_work(event: e.TaskEvent, state: RunState) -> Line | None:
    name = _name(event.task, state)
    match event:
        case e.TipTaken():
            return Line("E2E", f"{name} · all is merged: to be tried on {event.commit[:10]}")
        case e.PlayerStarted():
            again = " · settling a conflict" if event.onto is not None else ""
            limit = turns_allowed(state, state.tasks[event.task])
            return Line("PLAYER", f"{name} · turn {event.turn}/{limit}{again}")
        case e.ChecksStarted():
            return Line(
                "CHECKS", f"{name} · {plural(len(event.checks), 'check')} on {event.commit[:10]}"
            )
        case e.ChecksFinished():
            named = flaky(state, event.tree, event.results)
            details = (*not_passed(event.results), *named)
            return Line("CHECKS", f"{name} · {tally(event.results)}", details)
        case e.TurnReturned():
            return _returned(event, state)
        case e.HelpNeeded():
            return Line("NEEDS YOU", name, quoted(event.question))
        case e.TaskAbandoned():
            took = task_seconds(state, state.tasks[event.task])
            return Line("ABANDONED", name, _abandoned(event, state), took)
        case _:
            return None


def _of_trouble(event: e.TaskEvent, state: RunState) -> Line | None:
    match event:
        case e.PlayerFailed() | e.CoachFailed():
            return _failed(event, state)
        case e.WaitStarted() if event.until > event.at:
            return _waits(event, state)
        case _:  # what was waited for when the run was stopped may be over
            return None


def _failed(event: e.PlayerFailed | e.CoachFailed, state: RunState) -> Line | None:
    name = _name(event.task, state)
    if event.failure is e.Failure.USAGE_LIMIT:
        return None  # the wait that follows tells of it
    if event.failure is e.Failure.INTERRUPTED:
        return Line("STOPPED", f"{name} · what it did so far is kept · no turn used")
    who = "the Coach, " if isinstance(event, e.CoachFailed) else ""
    why = one_line(event.message, WIDTH)
    return Line("FAILED", f"{name} · {who}{event.failure} · no turn used", (why,) if why else ())


def _waits(event: e.WaitStarted, state: RunState) -> Line:
    if event.failure is not e.Failure.USAGE_LIMIT:
        name = _name(event.task, state)
        return Line("WAIT", f"{name} · {wait_line(event.failure, event.until, event.at)}")
    until = f"{state.settings.agent.name} quota until {moment(event.until, event.at)}"
    return Line("LIMIT", f"{until}; {event.task} waits, no turn spent")


def _returned(event: e.TurnReturned, state: RunState) -> Line:
    task = state.tasks[event.task]
    turn = f"turn {task.last.turn}/{turns_allowed(state, task)}"
    found = len(must_fix(task)) if event.cause == "review" else 0
    why = f"{found} must_fix" if found else event.cause.replace("_", " ")
    told = f"{_name(event.task, state)} · {turn} · {why}"
    return Line("RETURNED", told, quoted(event.feedback), turn_seconds(state, task))


def _of_review(event: e.TaskEvent, state: RunState) -> Line | None:
    name = _name(event.task, state)
    match event:
        case e.CoachStarted():
            verb = "tries" if state.specs[event.task].scenario else "reviews"
            return Line("COACH", f"{name} · {verb} {event.commit[:10]}")
        case e.CoachAnswered():
            criteria = len(state.specs[event.task].acceptance_criteria) or 1
            said = _review(event.review, criteria)
            return Line("COACH", f"{name} · {said}", _trespass(event.touched))
        case _:
            return None


def _of_people(event: e.TaskEvent, state: RunState) -> Line | None:  # noqa: C901  one arm a fact
    name = _name(event.task, state)
    match event:
        case e.TaskAdopted():
            where = event.commit[:10] if event.commit else "no commit named"
            return Line("ADOPTED", f"{name} · {where} · by {event.source}")
        case e.TaskAccepted():
            who = one_line(event.by, 60)
            red = check_lines(state, event.task)
            return Line("ACCEPTED", f"{name} · as it is merged, for the new text · by {who}", red)
        case e.TaskReopened():
            return Line("AGAIN", f"{name} · asked for by {event.by}")
        case e.CheckpointPassed():
            return Line("GO", f"{name} · let through by {event.by}")
        case e.Answered():
            return Line("ANSWER", f"{name} · {one_line(event.text, 60)}")
        case e.TaskReset():
            undo = f"windlass reset {state.plan.id}:{event.task} --undo"
            return Line("RESET", f"{name} · begins anew from the tip", (f"undo it: {undo}",))
        case e.TaskResetUndone():
            return Line("RESET", f"{name} · undone; it is where it was")
        case e.TaskTaken():
            return Line("TAKEN", f"{name} · by {one_line(event.by, 60)}")
        case e.TaskGiven():
            return Line("GIVEN", f"{name} · handed back", quoted(event.summary))
        case _:
            return None


def _review(review: Review, criteria: int) -> str:
    counts = {s: sum(i.severity == s for i in review.issues) for s in ("must_fix", "should_fix")}
    found = "".join(f" · {count} {severity}" for severity, count in counts.items() if count)
    met = len({item.criterion for item in review.evidence if item.met} & {*range(1, criteria + 1)})
    return f"{review.decision} · evidence for {met} of {criteria}{found}"


def _trespass(touched: tuple[str, ...]) -> tuple[str, ...]:
    if not touched:
        return ()
    return (f"it changed {', '.join(touched[:5])} in its own checkout; nothing of that counts",)


def _of_merge(event: e.TaskEvent, state: RunState) -> Line | None:
    name = _name(event.task, state)
    match event:
        case e.MergeConflicted():
            return Line("CONFLICT", f"{name} · {', '.join(event.files[:5])}")
        case e.MergeStands():
            return Line("DONE", f"{name} · nothing was to change; {event.commit[:10]} stands")
        case e.TaskMerged():
            bill, took = _bill(event.task, state), task_seconds(state, state.tasks[event.task])
            if state.is_stale(event.task):
                return Line("STALE", f"{name} · merged for an older text · {bill}", (), took)
            return Line("DONE", f"{name} · {bill}", _summary(event, state), took)
        case _:
            return None


def _name(task_id: str, state: RunState) -> str:
    return f"{task_id} {one_line(state.specs[task_id].title, 60)}"


def _bill(task_id: str, state: RunState) -> str:
    task = state.tasks[task_id]
    cost = task_cost(task)
    turns, used = plural(task.last.turn, "turn"), f"{tokens(cost.tokens)} tokens"
    return f"{turns} · {used} · {money(cost.usd, known=cost.known)}"


def _summary(event: e.TaskMerged, state: RunState) -> tuple[str, ...]:
    said = state.tasks[event.task].last.summary
    return (*quoted(said), *((event.note,) if event.note else ()))


def _abandoned(event: e.TaskAbandoned, state: RunState) -> tuple[str, ...]:
    waiting = sorted(dep for dep, cause in blocked(state).items() if cause == event.task)
    lost = (f"blocks {', '.join(waiting)}",) if waiting else ()
    return (*quoted(event.reason), *lost)
