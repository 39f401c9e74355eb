"""What requests of agents cost: in flight, lost, and as learnt from those that were answered.

Rule 1: a request in flight counts at the most it can cost; screens show what it is expected to.
Rule 2: a request whose answer was never seen whole counts at the larger of what was streamed and
the run's 95th percentile, but no percentile raises it above its reservation. Where the run has no
answered request yet, a lost request counts at its reservation. Rule 3: all of it follows from the
facts alone.
"""

import math
from collections.abc import Mapping

from msgspec import Struct, structs

from windlass.core.events.values import Amount, Usage

RECENT = 200
"""How many of the newest answered requests the percentile is taken from."""
PERCENTILE = 0.95
FIRST_SHARE = 0.1
"""The part of its most that a request is expected to cost while the run has answered none."""


class Request(Struct, frozen=True, kw_only=True):
    """A request in flight."""

    task: str
    role: str
    model: str
    most: Amount
    streamed: Usage = Usage()
    """What it had come to when that was last recorded."""


class Mean(Struct, frozen=True):
    """A running mean."""

    count: int = 0
    usd: float = 0.0

    def plus(self, usd: float) -> "Mean":
        """The mean with one more."""
        return Mean(self.count + 1, self.usd + usd)


class Learnt(Struct, frozen=True, kw_only=True):
    """What the answered requests of a run came to."""

    recent: tuple[Amount, ...] = ()
    """The newest of them, in order."""
    means: Mapping[str, Mean] = {}
    """By role and model, by role, and (the empty key) of all."""

    def plus(self, role: str, model: str, usage: Usage) -> "Learnt":
        """The same with one more request; one that is not known or was free teaches nothing."""
        if not usage.known or usage.cost_usd <= 0:
            return self
        keys = _keys(role, model)
        means = {key: self.means.get(key, Mean()).plus(usage.cost_usd) for key in keys}
        newest = (*self.recent, Amount(usd=usage.cost_usd, tokens=usage.tokens))
        return Learnt(recent=newest[-RECENT:], means={**self.means, **means})

    def percentile(self) -> Amount | None:
        """The 95th percentile (nearest rank) of money and of tokens; None where none is known."""
        if not self.recent:
            return None
        rank = math.ceil(PERCENTILE * len(self.recent)) - 1
        return Amount(
            usd=sorted(each.usd for each in self.recent)[rank],
            tokens=sorted(each.tokens for each in self.recent)[rank],
        )

    def lost(self, request: Request) -> Usage:
        """What a request counts for whose process is gone."""
        likely = self.percentile() or request.most
        return _at_least(request.streamed, _lower(likely, request.most))

    def broken_off(self, request: Request, streamed: Usage) -> Usage:
        """What a request counts for whose answer broke off while the meter read it."""
        likely = self.percentile()
        if likely is None:
            return structs.replace(streamed, known=False)
        return _at_least(streamed, _lower(likely, request.most))

    def expected_usd(self, request: Request) -> float:
        """What it is expected to cost, never more than the most it can."""
        found = (self.means.get(key) for key in _keys(request.role, request.model))
        mean = next(filter(None, found), None)
        usd = mean.usd / mean.count if mean is not None else request.most.usd * FIRST_SHARE
        return min(max(usd, request.streamed.cost_usd), request.most.usd)


def _keys(role: str, model: str) -> tuple[str, str, str]:
    return f"{role} {model}", role, ""


def _lower(one: Amount, other: Amount) -> Amount:
    return Amount(usd=min(one.usd, other.usd), tokens=min(one.tokens, other.tokens))


def _at_least(streamed: Usage, amount: Amount) -> Usage:
    """The usage, raised to an amount; tokens that nothing tells the kind of count as input."""
    return structs.replace(
        streamed,
        cost_usd=max(streamed.cost_usd, amount.usd),
        input_tokens=streamed.input_tokens + max(0, amount.tokens - streamed.tokens),
        known=False,
    )
