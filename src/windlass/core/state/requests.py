"""The cost of agent requests: in flight, lost, and expected from earlier answers.

Rule 1: a request in flight counts at the most it can cost; screens show the expected cost.
Rule 2: a request without a complete answer counts at the larger of the streamed usage and the
run's 95th percentile; the percentile never raises it above its reservation. Before the run's first
answered request, it counts at its reservation. It does not matter how the answer was lost: the
agent was stopped, ran out of time or hung up, the connection broke, or the process of the run died.
Rule 3: all of it follows from the facts alone.
"""

import math
from collections.abc import Mapping

from msgspec import Struct, structs

from windlass.core.events.values import Amount, Usage

RECENT = 200
"""How many of the newest answered requests the percentile is taken from."""
PERCENTILE = 0.95
FIRST_SHARE = 0.1
"""The expected share of a request's maximum, before the run's first answered request."""


class Request(Struct, frozen=True, kw_only=True):
    """A request in flight."""

    task: str
    role: str
    model: str
    most: Amount
    streamed: Usage = Usage()
    """The usage that was last recorded."""


class Mean(Struct, frozen=True):
    count: int = 0
    usd: float = 0.0

    def plus(self, usd: float) -> "Mean":
        return Mean(self.count + 1, self.usd + usd)


class Learnt(Struct, frozen=True, kw_only=True):
    """The usage of a run's answered requests."""

    recent: tuple[Amount, ...] = ()
    """The newest, in order."""
    means: Mapping[str, Mean] = {}
    """By role and model, by role, and over all (the empty key)."""

    def plus(self, role: str, model: str, usage: Usage) -> "Learnt":
        """With one more request; one with unknown or no cost is ignored."""
        if not usage.known or usage.cost_usd <= 0:
            return self
        keys = _keys(role, model)
        means = {key: self.means.get(key, Mean()).plus(usage.cost_usd) for key in keys}
        newest = (*self.recent, Amount(usd=usage.cost_usd, tokens=usage.tokens))
        return Learnt(recent=newest[-RECENT:], means={**self.means, **means})

    def percentile(self) -> Amount | None:
        """The 95th percentile (nearest rank) of money and of tokens; None without any request."""
        if not self.recent:
            return None
        rank = math.ceil(PERCENTILE * len(self.recent)) - 1
        return Amount(
            usd=sorted(each.usd for each in self.recent)[rank],
            tokens=sorted(each.tokens for each in self.recent)[rank],
        )

    def lost(self, request: Request) -> Usage:
        """The usage to count for a request whose answer was never seen whole."""
        likely = self.percentile() or request.most
        return _at_least(request.streamed, _lower(likely, request.most))

    def settled(self, request: Request, usage: Usage, *, broke_off: bool) -> Usage:
        """The usage to count for a request that ended, of which this usage was seen."""
        return self.lost(structs.replace(request, streamed=usage)) if broke_off else usage

    def expected_usd(self, request: Request) -> float:
        """The expected cost, at most the request's maximum."""
        found = (self.means.get(key) for key in _keys(request.role, request.model))
        mean = next(filter(None, found), None)
        usd = mean.usd / mean.count if mean is not None else request.most.usd * FIRST_SHARE
        return min(max(usd, request.streamed.cost_usd), request.most.usd)


def _keys(role: str, model: str) -> tuple[str, str, str]:
    return f"{role} {model}", role, ""


def _lower(one: Amount, other: Amount) -> Amount:
    return Amount(usd=min(one.usd, other.usd), tokens=min(one.tokens, other.tokens))


def _at_least(streamed: Usage, amount: Amount) -> Usage:
    """The usage, raised to an amount; tokens of unknown kind count as input."""
    return structs.replace(
        streamed,
        cost_usd=max(streamed.cost_usd, amount.usd),
        input_tokens=streamed.input_tokens + max(0, amount.tokens - streamed.tokens),
        known=False,
    )
