"""What a request costs: at the most before it is sent, so far while it runs, and in the end. Pure.

Rule 1: never less than true. A model nobody knows costs what the dearest does, an input is counted
from its length, high, or as all that a model can read (`reach.py`), and an answer that breaks off
counts for every byte of it that was seen, or whole where none could be seen before its end.
Rule 2: an estimate is never more than was reserved for it, and says that it is one (`known`).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, structs

from windlass.adapters.meter.reach import reach
from windlass.events.model import Usage

MILLION = 1_000_000
CACHE_WRITE = 1.25
"""What a token written to the cache costs, in tokens of input."""
HOUR_WRITE = 2.0
"""And one that is to stay there for an hour."""
CACHE_READ = 0.1
"""And one read from it."""
SEARCH = 0.01
"""US dollars for a search of the web."""
LONG = 200_000
"""Tokens of input beyond which a request is dearer, for the models where it is."""
LONG_INPUT, LONG_OUTPUT = 2.0, 1.5
"""By how much; all of it, not only what is beyond."""
MOST_OUTPUT = 128_000
"""The most tokens that any model writes in one answer, whatever it is allowed."""
ANSWER_BYTES = 3
"""Bytes of a stream to the token: with all that surrounds the words it has many more."""


class Price(Struct, frozen=True):
    """US dollars for a million tokens."""

    input: float
    output: float
    grows: bool = False
    """Whether a request with a long input is dearer."""


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
"""Of each family the newest first."""


def price(model: str) -> Price:
    """The price of a model by its name, wherever in it the family and the version stand."""
    words = re.split(r"[^a-z0-9]+", model.lower())
    # What has more digits is a date.
    version = tuple(int(word) for word in words if re.fullmatch(r"[0-9]{1,2}", word))[:2]
    family = [row for row in _LIST if row.family in words]
    if not family or not version:
        dearest = max(family or _LIST, key=lambda row: (row.price.output, row.price.grows))
        return dearest.price
    return next(row.price for row in family if row.since <= version)


class Extra(Struct, frozen=True, kw_only=True):
    """What makes a request dearer and is no number of its usage."""

    hour_tokens: int = 0
    """How many of those written to the cache stay there for an hour."""
    searches: int = 0


NO_EXTRA = Extra()


def cost(model: str, usage: Usage, extra: Extra = NO_EXTRA) -> float:
    """What these tokens cost, in US dollars."""
    each = price(model)
    if each.grows and _input(usage) > LONG:
        each = Price(each.input * LONG_INPUT, each.output * LONG_OUTPUT)
    read = (
        usage.input_tokens
        + usage.cache_write_tokens * CACHE_WRITE
        + extra.hour_tokens * (HOUR_WRITE - CACHE_WRITE)
        + usage.cache_read_tokens * CACHE_READ
    )
    tokens = (read * each.input + usage.output_tokens * each.output) / MILLION
    return tokens + extra.searches * SEARCH


def _input(usage: Usage) -> int:
    return usage.input_tokens + usage.cache_write_tokens + usage.cache_read_tokens


def bound(model: str, body: Mapping[str, Any]) -> float:
    """The most that one request can cost, in US dollars."""
    return Tally(model, body).bound


class Asked(Struct, frozen=True):
    """What a request must say to be priced; the provider would refuse it without as well."""

    model: Annotated[str, Meta(max_length=200)]
    """Bounded, for it is written down with each request."""
    max_tokens: Annotated[int, Meta(ge=0, le=2**63 - 1)]


class _Written(Struct):
    ephemeral_1h_input_tokens: int | None = None


class _Served(Struct):
    web_search_requests: int | None = None


class _Tokens(Struct):
    """Usage in the words of the Messages API, which leaves out or nulls what it has no news of."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation: _Written | None = None
    server_tool_use: _Served | None = None


class _Message(Struct):
    usage: _Tokens


class _Event(Struct):
    type: str
    message: _Message | None = None
    usage: _Tokens | None = None


class Tally:
    """What one answer has used, as far as it has been read."""

    def __init__(self, model: str, body: Mapping[str, Any]) -> None:
        self._model = model
        can = reach(msgspec.json.encode(body))
        self._most = Usage(
            cache_write_tokens=can.tokens,
            output_tokens=min(int(body.get("max_tokens", 0)), MOST_OUTPUT),
        )
        self._dearest = Extra(hour_tokens=can.tokens if can.for_an_hour else 0)
        self._streams = can.streams
        self._seen: Usage | None = None
        self._extra = NO_EXTRA
        self._bytes = 0
        self._line = b""
        self.whole = False
        """Whether the answer has come to its end, so that its own numbers are final."""

    @property
    def bound(self) -> float:
        """The most it can come to."""
        return cost(self._model, self._most, self._dearest)

    def read_stream(self, chunk: bytes) -> None:
        """Take in the next bytes of a stream, wherever they are cut."""
        self._bytes += len(chunk)
        for event in self._events(chunk):
            if event.type == "message_start" and event.message is not None:
                self._count(event.message.usage)
            elif event.type == "message_delta" and event.usage is not None:
                self._count(event.usage)
            elif event.type == "message_stop":
                self.whole = self._seen is not None

    def read_document(self, body: bytes) -> None:
        """Take in an answer that came in one piece."""
        self._bytes += len(body)
        try:
            self._count(msgspec.json.decode(body, type=_Message).usage)
        except msgspec.MsgspecError:
            return  # it is estimated, like one that broke off
        self.whole = True

    def usage(self) -> Usage:
        """What it has come to: its own numbers at its end, an estimate before."""
        if self.whole and self._seen is not None:
            spent = cost(self._model, self._seen, self._extra)
            return structs.replace(self._seen, cost_usd=spent)
        begun, extra = self._seen, self._extra
        if begun is None:
            # What comes in one piece may be written to its end before any of it is seen.
            unseen = 0 if self._streams else self._most.output_tokens
            begun, extra = structs.replace(self._most, output_tokens=unseen), self._dearest
        passed = max(begun.output_tokens, self._bytes // ANSWER_BYTES)
        so_far = structs.replace(begun, output_tokens=min(passed, self._most.output_tokens))
        spent = min(cost(self._model, so_far, extra), self.bound)
        return structs.replace(so_far, cost_usd=spent, known=False)

    def _count(self, told: _Tokens) -> None:
        # The numbers are running totals, and a later event may leave some of them out.
        seen = self._seen or Usage()
        self._seen = Usage(
            input_tokens=max(seen.input_tokens, told.input_tokens or 0),
            output_tokens=max(seen.output_tokens, told.output_tokens or 0),
            cache_read_tokens=max(seen.cache_read_tokens, told.cache_read_input_tokens or 0),
            cache_write_tokens=max(seen.cache_write_tokens, told.cache_creation_input_tokens or 0),
        )
        written, served = told.cache_creation or _Written(), told.server_tool_use or _Served()
        hour, searches = written.ephemeral_1h_input_tokens, served.web_search_requests
        self._extra = Extra(
            hour_tokens=max(self._extra.hour_tokens, hour or 0),
            searches=max(self._extra.searches, searches or 0),
        )

    def _events(self, chunk: bytes) -> Iterator[_Event]:
        *lines, self._line = (self._line + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                try:
                    yield msgspec.json.decode(line.removeprefix(b"data:"), type=_Event)
                except msgspec.MsgspecError:
                    continue  # what cannot be read is passed on all the same
