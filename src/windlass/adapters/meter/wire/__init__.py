"""What the meter asks of a wire protocol: all that a provider's requests and answers mean.

The meter (`proxy`, `web`) moves bytes, books money and knows no protocol. Adding a protocol is one
module beside this one that provides a `Wire`.
"""

import enum
import importlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from windlass.adapters.meter.rate_limits import Refusal
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
    NONSENSE = "the provider's answer cannot be true"


class Reading(Protocol):
    """What one answer has used, as far as it was read."""

    @property
    def whole(self) -> bool:
        """Whether the answer has come to its end, so that its own numbers are final."""
        ...

    @property
    def nonsense(self) -> str:
        """Why the provider's own numbers cannot be taken, if so."""
        ...

    @property
    def is_cut(self) -> bool:
        """Whether the answer ended because it reached the bound on its length."""
        ...

    def read_stream(self, chunk: bytes) -> None:
        """Take in the next bytes of a stream, wherever they are cut."""
        ...

    def read_document(self, body: bytes) -> None:
        """Take in an answer that came in one piece."""
        ...

    def usage(self) -> Usage:
        """What it has come to: its own numbers at its end, an estimate before."""
        ...


class Call(Protocol):
    """A request that was understood: all of it has a price."""

    @property
    def model(self) -> str:
        """The model that is asked."""
        ...

    @property
    def is_free(self) -> bool:
        """Whether it costs nothing, and is not metered."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers to send, credentials included."""
        ...

    @property
    def content(self) -> bytes:
        """The body to send."""
        ...

    @property
    def most(self) -> Amount:
        """The most it can come to."""
        ...

    @property
    def least(self) -> Amount:
        """The most it can come to once its answer is bounded as tightly as the protocol allows."""
        ...

    def within(self, granted: Amount) -> "Call":
        """The request, bounded so that it cannot come to more than this; at least `least`."""
        ...

    @property
    def reading(self) -> Reading:
        """What reads its answer, once."""
        ...


class Wire(Protocol):
    """One protocol."""

    def secret_headers(self, credentials: Mapping[str, str]) -> Mapping[str, str]:
        """The credentials as headers."""
        ...

    def token(self, headers: Mapping[str, str]) -> str:
        """The token that a request shows."""
        ...

    def is_served(self, method: str, path: bytes) -> bool:
        """Whether there is anything at that path; the path is as it was sent."""
        ...

    def read(
        self,
        path: bytes,
        query: bytes,
        headers: Sequence[tuple[str, str]],
        body: bytes,
        secrets: Mapping[str, str],
    ) -> Call:
        """Understand a request; one that has no price raises `UnpricedError`."""
        ...

    def answered_headers(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """The headers of an answer that are passed back."""
        ...

    def problem(self, problem: Problem, message: str) -> tuple[int, bytes]:
        """Status and JSON body of an error, so that the agent's program understands it."""
        ...

    def broken_stream(self, message: str) -> bytes:
        """What ends a stream with an error."""
        ...

    def refusal(
        self,
        status: int,
        headers: Mapping[str, str],
        now: datetime,
        counted: Callable[[datetime], datetime],
    ) -> Refusal | None:
        """What the provider says where an answer means: not now."""
        ...


def wire_of(name: str) -> Wire:
    """The protocol of that name: a module beside this one."""
    module = importlib.import_module(f"{__name__}.{name}")
    return module.WIRE
