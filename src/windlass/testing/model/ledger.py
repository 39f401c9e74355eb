"""What the scripted model was asked and what it would have charged: one entry per request.

Rule 1: no header and no prompt enters it, so no key can. Rule 2: an answer that was begun is
charged in full, whoever heard it; a fault before the first byte costs nothing. Rule 3: an entry is
written to the file when the request arrives and again when it is over; the last line of a `seq`
counts, and a killed server leaves the first.
"""

import time
from pathlib import Path

import msgspec
from msgspec import Struct

from windlass.testing.model.script import Tokens


class Seen(Struct, kw_only=True):
    """One request."""

    seq: int
    at: float
    """Seconds of the machine's monotonic clock: comparable between its processes."""
    method: str
    path: str
    model: str = ""
    key: str = ""
    """The key of the script that answered; empty for the default."""
    step: int | None = None
    side: bool = False
    status: int | None = None
    """What was answered, once it was; None where the connection was dropped or hangs."""
    completed: bool = False
    """Whether the last byte was passed on."""
    usage: Tokens | None = None
    """What was charged."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the model was offered."""
    max_tokens: int | None = None
    """How much it might write."""


class Billed(Struct, frozen=True, kw_only=True):
    """Totals."""

    requests: int = 0
    """Conversations' requests that were charged; side calls are not among them."""
    side: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class Ledger:
    """Every request since the server began, in the order of arrival."""

    def __init__(self, file: Path | None = None) -> None:
        self.entries: list[Seen] = []
        self._file = file

    def open(self, method: str, path: str) -> Seen:
        """Begin the entry of a request that just arrived."""
        seen = Seen(seq=len(self.entries) + 1, at=time.monotonic(), method=method, path=path)
        self.entries.append(seen)
        return seen

    def write(self, seen: Seen) -> None:
        """Put the entry, as it stands, into the file."""
        if self._file is not None:
            with self._file.open("ab") as out:
                out.write(msgspec.json.encode(seen) + b"\n")

    def lines(self) -> bytes:
        """All entries, as JSON lines."""
        return b"".join(msgspec.json.encode(seen) + b"\n" for seen in self.entries)

    def billed(self) -> Billed:
        """What all of it came to; side calls cost, but are counted apart."""
        charged = [seen for seen in self.entries if seen.usage is not None]
        costs = [msgspec.structs.asdict(seen.usage) for seen in charged if seen.usage]
        return Billed(
            requests=sum(not seen.side for seen in charged),
            side=sum(seen.side for seen in charged),
            **{name: sum(cost[name] for cost in costs) for name in Tokens.__struct_fields__},
        )
