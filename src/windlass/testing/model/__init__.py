"""A scripted model: scripts, and a loopback server that plays them.

Importing this package imports no web framework; `windlass.testing.model.server` does.
"""

from windlass.testing.model.anthropic_wire import variables
from windlass.testing.model.script import (
    Answer,
    Block,
    Book,
    Call,
    Drop,
    DropMid,
    Fault,
    Flaky,
    Hang,
    Limit,
    Say,
    Script,
    SseError,
    Status,
    Step,
    Think,
    Tokens,
)

__all__ = [
    "Answer",
    "Block",
    "Book",
    "Call",
    "Drop",
    "DropMid",
    "Fault",
    "Flaky",
    "Hang",
    "Limit",
    "Say",
    "Script",
    "SseError",
    "Status",
    "Step",
    "Think",
    "Tokens",
    "variables",
]
