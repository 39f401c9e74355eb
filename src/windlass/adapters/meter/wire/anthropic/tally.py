"""What one request costs: at most before it is sent, so far while it runs, and in the end. Pure.

Rule 1: the most is never too low. Input is overestimated from its length, or counts as all that a
model can read, as often as it can be read (`input_size.py`). Rule 2: an answer that is not complete
counts what it reported and every byte that was seen, and nothing else; what a lost answer may have
cost beyond that is the rule of `core/state/requests.py`. Rule 3: an estimate is marked as one
(`known`) and never exceeds the reservation, unless more was reported already. Rule 4: an answer in
one piece without a usage costs what was reserved; so does one with impossible numbers, which is the
provider's mistake.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct, structs

from windlass.adapters.meter.wire.anthropic.input_size import reach
from windlass.adapters.meter.wire.anthropic.prices import SEARCH, cost, dearer
from windlass.adapters.meter.wire.anthropic.requests import Asked
from windlass.adapters.meter.wire.anthropic.usage import NonsenseError, ReportedUsage, read_usage
from windlass.core.events.model import Usage
from windlass.core.events.values import Amount

MOST_OUTPUT = 128_000
"""The most tokens that any model writes in one answer, whatever its limit."""
ANSWER_BYTES = 3
"""Bytes of a stream per token: with its framing it has many more, so this overestimates."""
LONGEST_LINE = 64 * 2**20
"""Bytes of one line of a stream; no answer is that long."""
_NOTHING = frozenset({b"", b"null", b"{}"})
_USAGE = b'"usage"'


def bound(model: str, body: Mapping[str, Any]) -> float:
    """The most that one request can cost, in US dollars."""
    return Tally(model, body).bound


class _Message(Struct):
    usage: Raw = Raw()
    model: Raw = Raw()
    stop_reason: Raw = Raw()


class _Delta(Struct):
    stop_reason: Raw = Raw()


class _Event(Struct):
    type: str = ""
    message: _Message | None = None
    usage: Raw = Raw()
    delta: Raw = Raw()


class _Ends(Struct):
    max_tokens: int | None = None


class Tally:
    """The usage of one answer, as read so far."""

    def __init__(self, model: str, body: Mapping[str, Any] | Asked) -> None:
        self._model = self._payee = model
        content = msgspec.json.encode(body)
        can = reach(content)
        allowed = msgspec.json.decode(content, type=_Ends).max_tokens or 0
        self._rounds = can.rounds
        self._most = Usage(cache_write_tokens=can.tokens * can.rounds)
        self._most = self._writing(allowed)
        self._hour = self._most.cache_write_tokens if can.for_an_hour else 0
        self._searches = can.rounds - 1
        self._reported: ReportedUsage | None = None
        self._bytes = 0
        self._line = b""
        self._ended = False
        self._unpriced = False
        self.nonsense = ""
        """Why the provider's own numbers are impossible, if so."""
        self.whole = False
        """Whether the answer is complete, so that its own numbers are final."""
        self.is_cut = False
        """Whether it ended because it reached its length limit."""

    @property
    def bound(self) -> float:
        """The most it can cost, in US dollars."""
        return self._usd(self._most)

    @property
    def most(self) -> Amount:
        """The most it can cost, in money and tokens."""
        return Amount(usd=self.bound, tokens=self._most.tokens)

    def most_of(self, max_tokens: int) -> Amount:
        """The most it could cost with this limit on its output."""
        used = self._writing(max_tokens)
        return Amount(usd=self._usd(used), tokens=used.tokens)

    def longest(self, granted: Amount) -> int:
        """The largest `max_tokens` with which it cannot cost more than this."""
        none, one = self.most_of(0), self.most_of(1)
        by_tokens = (granted.tokens - none.tokens) // (one.tokens - none.tokens)
        by_usd = math.floor((granted.usd - none.usd) / (one.usd - none.usd))
        found = max(0, min(by_tokens, by_usd, MOST_OUTPUT))
        while found and self.most_of(found).usd > granted.usd:
            found -= 1  # rounding of the division
        return found

    def _writing(self, max_tokens: int) -> Usage:
        written = min(max_tokens, MOST_OUTPUT) * self._rounds
        return structs.replace(self._most, output_tokens=written)

    def _usd(self, used: Usage) -> float:
        tokens = cost(self._model, used, hour_tokens=self._hour)
        return tokens + self._searches * SEARCH

    def read_stream(self, chunk: bytes) -> None:
        """Read the next bytes of a stream, cut anywhere."""
        self._bytes += len(chunk)
        for event in self._events(chunk):
            if event.type == "message_start" and event.message is not None:
                self._answered_by(event.message.model)
                self._count(event.message.usage)
            elif event.type == "message_delta":
                # Only this event has the final output; earlier numbers are a beginning.
                self._ended = self._count(event.usage) or self._ended
                with contextlib.suppress(msgspec.MsgspecError):
                    self._stopped(msgspec.json.decode(event.delta, type=_Delta).stop_reason)
            elif event.type == "message_stop":
                self.whole = self._ended and not self.nonsense

    def read_document(self, body: bytes) -> None:
        """Read an answer that came in one piece."""
        self._bytes += len(body)
        try:
            message = msgspec.json.decode(body, type=_Message)
        except (msgspec.MsgspecError, RecursionError):
            self._suspect(body)
            self._unpriced = True
            return
        self._answered_by(message.model)
        self._stopped(message.stop_reason)
        self.whole = self._count(message.usage) and not self.nonsense
        self._unpriced = not self.whole

    def usage(self) -> Usage:
        """The usage: the answer's own numbers at its end, what was seen of it before."""
        if self.nonsense or self._unpriced:
            return structs.replace(self._most, cost_usd=self.bound, known=False)
        reported = self._reported or ReportedUsage()
        spent = reported.usd(self._payee)
        if self.whole and reported.known:
            return structs.replace(reported.tokens, cost_usd=spent)
        if self.whole:
            guessed = min(reported.most_usd(self._payee), self.bound)
            return structs.replace(reported.tokens, cost_usd=max(spent, guessed), known=False)
        return self._seen(reported)

    def _seen(self, reported: ReportedUsage) -> Usage:
        begun = reported.tokens
        passed = min(self._bytes // ANSWER_BYTES, self._most.output_tokens)
        so_far = structs.replace(begun, output_tokens=max(begun.output_tokens, passed))
        tokens = cost(self._payee, so_far, hour_tokens=reported.hour) * reported.factor
        guessed = min(tokens + reported.searches * SEARCH, self.bound)
        spent = max(
            guessed, min(reported.most_usd(self._payee), self.bound), reported.usd(self._payee)
        )
        return structs.replace(so_far, cost_usd=spent, known=False)

    def _stopped(self, reason: Raw) -> None:
        self.is_cut = self.is_cut or bytes(reason) == b'"max_tokens"'

    def _answered_by(self, model: Raw) -> None:
        with contextlib.suppress(msgspec.MsgspecError):  # anything else is no model
            self._payee = dearer(self._model, msgspec.json.decode(model, type=str))

    def _count(self, given: Raw) -> bool:
        """Read a usage; whether there was any."""
        if bytes(given) in _NOTHING or self.nonsense:
            return False
        try:
            reported = read_usage(self._payee, msgspec.json.decode(given))
        except (NonsenseError, msgspec.MsgspecError, RecursionError) as error:
            known = isinstance(error, NonsenseError)
            self.nonsense = str(error) if known else "its usage cannot be read"
            return False
        self._reported = reported if self._reported is None else self._reported.joined(reported)
        return not self._reported.is_empty

    def _suspect(self, text: bytes) -> None:
        """Treat an unreadable answer that mentions its usage as nonsense: it must not be free."""
        if _USAGE in text:
            self.nonsense = "its usage cannot be read"

    def _events(self, chunk: bytes) -> Iterator[_Event]:
        *lines, self._line = (self._line + chunk).split(b"\n")
        if len(self._line) > LONGEST_LINE:
            self._line, self.nonsense = b"", "a line of its stream is too long"
        for line in lines:
            if line.startswith(b"data:"):
                data = line.removeprefix(b"data:")
                try:
                    yield msgspec.json.decode(data, type=_Event)
                except (msgspec.MsgspecError, RecursionError):
                    self._suspect(data)  # anything else unreadable is passed on
