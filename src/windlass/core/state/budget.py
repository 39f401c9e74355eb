"""One budget over all tasks, turns, retries and restarts: of money, and of tokens if set.

Law: a request may start if the amount spent, the maximum of all requests in flight and the maximum
of this one are together within the limit. So the limit is never exceeded where usage is known.
"""

import enum
from typing import TypeAlias, assert_never

from msgspec import structs

from windlass.core.events import model as e
from windlass.core.events.values import Amount, Usage
from windlass.core.state.layered import having
from windlass.core.state.model import RunState
from windlass.core.state.requests import Request

_UNLIMITED = 2**63
_SMALL = 0.01

Spending: TypeAlias = e.SpendReserved | e.SpendStreamed | e.SpendSettled | e.SpendRefused


class No(enum.Enum):
    """Why a request may not start now."""

    WAIT = "wait"
    """Requests in flight reserve the money; most of it will be released."""
    REFUSED = "refused"
    """Nothing is in flight, and too little is left."""


def used_up(state: RunState) -> str | None:
    """Why no agent may start any more; None while one may."""
    if (spent := _all_spent(state)) is not None:
        return spent
    return _too_small(state, state.short) if state.short is not None else None


def is_money_short(state: RunState) -> bool:
    """Whether the limit of money was reached, rather than that of tokens."""
    short = state.short or Amount()
    return state.spent.cost_usd + short.usd >= state.settings.max_cost


def left(state: RunState) -> Amount:
    """What is neither spent nor reserved for requests in flight."""
    settings, flying = state.settings, state.held.values()
    limit = _UNLIMITED if settings.max_tokens is None else settings.max_tokens
    usd = settings.max_cost - state.spent.cost_usd - sum(each.most.usd for each in flying)
    tokens = limit - state.spent.tokens - sum(each.most.tokens for each in flying)
    return Amount(usd=usd, tokens=tokens)


def grant(state: RunState, most: Amount, least: Amount) -> Amount | No:
    """What a request may spend: its maximum, or all that is left if its minimum fits.

    Less than the maximum is granted only if nothing is in flight: reservations are released later.
    """
    room = left(state)
    if _all_spent(state) is not None:
        return No.REFUSED
    if _fits(most, room):
        return most
    if state.held:
        return No.WAIT
    if _fits(least, room):
        return Amount(usd=min(most.usd, room.usd), tokens=min(most.tokens, room.tokens))
    return No.REFUSED


def with_spending(state: RunState, event: Spending) -> RunState:
    """The state after a fact about spending, which may come in any phase of its task."""
    state = structs.replace(state, at=event.at)
    match event:
        case e.SpendReserved():
            most = Amount(usd=event.usd, tokens=event.tokens)
            asked = Request(task=event.task, role=event.role, model=event.model, most=most)
            return structs.replace(state, held={**state.held, event.id: asked})
        case e.SpendStreamed():
            if (asked := state.held.get(event.id)) is None:
                return state
            asked = structs.replace(asked, streamed=event.usage)
            return structs.replace(state, held={**state.held, event.id: asked})
        case e.SpendSettled():
            return _settled(state, event)
        case e.SpendRefused():
            return structs.replace(state, short=Amount(usd=event.usd, tokens=event.tokens))
        case _:
            assert_never(event)


def written_off(state: RunState) -> RunState:
    """The state with all requests in flight counted as lost: no process can settle them."""
    for request in state.held.values():
        state = _counted(state, request.task, state.learnt.lost(request))
    return structs.replace(state, held={})


def estimated_usd(usage: Usage) -> float:
    """How much of a single usage is an estimate: all or nothing."""
    return 0.0 if usage.known else usage.cost_usd


def _settled(state: RunState, event: e.SpendSettled) -> RunState:
    usage, learnt = event.usage, state.learnt
    if (asked := state.held.get(event.id)) is not None:
        usage = learnt.settled(asked, usage, broke_off=event.broke_off)
        learnt = learnt.plus(asked.role, asked.model, usage)
    held = {id_: other for id_, other in state.held.items() if id_ != event.id}
    return _counted(structs.replace(state, held=held, learnt=learnt), event.task, usage)


def _counted(state: RunState, task_id: str, usage: Usage) -> RunState:
    task, more = state.tasks[task_id], estimated_usd(usage)
    task = structs.replace(task, spent=task.spent + usage, estimated_usd=task.estimated_usd + more)
    return structs.replace(
        state,
        tasks=having(state.tasks, task.id, task),
        spent=state.spent + usage,
        estimated_usd=state.estimated_usd + more,
    )


def _fits(amount: Amount, room: Amount) -> bool:
    return amount.usd <= room.usd and amount.tokens <= room.tokens


def _all_spent(state: RunState) -> str | None:
    settings = state.settings
    if state.spent.cost_usd >= settings.max_cost:
        return f"the budget of {_dollars(settings.max_cost)} is used up"
    if settings.max_tokens is not None and state.spent.tokens >= settings.max_tokens:
        return f"the budget of {settings.max_tokens} tokens is used up"
    return None


def _too_small(state: RunState, short: Amount) -> str:
    settings = state.settings
    if is_money_short(state):
        limit, needs = _dollars(settings.max_cost), _dollars(short.usd, up=True)
        room, option = _dollars(settings.max_cost - state.spent.cost_usd), "--max-cost"
    else:
        limit, needs = f"{settings.max_tokens} tokens", f"{short.tokens}"
        room, option = f"{(settings.max_tokens or 0) - state.spent.tokens}", "--max-tokens"
    if not state.spent.tokens and not state.spent.cost_usd:
        why = f"the budget of {limit} is too small for any request: the first one needs"
        return f"{why} at least {needs}; give more with {option}"
    return f"of the budget of {limit} {room} is left, and the next request needs at least {needs}"


def _dollars(usd: float, *, up: bool = False) -> str:
    """Dollars with enough digits to show a small amount; a need is rounded up."""
    digits = 4 if usd < _SMALL else 2
    least = 0.5 * 10**-digits if up else 0.0
    return f"${usd + least:.{digits}f}"
