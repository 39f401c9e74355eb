"""Facts as spans: milestone ⊃ task ⊃ turn ⊃ agent, with the recorded times.

Law 1: the same facts give the same spans and ids; ids are derived from the run. Law 2: a span
lies in one stretch of a run, from its start or resume until it ends or its process dies. The fact
that ends a span is recorded once, so a process that emits only the spans that its own facts end
emits nothing twice. `RunResumed` ends the spans of a dead process at its last fact.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct

from windlass.core.events import model as e
from windlass.core.events.values import Failure, RunEnd, Usage
from windlass.core.state import RunState
from windlass.core.state.transitions import IN_MERGE
from windlass.ports import Span
from windlass.views import telemetry_names as n
from windlass.views.bills import NOT_RECORDED, Bill
from windlass.views.outcome import run_status
from windlass.views.words import one_line

_LONG = 300
_HEADER = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_FAILED_ENDS = frozenset({RunEnd.FAILED, RunEnd.LIMIT, RunEnd.ABORTED})
_BEGIN_TURN = e.PlayerStarted | e.TipTaken | e.TaskTaken
_WORK = e.SnapshotStarted | e.ChecksStarted | e.CoachStarted | e.WaitStarted | e.MergeStarted


class Context(Struct, frozen=True, kw_only=True):
    """A position in a trace, as in the header `traceparent`."""

    trace: str
    span: str
    sampled: bool = True

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace}-{self.span}-{'01' if self.sampled else '00'}"


def context_of(traceparent: str) -> Context | None:
    """The header's context; None where it is invalid, as the standard requires."""
    found = _HEADER.fullmatch(traceparent.strip().lower())
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    is_known = version == "00" and more is None
    if not (is_known or version not in {"00", "ff"}) or not int(trace, 16) or not int(span, 16):
        return None
    return Context(trace=trace, span=span, sampled=bool(int(flags, 16) & 1))


class _Open(Struct, kw_only=True):
    """A span that has not ended."""

    name: str
    id: str
    parent: str | None
    start: datetime
    attributes: dict[str, str | int | float | bool]
    usage: Usage = Usage()
    estimated_usd: float = 0.0


class Tracing:
    """Follows one run, fact by fact, and returns each span when it ends."""

    def __init__(
        self, parent: Context | None = None, *, contents: bool = False, provider: str = ""
    ) -> None:
        """`parent` is the span around the run; with `contents`, spans have the agents' texts."""
        self._provider = provider
        self._outer = parent
        self._contents = contents
        self._run = ""
        self._trace = ""
        self._opened = 0
        self._at = datetime.min.replace(tzinfo=UTC)
        self._milestone: _Open | None = None
        self._completed = 0
        self._tasks: dict[str, _Open] = {}
        self._turns: dict[str, _Open] = {}
        self._agents: dict[tuple[str, str], _Open] = {}

    def working(self, task: str, role: str) -> Context | None:
        """The span in which an agent of that role works now, as parent of its own telemetry."""
        agent = self._agents.get((task, role))
        if agent is None:
            return None
        sampled = self._outer is None or self._outer.sampled
        return Context(trace=self._trace, span=agent.id, sampled=sampled)

    def paid(self, bill: Bill) -> None:
        """Add a bill to the open spans of the work that it is for."""
        agent = self._agents.get((bill.task, bill.role))
        if agent is not None and bill.model != NOT_RECORDED:
            agent.attributes[n.MODEL] = bill.model
        of_task = (self._turns.get(bill.task), self._tasks.get(bill.task))
        for span in (agent, *of_task, self._milestone):
            if span is not None:
                span.usage += bill.usage
                span.estimated_usd += bill.cost.estimated_usd

    def see(self, event: e.Event, state: RunState) -> list[Span]:
        """The spans that this fact ends; `state` is the state after it."""
        if isinstance(event, e.RunStarted | e.RunResumed):
            spans = list(self._end_all(state, Failure.CRASHED))
            self._at = event.at
            self._begin(event, state)
            return spans
        # A clock that was set back must not make a span end before it began.
        self._at = max(event.at, self._at)
        if self._milestone is None:
            return []
        if isinstance(event, e.RunEnded):
            return list(self._end_all(state, None))
        if isinstance(event, e.BatchEvent):
            for id_ in event.tasks:
                self._task(id_, state)
        elif isinstance(event, e.TaskEvent):
            return [*self._open(event, state), *self._close(event, state)]
        return []

    def _begin(self, event: e.RunStarted | e.RunResumed, state: RunState) -> None:
        resumed = isinstance(event, e.RunResumed)
        self._opened = self._opened if resumed else 0
        self._run, self._completed = state.run, 0
        outer = self._outer
        self._trace = outer.trace if outer is not None else _id(32, "run", state.run)
        self._milestone = _Open(
            name=n.MILESTONE,
            id=self._next_id(),
            parent=outer.span if outer is not None else None,
            start=self._at,
            attributes={
                n.MILESTONE_ID: state.plan.id,
                n.MILESTONE_TOTAL_TASKS: len(state.tasks),
                n.MILESTONE_RESUME: resumed,
                n.RUN_ID: state.run,
            },
        )

    def _open(self, event: e.TaskEvent, state: RunState) -> Iterator[Span]:
        """Open the spans that this fact begins, or continues in another stretch."""
        id_ = event.task
        if isinstance(event, _BEGIN_TURN | _WORK | e.TaskMerged | e.MergeStands | e.TaskAbandoned):
            self._task(id_, state)
        if isinstance(event, _BEGIN_TURN):
            turn = 0 if isinstance(event, e.TipTaken) else event.turn
            there = self._turns.get(id_)
            # A Player that is started again in the same turn continues its span.
            if there is None or there.attributes[n.TURN_NUMBER] != turn:
                yield from self._turn_ends(id_, "left")
                self._turn(id_, turn)
        elif isinstance(event, _WORK) and id_ not in self._turns:
            task = state.tasks[id_]
            if task.attempts and task.phase not in IN_MERGE:
                self._turn(id_, task.last.turn)
        if isinstance(event, e.PlayerStarted):
            self._agent_begins(id_, "player", n.PLAYER)
        elif isinstance(event, e.CoachStarted):
            self._agent_begins(id_, "coach", n.COACH)

    def _task(self, id_: str, state: RunState) -> None:
        if id_ not in self._tasks and self._milestone is not None:
            # Unchanged: in a cut or joined text the redactor may miss a secret.
            title = state.specs[id_].title
            self._tasks[id_] = _Open(
                name=n.TASK,
                id=self._next_id(),
                parent=self._milestone.id,
                start=self._at,
                attributes={n.TASK_ID: id_, n.TASK_TITLE: title},
            )

    def _turn(self, id_: str, turn: int) -> None:
        self._turns[id_] = _Open(
            name=n.TURN,
            id=self._next_id(),
            parent=self._tasks[id_].id,
            start=self._at,
            attributes={n.TASK_ID: id_, n.TURN_NUMBER: turn},
        )

    def _agent_begins(self, id_: str, role: str, name: str) -> None:
        self._agents[id_, role] = _Open(
            name=name,
            id=self._next_id(),
            parent=self._turns[id_].id,
            start=self._at,
            attributes={
                n.TASK_ID: id_,
                n.OPERATION: n.INVOKE_AGENT,
                n.PROVIDER: self._provider,
                n.AGENT: name.removeprefix("invoke_agent "),
            },
        )

    def _close(self, event: e.TaskEvent, state: RunState) -> Iterator[Span]:  # noqa: C901  one arm a fact
        id_ = event.task
        match event:
            case e.PlayerFinished():
                yield from self._agent_ends(id_, "player", text=event.summary)
            case e.PlayerFailed():
                yield from self._agent_ends(id_, "player", event.failure, event.message)
            case e.CoachAnswered():
                yield from self._agent_ends(id_, "coach", text=event.review.summary)
            case e.CoachFailed():
                yield from self._agent_ends(id_, "coach", event.failure, event.message)
            case e.TurnReturned():
                yield from self._turn_ends(id_, f"returned: {event.cause}")
            case e.TaskApproved():
                yield from self._turn_ends(id_, "approved")
            case e.HelpNeeded():
                # The time of a person is no agent's time.
                yield from self._turn_ends(id_, "needs_human")
            case e.TaskAbandoned():
                yield from self._turn_ends(id_, "abandoned")
                yield from self._task_ends(id_, state, "code", event.reason)
            case e.TaskMerged() | e.MergeStands():
                self._completed += not state.is_stale(id_)
                yield from self._turn_ends(id_, "approved")
                yield from self._task_ends(id_, state)
            case e.TaskReset():
                yield from self._turn_ends(id_, "reset")
                yield from self._task_ends(id_, state)
            case _:
                pass

    def _end_all(self, state: RunState, why: Failure | None) -> Iterator[Span]:
        """End all open spans with the stretch; `why` where its process died."""
        text = "the process of the run died" if why is not None else ""
        kind = str(why) if why is not None else None
        for id_, role in list(self._agents):
            yield from self._agent_ends(id_, role, why or Failure.INTERRUPTED, text)
        for id_ in list(self._turns):
            yield from self._turn_ends(id_, "interrupted", kind, text)
        for id_ in list(self._tasks):
            yield from self._task_ends(id_, state, kind, text)
        if self._milestone is not None:
            yield self._milestone_ends(self._milestone, state, kind, text)
            self._milestone = None

    def _agent_ends(
        self,
        id_: str,
        role: str,
        failure: Failure | None = None,
        message: str = "",
        *,
        text: str = "",
    ) -> Iterator[Span]:
        if (span := self._agents.pop((id_, role), None)) is not None:
            usage = span.usage
            span.attributes |= {
                n.INPUT_TOKENS: usage.input_tokens
                + usage.cache_read_tokens
                + usage.cache_write_tokens,
                n.OUTPUT_TOKENS: usage.output_tokens,
                n.CACHE_READ_TOKENS: usage.cache_read_tokens,
            }
            if text and self._contents:
                span.attributes[n.MESSAGES] = _message(text)
            kind = str(failure) if failure is not None else None
            yield self._ended(span, kind, message)

    def _turn_ends(
        self, id_: str, outcome: str, error: str | None = None, why: str = ""
    ) -> Iterator[Span]:
        for role in ("player", "coach"):
            yield from self._agent_ends(id_, role, Failure.INTERRUPTED)
        if (span := self._turns.pop(id_, None)) is not None:
            span.attributes[n.TURN_OUTCOME] = outcome
            yield self._ended(span, error, why)

    def _task_ends(
        self, id_: str, state: RunState, error: str | None = None, why: str = ""
    ) -> Iterator[Span]:
        if (span := self._tasks.pop(id_, None)) is not None:
            task = state.tasks.get(id_)
            # A task that is no longer in the plan was never finished.
            span.attributes[n.TASK_STATUS] = task.status if task is not None else "withdrawn"
            yield self._ended(span, error, why)

    def _milestone_ends(self, span: _Open, state: RunState, error: str | None, why: str) -> Span:
        status = "failed" if error is not None else run_status(state)
        if error is None and state.ended in _FAILED_ENDS:
            error, why = str(state.ended), state.reason
        span.attributes |= {
            n.MILESTONE_STATUS: status,
            n.MILESTONE_COMPLETED: self._completed,
            n.MILESTONE_STALE: len(state.stale),
            n.MILESTONE_TOTAL_TOKENS: span.usage.tokens,
            n.MILESTONE_TOTAL_COST: round(span.usage.cost_usd, 6),
        }
        return self._ended(span, error, why)

    def _ended(self, span: _Open, error: str | None, why: str) -> Span:
        if span.name != n.MILESTONE:
            span.attributes |= {
                n.TOKENS: span.usage.tokens,
                n.COST: round(span.usage.cost_usd, 6),
            }
        span.attributes[n.ESTIMATED_COST] = round(span.estimated_usd, 6)
        if error is not None:
            span.attributes[n.ERROR_TYPE] = error
        return Span(
            name=span.name,
            trace=self._trace,
            id=span.id,
            parent=span.parent,
            start=span.start,
            end=self._at,
            attributes=span.attributes,
            error=one_line(why, _LONG) if error is not None else None,
        )

    def _next_id(self) -> str:
        self._opened += 1
        return _id(16, self._run, f"{self._opened}")


def _id(digits: int, *words: str) -> str:
    """An id that is derived from the words, and never only zeros."""
    return hashlib.sha256(json.dumps(["windlass", *words]).encode()).hexdigest()[:digits]


def _message(text: str) -> str:
    """An agent's text in the form of OpenTelemetry's conventions."""
    part = {"type": "text", "content": text}
    return json.dumps([{"role": "assistant", "parts": [part]}], ensure_ascii=False)
