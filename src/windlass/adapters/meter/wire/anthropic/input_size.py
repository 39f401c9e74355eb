"""How much a request can make a model read, which may be more than the request itself. Pure.

Rule 1: content that is not known to be in the request counts as a whole context window: references
to addresses or earlier uploads, and tools that the provider runs. Rule 2: each use of a tool that
the provider runs makes the model read everything again, and each time counts. Rule 3: this is
cheap. Text is skipped unread, and with too many objects to examine, the worst is assumed.
"""

import math
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw, Struct, structs

from windlass.adapters.meter.wire.anthropic.requests import MOST_SEARCHES

CONTEXT = 1_000_000
"""The most tokens that any model reads for one request."""
REQUEST_BYTES = 2.5
"""Bytes of a request per token: text has more, so this overestimates."""
IMAGE = 5_000
"""The most tokens of an image of any size."""
MOST_OBJECTS = 100_000
"""Objects that are examined; a conversation may have no more messages than that."""

_TEXTS = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "tool_reference"})
"""Blocks that are complete, and contain no others."""
_HOLDERS = frozenset({"tool_result", "search_result"})
"""Blocks that contain others."""
_CLIENT = frozenset({None, "custom"})
"""Tools that the agent runs itself."""
_ABSENT = frozenset({b"", b"null", b"[]"})


class Reach(Struct, frozen=True, kw_only=True):
    """The most that a request can use."""

    tokens: int
    """The most tokens that are read for it."""
    for_an_hour: bool
    """Whether any of them is to stay in the cache for an hour, which costs more."""
    rounds: int = 1
    """How often all of it can be read and answered."""


WORST = Reach(tokens=CONTEXT, for_an_hour=True, rounds=1 + MOST_SEARCHES)


class _Kept(Struct):
    ttl: str | None = None


class _Source(Struct):
    type: str
    content: Raw = Raw()


class _Block(Struct):
    type: str
    source: Raw = Raw()
    content: Raw = Raw()
    cache_control: _Kept | None = None


class _Turn(Struct):
    content: Raw = Raw()


class _Tool(Struct):
    type: str | None = None
    cache_control: _Kept | None = None
    max_uses: int | None = None


class _Tools(Struct):
    tools: list[_Tool] | None = None


class _Request(Struct):
    messages: list[_Turn] | None = None
    system: Raw = Raw()
    tools: list[_Tool] | None = None
    mcp_servers: Raw = Raw()
    container: Raw = Raw()
    cache_control: _Kept | None = None


_REQUEST = msgspec.json.Decoder(_Request)
_TOOLS = msgspec.json.Decoder(_Tools)
_BLOCKS = msgspec.json.Decoder(list[_Block])
_SOURCE = msgspec.json.Decoder(_Source)


def reach(content: bytes) -> Reach:
    """The most that this request, as it is sent, can use."""
    try:
        rounds = 1 + sum(_uses(tool) for tool in _TOOLS.decode(content).tools or [])
        if content.count(b"{") > MOST_OBJECTS:
            return structs.replace(WORST, rounds=rounds)
        return structs.replace(_reach(content, _REQUEST.decode(content)), rounds=rounds)
    except (msgspec.MsgspecError, RecursionError):
        return WORST  # the provider might still understand it, and read anything


def _uses(tool: _Tool) -> int:
    """How often the provider may use it, and read everything again."""
    if tool.type in _CLIENT:
        return 0
    return MOST_SEARCHES if tool.max_uses is None else max(tool.max_uses, 0)


def _reach(content: bytes, asked: _Request) -> Reach:
    tools = asked.tools or []
    blocks = [*_blocks(asked.system)]
    for turn in asked.messages or []:
        blocks.extend(_blocks(turn.content))
    served = {bytes(asked.mcp_servers), bytes(asked.container)} - _ABSENT
    whole = (
        not served
        and all(tool.type in _CLIENT for tool in tools)
        and all(_is_here(block) for block in blocks)
    )
    images = sum(block.type == "image" for block in blocks)
    read = math.ceil(len(content) / REQUEST_BYTES) + images * IMAGE
    return Reach(
        tokens=min(read, CONTEXT) if whole else CONTEXT,
        for_an_hour=_for_an_hour([asked, *tools, *blocks]),
    )


def _blocks(content: Raw) -> Iterator[_Block]:
    """All blocks, also nested ones; none if the content is plain text."""
    if bytes(memoryview(content)[:1]) in {b"", b'"', b"n"}:
        return
    for block in _BLOCKS.decode(content):
        yield block
        if block.type in _HOLDERS:
            yield from _blocks(block.content)
        elif block.type == "document" and (source := _source(block)).type == "content":
            yield from _blocks(source.content)


def _is_here(block: _Block) -> bool:
    match block.type:
        case "image":
            return _source(block).type == "base64"
        case "document":
            # A few bytes of a document can be very many pages.
            return _source(block).type in {"text", "content"}
        case kind:
            return kind in _TEXTS or kind in _HOLDERS


def _source(block: _Block) -> _Source:
    return _SOURCE.decode(block.source)


def _for_an_hour(kept: Iterable[_Request | _Tool | _Block]) -> bool:
    held = (each.cache_control for each in kept)
    return any(control is not None and control.ttl not in {None, "5m"} for control in held)
