"""How much a request can have a model read, which may be more than the request itself holds. Pure.

Rule 1: whatever is not known to be all there counts as a whole context window: what lies at an
address or was sent before, and tools that the provider runs. Rule 2: a tool that the provider runs
has the model read all of it once more for each use, and each time counts. Rule 3: a look costs
little. Text is passed over unread, and where there are too many objects to look at, the worst is
assumed.
"""

import math
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw, Struct, structs

from windlass.adapters.meter.wire.anthropic.requests import MOST_SEARCHES

CONTEXT = 1_000_000
"""The most tokens that any model reads for one request."""
REQUEST_BYTES = 2.5
"""Bytes of a request to the token: text has more, so this counts high."""
IMAGE = 5_000
"""The most tokens of an image, however few bytes it has."""
MOST_OBJECTS = 100_000
"""That are looked at; a conversation may have no more messages than that."""

_TEXTS = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "tool_reference"})
"""Blocks that are all there, and hold no others."""
_HOLDERS = frozenset({"tool_result", "search_result"})
"""Blocks that hold others."""
_CLIENT = frozenset({None, "custom"})
"""Tools that the agent runs itself."""
_ABSENT = frozenset({b"", b"null", b"[]"})


class Reach(Struct, frozen=True, kw_only=True):
    """What a request can come to, as far as it says so itself."""

    tokens: int
    """The most that is read for it."""
    for_an_hour: bool
    """Whether any of that is to stay in the cache for an hour, which is dearer."""
    streams: bool
    """Whether the answer comes while it is written."""
    rounds: int = 1
    """How often all that can be read, and answered."""


WORST = Reach(tokens=CONTEXT, for_an_hour=True, streams=False, rounds=1 + MOST_SEARCHES)


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
    stream: bool | None = None


_REQUEST = msgspec.json.Decoder(_Request)
_TOOLS = msgspec.json.Decoder(_Tools)
_BLOCKS = msgspec.json.Decoder(list[_Block])
_SOURCE = msgspec.json.Decoder(_Source)


def reach(content: bytes) -> Reach:
    """What this request, as it is sent, can come to."""
    try:
        rounds = 1 + sum(_uses(tool) for tool in _TOOLS.decode(content).tools or [])
        if content.count(b"{") > MOST_OBJECTS:
            return structs.replace(WORST, rounds=rounds)
        return structs.replace(_reach(content, _REQUEST.decode(content)), rounds=rounds)
    except (msgspec.MsgspecError, RecursionError):
        return WORST  # a provider that understands it all the same may read anything into it


def _uses(tool: _Tool) -> int:
    """How often the provider may use it, and read everything anew."""
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
        streams=asked.stream is True,
    )


def _blocks(content: Raw) -> Iterator[_Block]:
    """All blocks, also those inside others; none where the content is mere text."""
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
            # A few bytes of a file that is printed can be a great many pages.
            return _source(block).type in {"text", "content"}
        case kind:
            return kind in _TEXTS or kind in _HOLDERS


def _source(block: _Block) -> _Source:
    return _SOURCE.decode(block.source)


def _for_an_hour(kept: Iterable[_Request | _Tool | _Block]) -> bool:
    held = (each.cache_control for each in kept)
    return any(control is not None and control.ttl not in {None, "5m"} for control in held)
