"""What an answer says it used, all of it, in money and tokens. Pure.

Rule 1: every number has a price. One with a name that is not known counts as so many tokens of the
dearest kind, and is said to be unknown; a word that is not known has no number, and is said so too.
Rule 2: what is no count (below nothing, beyond all reason, a fraction, a word) is an error of the
provider. Rule 3: the numbers of a stream are running totals, so of two the larger counts.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from msgspec import Struct, structs

from windlass.adapters.meter.wire.anthropic.prices import DEAREST, MILLION, SEARCH, cost
from windlass.core.events.model import Usage

MOST_COUNTED = 1_000_000_000
"""Tokens, or anything else, that one answer can have used; more is a mistake."""
FAST = 6.0
"""By how much fast mode is dearer, where it is dearest."""
US = 1.1
"""By how much it is dearer to be answered in the United States."""
WORST = FAST * US

_SPEED = {"standard": 1.0, "fast": FAST}
_GEO = {"": 1.0, "global": 1.0, "not_available": 1.0, "us": US}
_TIER = {"standard": 1.0, "batch": 1.0}
_FACTORS = {"speed": (_SPEED, FAST), "inference_geo": (_GEO, US), "service_tier": (_TIER, FAST)}


class NonsenseError(ValueError):
    """Numbers that cannot be: the provider's mistake."""


class Told(Struct, frozen=True, kw_only=True):
    """What an answer has told of its usage so far."""

    own: Usage = Usage()
    """The request's own tokens."""
    hour: int = 0
    """Of those written to the cache, the ones that stay there for an hour."""
    searches: int = 0
    rounds: Usage = Usage()
    """The same tokens, told round by round."""
    rounds_usd: float = 0.0
    beside: Usage = Usage()
    """What was read and written beside it: compaction, another model."""
    beside_usd: float = 0.0
    factor: float = 1.0
    """By how much this way of answering is dearer."""
    guessed: float = 1.0
    """And by how much it may be, where a word is not known."""
    unknown_usd: float = 0.0
    """What the numbers come to whose names are not known."""
    known: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether it told of nothing at all."""
        return not (self.own.tokens + self.rounds.tokens + self.beside.tokens + self.unknown_usd)

    @property
    def tokens(self) -> Usage:
        """All tokens."""
        return _larger(self.own, self.rounds) + self.beside

    def usd(self, model: str) -> float:
        """What all that is known comes to."""
        own = cost(model, self.own, hour_tokens=self.hour)
        return (max(own, self.rounds_usd) + self.beside_usd) * self.factor + self.searches * SEARCH

    def most_usd(self, model: str) -> float:
        """The same with what is not known, at its worst."""
        return self.usd(model) * self.guessed + self.unknown_usd

    def joined(self, other: "Told") -> "Told":
        """Both, as running totals."""
        return Told(
            own=_larger(self.own, other.own),
            hour=max(self.hour, other.hour),
            searches=max(self.searches, other.searches),
            rounds=_larger(self.rounds, other.rounds),
            rounds_usd=max(self.rounds_usd, other.rounds_usd),
            beside=_larger(self.beside, other.beside),
            beside_usd=max(self.beside_usd, other.beside_usd),
            factor=max(self.factor, other.factor),
            guessed=max(self.guessed, other.guessed),
            unknown_usd=max(self.unknown_usd, other.unknown_usd),
            known=self.known and other.known,
        )


def read_usage(model: str, given: object) -> Told:
    """What this usage of an answer tells; numbers that cannot be are an error."""
    if given is None:
        return Told()
    fields = dict(_object(given))
    rounds = fields.pop("iterations", None)
    told, unknown = _level(fields)
    for each in _list(rounds):
        one, more = _level(dict(_object(each)))
        unknown += more
        told = _with_round(told, one, _object(each), model)
    priced, worded = _unknown(unknown)
    known = told.known and not priced and not worded
    return structs.replace(told, unknown_usd=priced * DEAREST / MILLION, known=known)


def _level(fields: dict[str, Any]) -> tuple[Told, list[Any]]:
    """The tokens that are told in one place, and all that is not known there."""
    written, served = (dict(_object(fields.pop(name, None))) for name in _NESTED)
    details = dict(_object(fields.pop("output_tokens_details", None)))
    _count(details.pop("thinking_tokens", 0))  # they are among those written
    _count(served.pop("web_fetch_requests", 0))  # what is fetched is counted as input
    hour = _count(written.pop("ephemeral_1h_input_tokens", 0))
    short = _count(written.pop("ephemeral_5m_input_tokens", 0))
    factor, guessed, known = _factor(fields)
    told = Told(
        own=Usage(
            input_tokens=_count(fields.pop("input_tokens", 0)),
            output_tokens=_count(fields.pop("output_tokens", 0)),
            cache_read_tokens=_count(fields.pop("cache_read_input_tokens", 0)),
            cache_write_tokens=max(
                _count(fields.pop("cache_creation_input_tokens", 0)), hour + short
            ),
        ),
        hour=hour,
        searches=_count(served.pop("web_search_requests", 0)),
        factor=factor,
        guessed=guessed,
        known=known,
    )
    for name in ("type", "model"):  # of a round; its reader looks at them
        fields.pop(name, None)
    return told, [*fields.values(), *written.values(), *served.values(), *details.values()]


_NESTED = ("cache_creation", "server_tool_use")


def _with_round(told: Told, one: Told, given: Mapping[str, Any], model: str) -> Told:
    asked = given.get("model")
    whose = asked if isinstance(asked, str) else model
    usd = cost(whose, one.own, hour_tokens=one.hour) * one.factor
    changed: dict[str, Any] = {
        "searches": max(told.searches, one.searches),
        "guessed": max(told.guessed, one.guessed),
        "known": told.known and one.known,
    }
    if given.get("type") == "message":
        changed |= {"rounds": told.rounds + one.own, "rounds_usd": told.rounds_usd + usd}
    else:
        changed |= {"beside": told.beside + one.own, "beside_usd": told.beside_usd + usd}
    return structs.replace(told, **changed)


def _factor(fields: dict[str, Any]) -> tuple[float, float, bool]:
    factor, guessed, known = 1.0, 1.0, True
    for name, (words, worst) in _FACTORS.items():
        word = fields.pop(name, None)
        if word is None:
            continue
        if isinstance(word, str) and word in words:
            factor *= words[word]
        else:
            guessed, known = guessed * worst, False
    return factor, guessed, known


def _unknown(values: Iterable[Any]) -> tuple[int, bool]:
    """The sum of all numbers in there, and whether there is anything else."""
    total, worded = 0, False
    left = [*values]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(cast("dict[str, Any]", value).values())
        elif isinstance(value, list):
            left.extend(cast("list[Any]", value))
        elif isinstance(value, str | bool):
            worded = worded or bool(value)
        else:
            total += _count(value)
    return total, worded


def _count(value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_COUNTED:
        raise NonsenseError("the provider's answer tells of a usage that cannot be")
    return value


def _object(value: object) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NonsenseError("the provider's answer tells of its usage in words that cannot be read")
    return cast("dict[str, Any]", value)


def _list(value: object) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise NonsenseError("the provider's answer tells of its usage in words that cannot be read")
    return cast("list[Any]", value)


def _larger(one: Usage, other: Usage) -> Usage:
    return Usage(
        input_tokens=max(one.input_tokens, other.input_tokens),
        output_tokens=max(one.output_tokens, other.output_tokens),
        cache_read_tokens=max(one.cache_read_tokens, other.cache_read_tokens),
        cache_write_tokens=max(one.cache_write_tokens, other.cache_write_tokens),
    )
