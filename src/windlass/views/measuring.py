"""Facts as telemetry: the spans that ended, and the measurements.

Law: each process reports only the facts that it recorded itself, and reads the earlier ones. So a
resumed run counts from zero, as after any restart of a program, and no two processes count the same
task, token or dollar. Costs come from the ledger, as in `windlass costs`, spent and estimated
apart. What is reserved is a gauge, as it stands in the state. The time of a task comes from
`state.stretches`: while no process ran it, no agent worked.
"""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.state import RunState
from windlass.core.state.stretches import worked
from windlass.ports import Attributes, Instrument, Measured, Span
from windlass.views import telemetry_names as n
from windlass.views.bills import Bill, Ledger
from windlass.views.cost import Cost, reserved
from windlass.views.tracing import Context, Tracing

_SETTLED = ("completed", "abandoned")
_COUNTED = ("completed", "abandoned", "needs_human", "stale")
_FLYING = (
    e.RunStarted | e.RunResumed | e.SpendReserved | e.SpendStreamed | e.SpendSettled | e.RunEnded
)
"""Facts that can change what is reserved."""


class Emitted(Struct, frozen=True):
    """The spans and measurements of one fact."""

    spans: tuple[Span, ...] = ()
    measured: tuple[Measured, ...] = ()


class Measuring:
    """Follows one run, fact by fact."""

    def __init__(
        self,
        plan: str,
        parent: Context | None = None,
        *,
        contents: bool = False,
        provider: str = "",
    ) -> None:
        """`parent` is the span around the run; `provider` answers the agents' requests."""
        self._plan = plan
        self._provider = provider
        self._tracing = Tracing(parent, contents=contents, provider=provider)
        self._ledger = Ledger(plan)
        self._begun: dict[str, datetime] = {}
        """When each task that is not settled was started."""
        self._stale: frozenset[str] = frozenset()

    def working(self, task: str, role: str) -> Context | None:
        """The span in which an agent of that role works now."""
        return self._tracing.working(task, role)

    def see(self, event: e.Event, state: RunState) -> Emitted:
        """The telemetry of this fact; `state` is the state after it."""
        bills = self._ledger.see(event)
        for bill in bills:
            self._tracing.paid(bill)
        spans = self._tracing.see(event, state)
        measured = [
            *self._beginnings(event),
            *(one for bill in bills for one in self._of_bill(bill, state)),
            *self._reserved(event, state),
            *self._of_task(event, state),
            *self._newly_stale(event, state),
            *self._durations(spans, state),
        ]
        return Emitted(tuple(spans), tuple(measured))

    def _beginnings(self, event: e.Event) -> list[Measured]:
        """A zero for each counter, so that its first increase can be seen."""
        match event:
            case e.RunStarted() | e.RunResumed():
                if isinstance(event, e.RunStarted):
                    self._begun.clear()
                none = [self._count(word, 0) for word in _COUNTED]
                none += [self._lasted(word, 0) for word in _SETTLED]
            case e.SpendReserved():
                labels = self._labels(event.role, event.model)
                none = [*_costs(Cost(), labels), *_tokens(e.Usage(), labels)]
            case _:
                none = []
        return [replace(each, times=0) for each in none]

    def _of_bill(self, bill: Bill, state: RunState) -> list[Measured]:
        usage, labels = bill.usage, self._labels(bill.role, bill.model)
        shared = {
            n.OPERATION: n.CHAT if state.metered else n.INVOKE_AGENT,
            n.PROVIDER: self._provider,
            n.MODEL: bill.model,
        }
        read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        used = [
            _measured(n.TOKEN_USAGE, count, {**shared, n.TOKEN_TYPE: kind})
            for kind, count in (("input", read), ("output", usage.output_tokens))
            if usage.tokens
        ]
        return [*_costs(bill.cost, labels), *_tokens(usage, labels), *used]

    def _reserved(self, event: e.Event, state: RunState) -> list[Measured]:
        if not isinstance(event, _FLYING):
            return []
        cost, labels = reserved(state.learnt, state.held.values()), {n.L_MILESTONE: self._plan}
        return [
            _measured(n.RESERVED, cost.reserved_usd, labels),
            _measured(n.RESERVED_MOST, cost.reserved_most_usd, labels),
        ]

    def _newly_stale(self, event: e.Event, state: RunState) -> list[Measured]:
        """Tasks that an edit of the plan made stale, or that were stale when merged."""
        if not isinstance(event, e.PlanRevised | e.TaskMerged | e.MergeStands):
            return []
        before, self._stale = self._stale, frozenset(state.stale)
        new = self._stale - before
        return [self._count("stale", len(new))] if new else []

    def _of_task(self, event: e.Event, state: RunState) -> list[Measured]:
        match event:
            case e.TaskMerged() | e.MergeStands():
                return [] if state.is_stale(event.task) else [self._count("completed", 1)]
            case e.TaskAbandoned():
                return [self._count("abandoned", 1)]
            case e.HelpNeeded():
                return [self._count("needs_human", 1)]
            case _:
                return []

    def _durations(self, spans: list[Span], state: RunState) -> list[Measured]:
        found: list[Measured] = []
        for span in spans:
            if span.name == n.TASK:
                id_, status = str(span.attributes[n.TASK_ID]), str(span.attributes[n.TASK_STATUS])
                begun = self._begun.setdefault(id_, span.start)
                if status in _SETTLED:
                    found.append(self._lasted(status, worked(state, begun, span.end)))
                    del self._begun[id_]
        return found

    def _count(self, status: str, value: int) -> Measured:
        return _measured(n.TASKS_TOTAL, value, {n.L_MILESTONE: self._plan, n.L_STATUS: status})

    def _lasted(self, status: str, seconds: float) -> Measured:
        labels = {n.L_MILESTONE: self._plan, n.L_STATUS: status}
        return _measured(n.TASK_DURATION, seconds, labels)

    def _labels(self, role: str, model: str) -> dict[str, str]:
        return {n.L_MILESTONE: self._plan, n.L_ROLE: role, n.L_MODEL: model}


def _costs(cost: Cost, labels: dict[str, str]) -> list[Measured]:
    amounts = {"spent": cost.spent_usd, "estimated": cost.estimated_usd}
    return [_measured(n.COST_TOTAL, usd, {**labels, n.L_TYPE: t}) for t, usd in amounts.items()]


def _tokens(usage: e.Usage, labels: dict[str, str]) -> list[Measured]:
    counts = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
    }
    return [_measured(n.TOKENS_TOTAL, c, {**labels, n.L_TYPE: t}) for t, c in counts.items()]


def _measured(instrument: Instrument, value: float, attributes: Attributes) -> Measured:
    return Measured(instrument=instrument, value=value, attributes=attributes)
