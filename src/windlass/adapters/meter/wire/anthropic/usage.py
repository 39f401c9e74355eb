"""The usage that an answer reports, in money and tokens. Pure.

Rule 1: every number has a price. One with an unknown name counts as tokens of the most expensive
kind; it, and an unknown word, make the usage uncertain (`known`). Rule 2: an invalid count
(negative, absurdly large, a fraction, a word) is an error of the provider. Rule 3: the numbers of a
stream are running totals, so of two the larger counts.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from msgspec import Struct, structs

from windlass.adapters.meter.wire.anthropic.prices import DEAREST, MILLION, SEARCH, cost
from windlass.core.events.model import Usage

MOST_COUNTED = 1_000_000_000
"""The most of anything that one answer can have used; more is a mistake."""
FAST = 6.0
"""The highest price factor of fast mode."""
US = 1.1
"""The price factor of an answer from the United States."""
WORST = FAST * US

_SPEED = {"standard": 1.0, "fast": FAST}
_GEO = {"": 1.0, "global": 1.0, "not_available": 1.0, "us": US}
_TIER = {"standard": 1.0, "batch": 1.0}
_FACTORS = {"speed": (_SPEED, FAST), "inference_geo": (_GEO, US), "service_tier": (_TIER, FAST)}


class NonsenseError(ValueError):
    """Impossible numbers: the provider's mistake."""


class ReportedUsage(Struct, frozen=True, kw_only=True):
    """What an answer has reported so far."""

    own: Usage = Usage()
    """The request's own tokens."""
    hour: int = 0
    """Tokens written to the cache that stay there for an hour."""
    searches: int = 0
    rounds: Usage = Usage()
    """The same tokens, reported round by round."""
    rounds_usd: float = 0.0
    beside: Usage = Usage()
    """Additional tokens: compaction, another model."""
    beside_usd: float = 0.0
    factor: float = 1.0
    """The price factor of this kind of answer."""
    guessed: float = 1.0
    """The highest factor that an unknown word can mean."""
    unknown_usd: float = 0.0
    """The cost of numbers with unknown names."""
    known: bool = True

    @property
    def is_empty(self) -> bool:
        return not (self.own.tokens + self.rounds.tokens + self.beside.tokens + self.unknown_usd)

    @property
    def tokens(self) -> Usage:
        return _larger(self.own, self.rounds) + self.beside

    def usd(self, model: str) -> float:
        """The cost of everything known."""
        own = cost(model, self.own, hour_tokens=self.hour)
        return (max(own, self.rounds_usd) + self.beside_usd) * self.factor + self.searches * SEARCH

    def most_usd(self, model: str) -> float:
        """The same, with the unknown at its worst."""
        return self.usd(model) * self.guessed + self.unknown_usd

    def joined(self, other: "ReportedUsage") -> "ReportedUsage":
        """Both, as running totals."""
        return ReportedUsage(
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


def read_usage(model: str, given: object) -> ReportedUsage:
    """Parse the usage of an answer; impossible numbers raise."""
    if given is None:
        return ReportedUsage()
    fields = dict(_object(given))
    rounds = fields.pop("iterations", None)
    reported, unknown = _level(fields)
    for each in _list(rounds):
        one, more = _level(dict(_object(each)))
        unknown += more
        reported = _with_round(reported, one, _object(each), model)
    priced, worded = _unknown(unknown)
    known = reported.known and not priced and not worded
    return structs.replace(reported, unknown_usd=priced * DEAREST / MILLION, known=known)


def _level(fields: dict[str, Any]) -> tuple[ReportedUsage, list[Any]]:
    """The tokens of one level, and its unknown values."""
    written, served = (dict(_object(fields.pop(name, None))) for name in _NESTED)
    details = dict(_object(fields.pop("output_tokens_details", None)))
    _count(details.pop("thinking_tokens", 0))  # included in the output
    _count(served.pop("web_fetch_requests", 0))  # fetched content counts as input
    hour = _count(written.pop("ephemeral_1h_input_tokens", 0))
    short = _count(written.pop("ephemeral_5m_input_tokens", 0))
    factor, guessed, known = _factor(fields)
    reported = ReportedUsage(
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
    for name in ("type", "model"):  # of a round; read elsewhere
        fields.pop(name, None)
    return reported, [*fields.values(), *written.values(), *served.values(), *details.values()]


_NESTED = ("cache_creation", "server_tool_use")


def _with_round(
    reported: ReportedUsage, one: ReportedUsage, given: Mapping[str, Any], model: str
) -> ReportedUsage:
    asked = given.get("model")
    whose = asked if isinstance(asked, str) else model
    usd = cost(whose, one.own, hour_tokens=one.hour) * one.factor
    changed: dict[str, Any] = {
        "searches": max(reported.searches, one.searches),
        "guessed": max(reported.guessed, one.guessed),
        "known": reported.known and one.known,
    }
    if given.get("type") == "message":
        changed |= {"rounds": reported.rounds + one.own, "rounds_usd": reported.rounds_usd + usd}
    else:
        changed |= {"beside": reported.beside + one.own, "beside_usd": reported.beside_usd + usd}
    return structs.replace(reported, **changed)


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
        raise NonsenseError("its answer reports an impossible usage")
    return value


def _object(value: object) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NonsenseError("its answer reports its usage in an unknown form")
    return cast("dict[str, Any]", value)


def _list(value: object) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise NonsenseError("its answer reports its usage in an unknown form")
    return cast("list[Any]", value)


def _larger(one: Usage, other: Usage) -> Usage:
    return Usage(
        input_tokens=max(one.input_tokens, other.input_tokens),
        output_tokens=max(one.output_tokens, other.output_tokens),
        cache_read_tokens=max(one.cache_read_tokens, other.cache_read_tokens),
        cache_write_tokens=max(one.cache_write_tokens, other.cache_write_tokens),
    )
