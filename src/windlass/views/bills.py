"""What was paid for what: every agent's use by plan, run, task, role and model.

Derived from the facts: from the meter if there is one, else from the agents' own reports. A request
whose answer was lost is an estimate, by the same rule as in the run's state.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.values import Amount
from windlass.core.state.requests import Learnt, Request
from windlass.views.cost import Cost, cost_of, reserved, total

By: TypeAlias = Literal["plan", "run", "task", "role", "model"]

NOT_RECORDED = "not recorded"


class Bill(Struct, frozen=True, kw_only=True):
    """The usage of one agent, or of one request."""

    plan: str
    run: str
    task: str
    role: str
    model: str
    usage: e.Usage
    request: str = ""
    """The request's id; empty for an agent's own report."""
    held: Cost | None = None
    """The reserved amount, while the request is in flight."""

    @property
    def cost(self) -> Cost:
        return self.held or cost_of(self.usage)


def bills(plan: str, events: Iterable[e.Event], *, live: bool = False) -> list[Bill]:
    """Every bill of a plan's journal, in order.

    `live`: a process runs the plan, so unsettled requests are in flight.
    """
    ledger = Ledger(plan)
    found = [bill for event in events for bill in ledger.see(event)]
    return [*found, *(ledger.in_flight() if live else ledger.write_off())]


def recovered_runs(events: Iterable[e.Event]) -> set[str]:
    """The runs whose cost is partly unknown, because their journal was lost."""
    found, run = set[str](), ""
    for event in events:
        if isinstance(event, e.RunStarted):
            run = event.run
        elif isinstance(event, e.RunRecovered):
            found.add(run)
    return found


class Ledger:
    """Turns facts into bills, one fact at a time."""

    def __init__(self, plan: str) -> None:
        self._plan = plan
        self._run = ""
        self._learnt = Learnt()
        self._open: dict[str, Request] = {}

    def see(self, event: e.Event) -> list[Bill]:
        """The bills that this fact adds."""
        match event:
            case e.RunStarted():
                left = self.write_off()
                self._run, self._learnt = event.run, Learnt()
                return left
            case e.RunResumed() | e.RunEnded():
                return self.write_off()
            case e.SpendReserved():
                most = Amount(usd=event.usd, tokens=event.tokens)
                asked = Request(task=event.task, role=event.role, model=event.model, most=most)
                self._open[event.id] = asked
            case e.SpendStreamed():
                if (asked := self._open.get(event.id)) is not None:
                    self._open[event.id] = replace(asked, streamed=event.usage)
            case e.SpendSettled():
                return [self._settled(event)]
            case e.PlayerFinished() | e.PlayerFailed() | e.CoachAnswered() | e.CoachFailed():
                return [_reported(self._plan, self._run, event)] if event.usage != e.Usage() else []
            case _:
                pass
        return []

    def write_off(self) -> list[Bill]:
        """Estimates for the requests that no process will settle; returned once."""
        left, self._open = self._open, {}
        return [self._bill(id_, each, self._learnt.lost(each)) for id_, each in left.items()]

    def in_flight(self) -> Iterator[Bill]:
        """The amounts reserved for unsettled requests."""
        for id_, each in self._open.items():
            yield replace(self._bill(id_, each, e.Usage()), held=reserved(self._learnt, [each]))

    def _settled(self, event: e.SpendSettled) -> Bill:
        asked, usage = self._open.pop(event.id, None), event.usage
        if asked is None:  # its reservation is missing, but it was paid for
            role = model = NOT_RECORDED
            asked = Request(task=event.task, role=role, model=model, most=Amount())
            return self._bill(event.id, asked, usage)
        usage = self._learnt.settled(asked, usage, broke_off=event.broke_off)
        self._learnt = self._learnt.plus(asked.role, asked.model, usage)
        return self._bill(event.id, asked, usage)

    def _bill(self, id_: str, asked: Request, usage: e.Usage) -> Bill:
        return Bill(
            plan=self._plan,
            run=self._run,
            task=asked.task,
            role=asked.role,
            model=asked.model,
            usage=usage,
            request=id_,
        )


def totals(all_bills: Iterable[Bill], by: By) -> dict[str, Cost]:
    """The sums by plan, run, task, role or model; the most expensive first."""
    sums: dict[str, list[Cost]] = {}
    for bill in all_bills:
        key: str = getattr(bill, by)
        if by == "task":
            key = f"{bill.plan}:{bill.task}"
        sums.setdefault(key, []).append(bill.cost)
    costs = {key: total(each) for key, each in sums.items()}
    return dict(sorted(costs.items(), key=lambda item: (-item[1].cost_usd, item[0])))


def whole(all_bills: Iterable[Bill]) -> Cost:
    return total(bill.cost for bill in all_bills)


def _reported(
    plan: str, run: str, event: e.PlayerFinished | e.PlayerFailed | e.CoachAnswered | e.CoachFailed
) -> Bill:
    role = "player" if isinstance(event, e.PlayerFinished | e.PlayerFailed) else "coach"
    model = event.model if isinstance(event, e.PlayerFinished | e.CoachAnswered) else ""
    return Bill(
        plan=plan,
        run=run,
        task=event.task,
        role=role,
        model=model or NOT_RECORDED,
        usage=event.usage,
    )
