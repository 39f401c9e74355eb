"""The timeline of a run: who worked when, what waited, and data that the state does not keep.

Law: one pass over the facts. A bar begins and ends with a phase. If a process died, it is not known
how long its agents worked, so their bars end with the last recorded fact.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from windlass.core.engine import apply
from windlass.core.events import model as e
from windlass.core.state import Phase, RunState, TaskState
from windlass.core.state.budget import Spending
from windlass.core.state.quota import limits
from windlass.core.state.transitions import HELPLESS, IN_MERGE
from windlass.views.activity import idle, under_way, waits_for
from windlass.views.bills import Ledger
from windlass.views.report.model import Bar, Checked, Gap, Kind

_SHORT = 0.2
"""A shorter wait for an agent or a merge gets no bar."""
_PAUSE = timedelta(seconds=1)
"""A shorter time between two processes gets no gap."""

_KINDS: Mapping[Phase, tuple[Kind | None, str]] = {
    **dict.fromkeys(Phase, (None, "")),
    Phase.PLAYING: ("player", "Player"),
    Phase.CHECKING: ("checks", "checks"),
    Phase.REVIEWING: ("coach", "Coach"),
    Phase.WAITING: ("wait", "waits"),
    Phase.WAITING_FOR_COACH: ("wait", "waits"),
    Phase.UNREVIEWED: ("queue", "waits for an agent"),
    Phase.APPROVED: ("queue", "waits to be merged"),
    **dict.fromkeys((*IN_MERGE, Phase.CONFLICTED), ("merge", "merging")),
    **dict.fromkeys(HELPLESS, ("person", "waits for a person")),
}

_AT_WORK = frozenset({"player", "checks", "coach", "merge"})


class Timeline:
    """The result of one pass over the facts of a run."""

    def __init__(self, events: Iterable[e.Event], *, now: datetime | None) -> None:
        self.bars: dict[str, list[Bar]] = {}
        self.whole: list[Bar] = []
        self.gaps: list[Gap] = []
        self.checks: dict[tuple[str, int], list[Checked]] = {}
        self.usage: dict[tuple[str, int], e.Usage] = {}
        self.causes: dict[tuple[str, int], str] = {}
        self.approved: set[tuple[str, int]] = set()
        self.looks: list[tuple[str, tuple[e.CheckResult, ...], tuple[str, ...]]] = []
        self.version = ""
        self._open: dict[str, Bar] = {}
        self._looking: Bar | None = None
        self._asked: dict[str, tuple[str, int]] = {}
        self._bad: dict[str, bool] = {}
        self._ledger = Ledger("")
        state: RunState | None = None
        for event in events:
            before = None if isinstance(event, e.RunStarted) else state
            state = apply(before, event)
            self._see(event, before, state)
        self.state = state
        self.at = state.at if state is not None else None
        if state is not None:
            end = max(now or state.at, state.at) if state.ended is None else state.at
            self.at = end
            self._close_all(end)
            away = ((each.since, each.until) for each in state.pauses)
            self.gaps = [Gap(*each) for each in away if each[1] - each[0] > _PAUSE]

    def _see(self, event: e.Event, before: RunState | None, state: RunState) -> None:
        if isinstance(event, e.RunStarted):
            self.version = event.version
            return
        assert before is not None  # noqa: S101  RunStarted comes first
        self._book(event, before)
        if isinstance(event, e.TaskEvent):
            self._note(event, before)
            self._look(event.task, event, state)
            if limits(before).keys() != limits(state).keys():
                for task in under_way(state):  # one limit holds for all tasks with the model
                    self._look(task.id, event, state)
        elif isinstance(event, e.BatchEvent):
            for task in event.tasks:
                self._look(task, event, state)
        elif not isinstance(event, Spending):
            self._of_run(event, before, state)

    def _of_run(self, event: e.CourseEvent, before: RunState, state: RunState) -> None:
        match event:
            case e.RunResumed():
                self._close_all(before.at, lost=before.ended is None)
            case e.RunEnded():
                self._close_all(event.at)
                return
            case e.BaselineStarted() if event.checks:
                self._begin_look(event.at, "the base is checked")
            case e.VerificationStarted():
                stage = f"stage {event.stage}" if event.stage else "the tip"
                self._begin_look(event.at, f"{stage} is verified")
            case e.BaselineFinished() | e.VerificationFinished():
                self._end_look(event)
            case _:
                pass
        self._look_around(event, state)

    def _look_around(self, event: e.CourseEvent, state: RunState) -> None:
        for gone in self._open.keys() - state.tasks.keys():  # removed by an edit of the plan
            self._close(gone, event.at)
        for task in under_way(state):
            self._look(task.id, event, state)

    def _begin_look(self, at: datetime, what: str) -> None:
        self._looking = Bar(kind="checks", start=at, end=at, what=what)

    def _end_look(self, event: e.BaselineFinished | e.VerificationFinished) -> None:
        problems = event.problems if isinstance(event, e.VerificationFinished) else ()
        bad = bool(problems) or _is_red(event.results)
        if self._looking is not None:
            bar = self._looking
            self.whole.append(_ended(bar, event.at, bad=bad))
            self._looking = None
        if isinstance(event, e.BaselineFinished):
            what = "base"
        else:
            what = f"stage {event.stage}" if event.stage else "tip"
        if event.results or problems:
            self.looks.append((f"{what} {event.commit[:10]}", event.results, problems))

    def _note(self, event: e.TaskEvent, before: RunState) -> None:
        """Keep what the final state will not have."""
        task = before.tasks[event.task]
        place = (event.task, task.last.n if task.attempts else 0)
        match event:
            case e.ChecksFinished():
                merged = task.phase is Phase.CHECKING_MERGE
                self._bad[event.task] = _is_red(event.results)
                checked = Checked(results=event.results, merged=merged)
                self.checks.setdefault(place, []).append(checked)
            case e.PlayerFailed() | e.CoachFailed():
                self._bad[event.task] = True
            case e.TurnReturned():
                self.causes[place] = event.cause
                self.approved.discard(place)
            case e.TaskApproved():
                self.approved.add(place)
            case _:
                pass

    def _book(self, event: e.Event, before: RunState) -> None:
        """Add a request to the round in which it was sent, whenever its answer comes."""
        if isinstance(event, e.SpendReserved):
            self._asked[event.id] = _round(event.task, before)
        for bill in self._ledger.see(event):
            place = self._asked.pop(bill.request, None) or _round(bill.task, before)
            self.usage[place] = self.usage.get(place, e.Usage()) + bill.usage

    def _look(self, id_: str, event: e.Event, state: RunState) -> None:
        """Start another bar if the task's activity has changed."""
        task = state.tasks[id_]
        kind, what = _doing(state, task)
        anchor = f"{id_}/{task.last.n}" if task.attempts else ""
        bar = self._open.get(id_)
        if bar is not None and (bar.kind, bar.what, bar.anchor) == (kind, what, anchor):
            return
        self._close(id_, event.at)
        if kind is not None:
            new = Bar(kind=kind, start=event.at, end=event.at, what=what, anchor=anchor)
            self._open[id_] = new

    def _close(self, id_: str, at: datetime, *, lost: bool = False) -> None:
        bar, bad = self._open.pop(id_, None), self._bad.pop(id_, False)
        if bar is None:
            return
        done = _ended(bar, at, bad=bad or (lost and bar.kind in _AT_WORK))
        if bar.kind != "queue" or done.seconds >= _SHORT:
            self.bars.setdefault(id_, []).append(done)

    def _close_all(self, at: datetime, *, lost: bool = False) -> None:
        for id_ in list(self._open):
            self._close(id_, at, lost=lost)
        if self._looking is not None:
            self.whole.append(_ended(self._looking, at, bad=lost))
            self._looking = None


def _doing(state: RunState, task: TaskState) -> tuple[Kind | None, str]:
    """The kind of its current bar, and its text."""
    if (idles := idle(state, task)) is not None:
        return "wait" if idles.why == "limit" else "queue", f"waits {idles.text}"
    kind, what = _KINDS[task.phase]
    if task.phase is Phase.TAKEN:
        what = f"{task.last.by} works on it"
    if (failure := waits_for(task)) is not None:
        what = f"waits: {failure.replace('_', ' ')}"
    return kind, what


def _ended(bar: Bar, at: datetime, *, bad: bool) -> Bar:
    return Bar(
        kind=bar.kind,
        start=bar.start,
        end=max(bar.start, at),
        what=bar.what,
        bad=bad,
        anchor=bar.anchor,
    )


def _is_red(results: Iterable[e.CheckResult]) -> bool:
    return any(result.outcome is not e.Outcome.PASS for result in results)


def _round(task_id: str, state: RunState) -> tuple[str, int]:
    attempts = state.tasks[task_id].attempts
    return (task_id, attempts[-1].n if attempts else 0)
