"""What was paid for what: every agent's use by plan, run, task, role and model.

Law: derived from facts every time. By the meter where there is one, else by the agents' own
account; a request that nobody settled counts at the most it can have cost, and is said not to be
known.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from windlass.events import model as e

By: TypeAlias = Literal["plan", "run", "task", "role", "model"]

NOT_RECORDED = "not recorded"


class Bill(Struct, frozen=True, kw_only=True):
    """One agent's use, or one request's."""

    plan: str
    run: str
    task: str
    role: str
    model: str
    usage: e.Usage


class Total(Struct, frozen=True, kw_only=True):
    """What bills come to."""

    cost_usd: float
    known: bool
    input_tokens: int
    output_tokens: int
    cached_tokens: int


def bills(plan: str, events: Iterable[e.Event]) -> list[Bill]:
    """Every bill of a plan's journal, in the order they came."""
    ledger = Ledger(plan)
    found = [bill for event in events if (bill := ledger.see(event)) is not None]
    return [*found, *ledger.unsettled()]


class Ledger:
    """Tells each bill as it comes."""

    def __init__(self, plan: str) -> None:
        self._plan = plan
        self._run = ""
        self._open: dict[str, tuple[str, e.SpendReserved]] = {}

    def see(self, event: e.Event) -> Bill | None:
        """The bill that this fact is, if it is one."""
        match event:
            case e.RunStarted():
                self._run = event.run
            case e.SpendReserved():
                self._open[event.id] = (self._run, event)
            case e.SpendSettled():
                # One whose intent is gone is still paid for.
                asked_in, asked = self._open.pop(event.id, (self._run, None))
                return _metered(self._plan, asked_in, event.task, asked, event.usage)
            case e.PlayerFinished() | e.PlayerFailed() | e.CoachAnswered() | e.CoachFailed():
                return _told(self._plan, self._run, event) if event.usage != e.Usage() else None
            case _:
                pass
        return None

    def unsettled(self) -> list[Bill]:
        """What nobody will settle any more, at the most it can have cost; told once."""
        left, self._open = self._open, {}
        return [
            _metered(self._plan, run, asked.task, asked, e.Usage(cost_usd=asked.usd, known=False))
            for run, asked in left.values()
        ]


def totals(all_bills: Iterable[Bill], by: By) -> dict[str, Total]:
    """The sums of what has the same plan, run, task, role or model; the dearest first."""
    sums: dict[str, e.Usage] = {}
    for bill in all_bills:
        key: str = getattr(bill, by)
        if by == "task":
            key = f"{bill.plan}:{bill.task}"
        sums[key] = sums.get(key, e.Usage()) + bill.usage
    dearest = sorted(sums.items(), key=lambda item: (-item[1].cost_usd, item[0]))
    return {key: total(usage) for key, usage in dearest}


def total(usage: e.Usage) -> Total:
    """A use as a sum."""
    return Total(
        cost_usd=round(usage.cost_usd, 6),
        known=usage.known,
        input_tokens=usage.input_tokens + usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
    )


def whole(all_bills: Iterable[Bill]) -> Total:
    """What all of them come to."""
    return total(sum((bill.usage for bill in all_bills), e.Usage()))


def _metered(plan: str, run: str, task: str, asked: e.SpendReserved | None, usage: e.Usage) -> Bill:
    role, model = (asked.role, asked.model) if asked is not None else (NOT_RECORDED, NOT_RECORDED)
    return Bill(plan=plan, run=run, task=task, role=role, model=model, usage=usage)


def _told(
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
