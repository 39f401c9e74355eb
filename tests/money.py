"""The cost of requests to the scripted model, at the prices that Windlass uses."""

from collections.abc import Iterable

from windlass.adapters.meter.wire.anthropic.prices import cost
from windlass.core.events.model import Usage
from windlass.testing.model.ledger import Seen


def charge(seen: Seen) -> float:
    """The cost of one request; 0 if no answer was begun."""
    if seen.usage is None:
        return 0.0
    used = Usage(
        input_tokens=seen.usage.input_tokens,
        output_tokens=seen.usage.output_tokens,
        cache_read_tokens=seen.usage.cache_read_input_tokens,
        cache_write_tokens=seen.usage.cache_creation_input_tokens,
    )
    return cost(seen.model, used)


def billed(requests: Iterable[Seen]) -> float:
    """The cost of all requests."""
    return sum(charge(seen) for seen in requests)
