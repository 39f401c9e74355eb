"""The requests to the scripted model and their costs: one entry per request.

Rule 1: headers and prompts are never recorded, so no key is. Rule 2: an answer that was begun is
charged in full, even if the client left; a fault before the first byte costs nothing. Rule 3: an
entry is written to the file when the request arrives and again when it is over. The last line of a
`seq` counts; a killed server leaves the first.
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
    """The HTTP status; None before an answer, or if the connection was dropped or hangs."""
    completed: bool = False
    """Whether the last byte was sent."""
    usage: Tokens | None = None
    """The tokens that were charged."""
    tools: tuple[str, ...] = ()
    """The names of the tools that the model may use."""
    max_tokens: int | None = None
    """The limit on the length of the answer."""


class Billed(Struct, frozen=True, kw_only=True):
    """Totals."""

    requests: int = 0
    """Charged requests, without side calls."""
    side: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class Ledger:
    """Every request since the server started, in the order of arrival."""

    def __init__(self, file: Path | None = None) -> None:
        self.entries: list[Seen] = []
        self._file = file

    def open(self, method: str, path: str) -> Seen:
        """Add an entry for a request that just arrived."""
        seen = Seen(seq=len(self.entries) + 1, at=time.monotonic(), method=method, path=path)
        self.entries.append(seen)
        return seen

    def write(self, seen: Seen) -> None:
        """Append the entry to the file."""
        if self._file is not None:
            with self._file.open("ab") as out:
                out.write(msgspec.json.encode(seen) + b"\n")

    def lines(self) -> bytes:
        """All entries, as JSON lines."""
        return b"".join(msgspec.json.encode(seen) + b"\n" for seen in self.entries)

    def billed(self) -> Billed:
        """The totals; side calls add to the tokens, but are counted apart."""
        charged = [seen for seen in self.entries if seen.usage is not None]
        costs = [msgspec.structs.asdict(seen.usage) for seen in charged if seen.usage]
        return Billed(
            requests=sum(not seen.side for seen in charged),
            side=sum(seen.side for seen in charged),
            **{name: sum(cost[name] for cost in costs) for name in Tokens.__struct_fields__},
        )
