"""The story of a run as a whole: its beginning, its stages, its landing, its end."""

from windlass.events import model as e
from windlass.state import RunState
from windlass.views import network
from windlass.views.lines import Line, flaky, not_passed, quoted, tally, warnings
from windlass.views.stale_tasks import WHY
from windlass.views.tree import position, verified
from windlass.views.words import one_line, plural

_RESTS = {
    "stop": ("STOP", "keeping what agents have done so far"),
    "pause": ("PAUSE", "turns that have begun come to their end, then it rests"),
    "pause_now": ("PAUSE", "keeping what agents have done so far"),
    "abort": ("ABORT", "the run is given up; all that was done stays pinned"),
}


def of_run(event: e.RunEvent, state: RunState) -> Line | None:
    """What to say of a fact about the whole run."""
    return _of_course(event, state) or _of_whole(event, state) or _of_landing(event)


def _of_course(event: e.RunEvent, state: RunState) -> Line | None:
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
            told = ("Verified:", *(f"- {line}" for line in found)) if found else ()
            return Line("RESUME", _resumed(state), (*told, *warnings(state)))
        case e.RunRecovered():
            return Line("RECOVERED", "all before this is what git alone shows of it", event.notes)
        case e.PlanRevised():
            stale = (f"{id_} is stale: {WHY}" for id_ in state.stale)
            told = "the plan was edited; the run goes on with it as it is now"
            return Line("PLAN", told, tuple(stale))
        case e.HostsAsked():
            return network.told(event)
        case e.StopRequested():
            word, what = _RESTS[event.how]
            return Line(word, f"asked by {event.by}; {what}")
        case _:
            return None


def _of_whole(event: e.RunEvent, state: RunState) -> Line | None:
    match event:
        case e.BaselineStarted() if event.checks:
            return Line("BASE", f"running {plural(len(event.checks), 'check')} on the base")
        case e.BaselineFinished() if event.results:
            return Line("BASE", tally(event.results), not_passed(event.results))
        case e.VerificationStarted():
            checks = plural(len(event.checks), "check")
            if event.stage is None:
                return Line("VERIFY", f"running {checks} on the tip")
            return Line("VERIFY", f"stage {one_line(event.stage, 60)} is done: {checks}, its files")
        case e.VerificationFinished():
            named = flaky(state, event.tree, event.results)
            details = (*not_passed(event.results), *named, *event.problems)
            told = tally(event.results) or ("amiss" if details else "as it should be")
            return Line("VERIFY", told, details)
        case e.StagePassed():
            why = "" if event.by == "verification" else f" · let through by {event.by}"
            return Line("STAGE", f"{one_line(event.stage, 60)} has passed{why}")
        case e.StageRetried():
            return Line("AGAIN", f"stage {one_line(event.stage, 60)} · asked for by {event.by}")
        case _:
            return None


def _of_landing(event: e.RunEvent) -> Line | None:
    match event:
        case e.BaseSeen() if event.relation == "apart":
            return Line("LAND", f"{event.branch} has moved to {event.commit[:10]}; merging with it")
        case e.BaseMergeConflicted():
            return Line("CONFLICT", f"with the base: {', '.join(event.files[:5])}")
        case e.Landed():
            return Line("LANDED", f"{event.branch} stands at {event.commit[:10]}")
        case e.LandRefused():
            return Line("NOT MOVED", event.branch or "the base", quoted(event.reason))
        case _:
            return None


def _resumed(state: RunState) -> str:
    merged = len(state.done)
    left = merged < len(state.tasks)
    going_on = f"Resuming from {position(state)}..." if left else "Nothing is left to do."
    return f"{going_on} {merged} of {plural(len(state.tasks), 'task')} merged · run {state.run}"
