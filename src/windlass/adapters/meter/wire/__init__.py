"""What the meter needs from a wire protocol: the meaning of requests and answers.

The meter (`proxy`, `web`) forwards bytes, books money and knows no protocol. To add a protocol, add
one module here that provides a `Wire`.
"""

import enum
import importlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from windlass.adapters.meter.rate_limits import Complaint, Refusal
from windlass.core.events.model import Usage
from windlass.core.events.values import Amount


class UnpricedError(ValueError):
    """A request that cannot be priced, and why."""


class Problem(enum.Enum):
    """Why the meter itself answers a request."""

    NO_SUCH_PATH = "no such path"
    NO_TOKEN = "no token"  # noqa: S105  no password
    TOO_MANY = "too many requests of one agent"
    TOO_LARGE = "too much at once"
    UNPRICED = "a request without a price"
    NO_MONEY = "too little is left of the budget"
    UNREACHABLE = "the provider did not answer"
    BARRED = "the provider cannot be reached until a person changes something"
    NONSENSE = "the provider's answer cannot be true"


class Reading(Protocol):
    """The usage of one answer, as read so far."""

    @property
    def whole(self) -> bool:
        """Whether the answer is complete, so that its own numbers are final."""
        ...

    @property
    def nonsense(self) -> str:
        """Why the provider's own numbers are impossible, if so."""
        ...

    @property
    def is_cut(self) -> bool:
        """Whether the answer ended because it reached its length limit."""
        ...

    def read_stream(self, chunk: bytes) -> None:
        """Read the next bytes of a stream, cut anywhere."""
        ...

    def read_document(self, body: bytes) -> None:
        """Read an answer that came in one piece."""
        ...

    def usage(self) -> Usage:
        """The usage: the answer's own numbers at its end, what was seen of it before."""
        ...


class Call(Protocol):
    """A parsed request: all of it has a price."""

    @property
    def model(self) -> str: ...

    @property
    def is_free(self) -> bool:
        """Whether it costs nothing, and is not metered."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers to send, including credentials."""
        ...

    @property
    def content(self) -> bytes: ...

    @property
    def most(self) -> Amount:
        """The most it can cost."""
        ...

    @property
    def least(self) -> Amount:
        """The most it can cost once its answer is limited as tightly as the protocol allows."""
        ...

    def within(self, granted: Amount) -> "Call":
        """The request, limited so that it cannot cost more than this, which is at least `least`."""
        ...

    @property
    def reading(self) -> Reading: ...


class Wire(Protocol):
    """One protocol."""

    def secret_headers(self, credentials: Mapping[str, str]) -> Mapping[str, str]:
        """The credentials as headers."""
        ...

    def token(self, headers: Mapping[str, str]) -> str:
        """The token in a request's headers."""
        ...

    def is_served(self, method: str, path: bytes) -> bool:
        """Whether the meter serves that path; the path is as it was sent."""
        ...

    def read(
        self,
        path: bytes,
        query: bytes,
        headers: Sequence[tuple[str, str]],
        body: bytes,
        secrets: Mapping[str, str],
    ) -> Call:
        """Parse a request; one without a price raises `UnpricedError`."""
        ...

    def answered_headers(self, status: int, given: Mapping[str, str]) -> Mapping[str, str]:
        """The headers of an answer that are passed back.

        They keep the agent's program from repeating a request that no repeat can help.
        """
        ...

    def problem(self, problem: Problem, message: str) -> tuple[int, bytes]:
        """Status and JSON body of an error, in the form the agent's program understands."""
        ...

    @property
    def probe_path(self) -> str:
        """A path that costs nothing to ask for, and needs valid credentials."""
        ...

    def probe_headers(self, credentials: Mapping[str, str]) -> Mapping[str, str]:
        """The headers for that path."""
        ...

    def complaint(self, status: int, body: bytes) -> Complaint | None:
        """What an answer with an error complains of, if only a person can put it right."""
        ...

    def broken_stream(self, message: str) -> bytes:
        """The bytes that end a stream with an error."""
        ...

    def refusal(
        self,
        status: int,
        headers: Mapping[str, str],
        now: datetime,
        counted: Callable[[datetime], datetime],
    ) -> Refusal | None:
        """The refusal, if the answer is one."""
        ...


def wire_of(name: str) -> Wire:
    """The protocol of that name: a module in this package."""
    module = importlib.import_module(f"{__name__}.{name}")
    return module.WIRE
