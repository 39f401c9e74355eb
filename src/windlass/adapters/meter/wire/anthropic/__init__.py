"""The Anthropic Messages protocol, and all that is particular to its provider.

Two paths are served: messages, which are metered, and the count of their tokens, which is free. A
request is written anew from what has a price (`requests`, `headers`); what has none is refused, and
its agent is told why. What an answer used is in `usage` and `tally`, what that costs in `prices`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct, structs

from windlass.adapters.meter.rate_limits import Refusal
from windlass.adapters.meter.wire import Problem, UnpricedError, Wire
from windlass.adapters.meter.wire.anthropic.headers import (
    answered_headers,
    asked_headers,
    secret_headers,
)
from windlass.adapters.meter.wire.anthropic.limits import REFUSED, read_refusal
from windlass.adapters.meter.wire.anthropic.requests import Asked, read_request, write_request
from windlass.adapters.meter.wire.anthropic.tally import Tally
from windlass.core.events.values import Amount

SHORTEST = 4096
"""`max_tokens` is never lowered below this: less is no answer to work with."""

_MESSAGES, _COUNT = b"/v1/messages", b"/v1/messages/count_tokens"
_PATHS = frozenset({_MESSAGES, _COUNT})
_QUERIES = frozenset({b"", b"beta=true"})
_PROBLEMS: Mapping[Problem, tuple[int, str]] = {
    Problem.NO_SUCH_PATH: (404, "not_found_error"),
    Problem.NO_TOKEN: (401, "authentication_error"),
    Problem.TOO_MANY: (503, "overloaded_error"),
    Problem.TOO_LARGE: (413, "request_too_large"),
    Problem.UNPRICED: (400, "invalid_request_error"),
    Problem.NO_MONEY: (402, "billing_error"),
    Problem.UNREACHABLE: (503, "overloaded_error"),
    Problem.NONSENSE: (502, "api_error"),
}


class AnthropicCall(Struct, frozen=True, kw_only=True):
    """One request, priced."""

    asked: Asked
    headers: Mapping[str, str]
    content: bytes
    is_free: bool
    reading: Tally
    """What reads its answer."""
    least: Amount

    @property
    def most(self) -> Amount:
        """The most it can come to."""
        return self.reading.most

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self.asked.model

    def within(self, granted: Amount) -> "AnthropicCall":
        """The request with as high a `max_tokens` as cannot come to more than this."""
        if self.most.usd <= granted.usd and self.most.tokens <= granted.tokens:
            return self
        longest = max(self.reading.longest(granted), _shortest(self.asked))
        asked = structs.replace(self.asked, max_tokens=longest)
        content, reading = write_request(asked), Tally(asked.model, asked)
        return structs.replace(self, asked=asked, content=content, reading=reading)


def _shortest(asked: Asked) -> int:
    """The lowest `max_tokens` that the request may be given: an answer must follow its thoughts."""
    thinking = asked.thinking.budget_tokens if asked.thinking is not None else None
    return min(asked.max_tokens or 0, max(SHORTEST, (thinking or 0) + 1))


class AnthropicWire:
    """The protocol, as the meter asks for it."""

    def secret_headers(self, credentials: Mapping[str, str]) -> Mapping[str, str]:
        """The credentials as headers: those the program itself would choose."""
        return secret_headers(credentials)

    def token(self, headers: Mapping[str, str]) -> str:
        """The token that a request shows, in either of two headers."""
        return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")

    def is_served(self, method: str, path: bytes) -> bool:
        """Whether there is anything at that path."""
        return method == "POST" and path in _PATHS

    def read(
        self,
        path: bytes,
        query: bytes,
        headers: Sequence[tuple[str, str]],
        body: bytes,
        secrets: Mapping[str, str],
    ) -> AnthropicCall:
        """Understand a request; one that has no price is an error."""
        if query not in _QUERIES:
            raise UnpricedError("only `?beta=true` may follow the path; take the rest out")
        sent = asked_headers(headers, secrets)
        asked = read_request(body, writes=path == _MESSAGES)
        tally = Tally(asked.model, asked)
        return AnthropicCall(
            asked=asked,
            headers=sent,
            content=write_request(asked),
            is_free=path == _COUNT,
            reading=tally,
            least=tally.most_of(_shortest(asked)),
        )

    def answered_headers(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """The headers of an answer that are passed back."""
        return answered_headers(given)

    def problem(self, problem: Problem, message: str) -> tuple[int, bytes]:
        """An error as the provider words it."""
        status, kind = _PROBLEMS[problem]
        body = {"type": "error", "error": {"type": kind, "message": message}}
        return status, msgspec.json.encode(body)

    def broken_stream(self, message: str) -> bytes:
        """What ends a stream with an error."""
        return b"event: error\ndata: %s\n\n" % self.problem(Problem.NONSENSE, message)[1]

    def refusal(
        self,
        status: int,
        headers: Mapping[str, str],
        now: datetime,
        counted: Callable[[datetime], datetime],
    ) -> Refusal | None:
        """What the provider says where an answer means: not now."""
        return read_refusal(status, headers, now, counted) if status in REFUSED else None


ANTHROPIC: Wire = AnthropicWire()
WIRE = ANTHROPIC
"""What `wire_of` finds."""
