"""The story of a run, a line for each thing that a person would want to know."""

from msgspec import Struct

from windlass.events import model as e
from windlass.events.review import Review
from windlass.state import RunState
from windlass.state.reach import blocked
from windlass.views.cost import task_cost
from windlass.views.waiting import wait_line
from windlass.views.words import duration, money, one_line, plural, tokens

_WIDTH = 100
UNCHECKED = "unchecked: no checks anywhere, so nothing but the agents' word says the work is right"


class Line(Struct, frozen=True):
    """A word that says what happened, whom it happened to, and what there is to say of it."""

    word: str
    text: str
    details: tuple[str, ...] = ()


def line_of(event: e.Event, state: RunState) -> Line | None:
    """What to say of an event, given the state it led to; None where there is nothing to say."""
    if isinstance(event, e.RunEvent):
        return _of_run(event, state)
    return _of_work(event, state) or _of_review(event, state) or _of_merge(event, state)


def _of_run(event: e.RunEvent, state: RunState) -> Line | None:  # noqa: C901  one arm a fact
    match event:
        case e.RunStarted():
            return Line(
                "START",
                f"{state.plan.title} · {plural(len(state.tasks), 'task')}"
                f" · run {event.run} · from {event.base[:10]} · sandbox {event.sandbox}",
                _unchecked(state),
            )
        case e.RunResumed():
            return Line("RESUME", _resumed(state), _unchecked(state))
        case e.PlanRevised():
            return Line("PLAN", "the plan was edited; the run goes on with it as it is now")
        case e.BaselineStarted() if event.checks:
            return Line("BASE", f"running {plural(len(event.checks), 'check')} on the base")
        case e.BaselineFinished() if event.results:
            return Line("BASE", _tally(event.results), _not_passed(event.results))
        case e.VerificationStarted():
            return Line("VERIFY", f"running {plural(len(event.checks), 'check')} on the tip")
        case e.VerificationFinished():
            return Line("VERIFY", _tally(event.results), _not_passed(event.results))
        case e.StopRequested():
            return Line("STOP", f"asked by {event.by}; keeping what agents have done so far")
        case _:
            return None


def _of_work(event: e.TaskEvent, state: RunState) -> Line | None:  # noqa: C901  one arm a fact
    name = _name(event.task, state)
    match event:
        case e.TipTaken():
            return Line("E2E", f"{name} · all is merged: to be tried on {event.commit[:10]}")
        case e.PlayerStarted():
            again = " · settling a conflict" if event.onto is not None else ""
            allowed = state.specs[event.task].max_turns or state.settings.max_turns
            limit = allowed + state.tasks[event.task].first_turn - 1
            return Line("PLAYER", f"{name} · turn {event.turn}/{limit}{again}")
        case e.PlayerFailed():
            why = one_line(event.message, _WIDTH)
            return Line("FAILED", f"{name} · {event.failure} · no turn used", (why,) if why else ())
        case e.WaitStarted():
            return Line("WAIT", f"{name} · {wait_line(event.failure, event.until, event.at)}")
        case e.ChecksStarted():
            return Line(
                "CHECKS", f"{name} · {plural(len(event.checks), 'check')} on {event.commit[:10]}"
            )
        case e.ChecksFinished():
            return Line("CHECKS", f"{name} · {_tally(event.results)}", _not_passed(event.results))
        case e.TurnReturned():
            return Line("RETURNED", f"{name} · {event.cause}", _quote(event.feedback))
        case e.HelpNeeded():
            return Line("NEEDS YOU", name, _quote(event.question))
        case e.TaskAbandoned():
            return Line("ABANDONED", name, _abandoned(event, state))
        case _:
            return None


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
        case e.CoachFailed():
            why = one_line(event.message, _WIDTH)
            return Line("FAILED", f"{name} · the Coach, {event.failure} · no turn used", (why,))
        case e.TaskAdopted():
            where = event.commit[:10] if event.commit else "no commit named"
            return Line("ADOPTED", f"{name} · {where} · by {event.source}")
        case e.TaskReopened():
            return Line("AGAIN", f"{name} · asked for by {event.by}")
        case e.CheckpointPassed():
            return Line("GO", f"{name} · let through by {event.by}")
        case e.Answered():
            return Line("ANSWER", f"{name} · {one_line(event.text, 60)}")
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
        case e.TaskMerged():
            return Line("DONE", f"{name} · {_bill(event.task, state)}", _summary(event, state))
        case _:
            return None


def _name(task_id: str, state: RunState) -> str:
    return f"{task_id} {one_line(state.specs[task_id].title, 60)}"


def _resumed(state: RunState) -> str:
    merged = len(state.done)
    first = next((task for task in state.tasks.values() if task.merged_at is None), None)
    going_on = (
        f"Resuming from Task {first.id}..." if first is not None else "Nothing is left to do."
    )
    return f"{going_on} {merged} of {plural(len(state.tasks), 'task')} merged · run {state.run}"


def is_unchecked(state: RunState) -> bool:
    """Whether there is no check anywhere."""
    own = any(task.checks for task in state.plan.tasks)
    return not (state.settings.checks or state.plan.checks or own)


def _unchecked(state: RunState) -> tuple[str, ...]:
    return (UNCHECKED,) if is_unchecked(state) else ()


def _tally(results: tuple[e.CheckResult, ...]) -> str:
    counts = {o: sum(r.outcome is o for r in results) for o in e.Outcome}
    return " ".join(f"{count} {o}" for o, count in counts.items() if count)


def _not_passed(results: tuple[e.CheckResult, ...]) -> tuple[str, ...]:
    return tuple(
        f"`{one_line(r.command, 60)}` {(r.absence or r.outcome).replace('_', ' ')}"
        for r in results
        if r.outcome is not e.Outcome.PASS
    )


def _quote(text: str) -> tuple[str, ...]:
    lines = [one_line(line, _WIDTH) for line in text.splitlines() if line.strip()]
    more = (f"… {plural(len(lines) - 4, 'more line')}",) if len(lines) > 5 else ()  # noqa: PLR2004
    return (*lines[: 4 if more else 5], *more)


def _bill(task_id: str, state: RunState) -> str:
    task = state.tasks[task_id]
    cost = task_cost(task)
    seconds = (state.at - task.attempts[0].started_at).total_seconds()
    return (
        f"{plural(task.last.turn, 'turn')} · {duration(seconds)}"
        f" · {tokens(cost.tokens)} tokens · {money(cost.usd, known=cost.known)}"
    )


def _summary(event: e.TaskMerged, state: RunState) -> tuple[str, ...]:
    said = state.tasks[event.task].last.summary
    return (*_quote(said), *((event.note,) if event.note else ()))


def _abandoned(event: e.TaskAbandoned, state: RunState) -> tuple[str, ...]:
    waiting = sorted(dep for dep, cause in blocked(state).items() if cause == event.task)
    lost = (f"blocks {', '.join(waiting)}",) if waiting else ()
    return (*_quote(event.reason), *lost)
