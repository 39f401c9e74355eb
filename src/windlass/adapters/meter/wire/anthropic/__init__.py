"""The Anthropic Messages protocol, and everything specific to its provider.

Two paths are served: messages, which are metered, and the count of their tokens, which is free. A
request is rewritten from the fields that have a price (`requests`, `headers`); one with other
fields is refused, with the reason. `usage` and `tally` read what an answer used; `prices` has the
costs.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct, structs

from windlass.adapters.meter.rate_limits import Complaint, Refusal
from windlass.adapters.meter.wire import Problem, UnpricedError, Wire
from windlass.adapters.meter.wire.anthropic.headers import (
    FINAL,
    FINAL_STATUSES,
    REFUSED,
    VERSION,
    answered_headers,
    asked_headers,
    read_complaint,
    read_refusal,
    secret_headers,
)
from windlass.adapters.meter.wire.anthropic.requests import Asked, read_request, write_request
from windlass.adapters.meter.wire.anthropic.tally import Tally
from windlass.core.events.values import Amount

SHORTEST = 4096
"""`max_tokens` is never lowered below this: a shorter answer is useless."""

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
    # The program repeats the first, and not the second.
    Problem.UNREACHABLE: (503, "overloaded_error"),
    Problem.BARRED: (400, "invalid_request_error"),
    Problem.NONSENSE: (502, "api_error"),
}


class AnthropicCall(Struct, frozen=True, kw_only=True):
    """One request, priced."""

    asked: Asked
    headers: Mapping[str, str]
    content: bytes
    is_free: bool
    reading: Tally
    least: Amount

    @property
    def most(self) -> Amount:
        return self.reading.most

    @property
    def model(self) -> str:
        return self.asked.model

    def within(self, granted: Amount) -> "AnthropicCall":
        """The request with the highest `max_tokens` that cannot cost more than this."""
        if self.most.usd <= granted.usd and self.most.tokens <= granted.tokens:
            return self
        longest = max(self.reading.longest(granted), _shortest(self.asked))
        asked = structs.replace(self.asked, max_tokens=longest)
        content, reading = write_request(asked), Tally(asked.model, asked)
        return structs.replace(self, asked=asked, content=content, reading=reading)


def _shortest(asked: Asked) -> int:
    """The lowest `max_tokens` for the request: an answer must have room after its thinking."""
    thinking = asked.thinking.budget_tokens if asked.thinking is not None else None
    return min(asked.max_tokens or 0, max(SHORTEST, (thinking or 0) + 1))


class AnthropicWire:
    def secret_headers(self, credentials: Mapping[str, str]) -> Mapping[str, str]:
        """The credentials as headers, as the program itself would send them."""
        return secret_headers(credentials)

    def token(self, headers: Mapping[str, str]) -> str:
        """The token in a request, in either of two headers."""
        return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")

    def is_served(self, method: str, path: bytes) -> bool:
        return method == "POST" and path in _PATHS

    def read(
        self,
        path: bytes,
        query: bytes,
        headers: Sequence[tuple[str, str]],
        body: bytes,
        secrets: Mapping[str, str],
    ) -> AnthropicCall:
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

    def answered_headers(self, status: int, given: Mapping[str, str]) -> Mapping[str, str]:
        passed = answered_headers(given)
        return {**passed, **FINAL} if status in FINAL_STATUSES else passed

    def problem(self, problem: Problem, message: str) -> tuple[int, bytes]:
        """An error in the provider's form."""
        status, kind = _PROBLEMS[problem]
        body = {"type": "error", "error": {"type": kind, "message": message}}
        return status, msgspec.json.encode(body)

    @property
    def probe_path(self) -> str:
        return "/v1/models?limit=1"

    def probe_headers(self, credentials: Mapping[str, str]) -> Mapping[str, str]:
        return {**secret_headers(credentials), "anthropic-version": VERSION}

    def complaint(self, status: int, body: bytes) -> Complaint | None:
        return read_complaint(status, body)

    def broken_stream(self, message: str) -> bytes:
        return b"event: error\ndata: %s\n\n" % self.problem(Problem.NONSENSE, message)[1]

    def refusal(
        self,
        status: int,
        headers: Mapping[str, str],
        now: datetime,
        counted: Callable[[datetime], datetime],
    ) -> Refusal | None:
        return read_refusal(status, headers, now, counted) if status in REFUSED else None


ANTHROPIC: Wire = AnthropicWire()
WIRE = ANTHROPIC
