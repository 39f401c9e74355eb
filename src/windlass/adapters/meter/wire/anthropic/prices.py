"""What tokens cost, by model: the price list. Pure.

Rule: never too low. An unknown model costs as much as the most expensive, and an ambiguous name as
much as the most expensive that it can mean.
"""

import re

from msgspec import Struct

from windlass.core.events.model import Usage

MILLION = 1_000_000
CACHE_WRITE = 1.25
"""The price of a token written to the cache, in tokens of input."""
HOUR_WRITE = 2.0
"""The same, for one that stays there for an hour."""
CACHE_READ = 0.1
"""The same, for one read from it."""
SEARCH = 0.01
"""US dollars for a search of the web."""
LONG = 200_000
"""Tokens of input beyond which a request costs more, for some models."""
LONG_INPUT, LONG_OUTPUT = 2.0, 1.5
"""The factor for all of it, not only the part beyond."""


class Price(Struct, frozen=True):
    """US dollars for a million tokens."""

    input: float
    output: float
    grows: bool = False
    """Whether a request with a long input costs more."""


class _Row(Struct, frozen=True):
    family: str
    since: tuple[int, ...]
    price: Price


_LIST = (
    _Row("opus", (4, 5), Price(5, 25)),
    _Row("opus", (), Price(15, 75)),
    _Row("sonnet", (4, 6), Price(3, 15)),
    _Row("sonnet", (), Price(3, 15, grows=True)),
    _Row("haiku", (4, 5), Price(1, 5)),
    _Row("haiku", (), Price(0.8, 4)),
)
"""The newest of each family first."""


def price(model: str) -> Price:
    """The price of a model, by the family and version in its name."""
    words = re.split(r"[^a-z0-9]+", model.lower())
    # More digits are a date.
    version = tuple(int(word) for word in words if re.fullmatch(r"[0-9]{1,2}", word))[:2]
    family = [row for row in _LIST if row.family in words]
    if not family or not version:
        dearest = max(family or _LIST, key=lambda row: (row.price.output, row.price.grows))
        return dearest.price
    return next(row.price for row in family if row.since <= version)


def dearer(asked: str, answered: str) -> str:
    """The model to pay for: the one that answered, if it is known and costs more."""
    words = re.split(r"[^a-z0-9]+", answered.lower())
    is_known = any(row.family in words for row in _LIST)
    return answered if is_known and price(answered).output > price(asked).output else asked


DEAREST = max(row.price.output for row in _LIST)
"""US dollars for a million tokens of the most expensive kind."""


def cost(model: str, usage: Usage, *, hour_tokens: int = 0) -> float:
    """The cost of these tokens in US dollars; `hour_tokens` of them stay cached for an hour."""
    each = price(model)
    if each.grows and _input(usage) > LONG:
        each = Price(each.input * LONG_INPUT, each.output * LONG_OUTPUT)
    read = (
        usage.input_tokens
        + usage.cache_write_tokens * CACHE_WRITE
        + hour_tokens * (HOUR_WRITE - CACHE_WRITE)
        + usage.cache_read_tokens * CACHE_READ
    )
    return (read * each.input + usage.output_tokens * each.output) / MILLION


def _input(usage: Usage) -> int:
    return usage.input_tokens + usage.cache_write_tokens + usage.cache_read_tokens
