"""The fields of a request that have a price, and no others. Pure.

Rule 1: a request is parsed into these types and written again from them, so that what is sent is
what was priced: duplicate keys, unknown fields and white space do not pass. Rule 2: a field or a
kind of block without a price is refused, with its name and the cure. Only inside a block of a
message are unknown fields dropped instead: programs send back what the provider gave them, and a
block can cost no more than the model can read. Rule 3: values that need no pricing (a tool's input,
a schema) stay raw, because a small text may hold many objects.
"""

import re
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, structs

from windlass.adapters.meter.wire import UnpricedError

MOST_SEARCHES = 8
"""Web searches that one request may make; each reads the whole request again."""
SEARCH_TOOL = "web_search_20250305"
MOST_MESSAGES = 100_000
"""The provider takes no more in one request."""

MOST_TOOLS = 10_000
"""Each takes more memory than its text, so their number is bounded."""

Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]

_UNPRICED: Final[dict[str, str]] = {
    "speed": "fast mode costs up to six times as much",
    "service_tier": "a tier other than the standard one has a price of its own",
    "inference_geo": "a chosen region costs more",
    "context_management": "compaction reads the conversation again, in addition to the answer",
    "compaction": "compaction reads the conversation again, in addition to the answer",
    "fallbacks": "another model may answer, at its own price",
    "tools": "tools that the provider runs may read a request again, or call another model",
    "mcp_servers": "servers that the provider calls can add any amount to a request",
    "container": "a container is paid for by the hour",
    "thread": "earlier messages are read again, and are not in the request",
    "betas": "features belong in the header `anthropic-beta`",
    "anthropic_beta": "features belong in the header `anthropic-beta`",
}
"""Why common fields without a price have none."""


class Strict(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Written by the agent's program: an unknown field is refused."""


class Kept(Strict, frozen=True, kw_only=True):
    """How long something stays in the cache."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class Block(Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="type"):
    """A part of a message; unknown fields are left out."""

    cache_control: Kept | None = None


class Text(Block, frozen=True, tag="text"):
    """Plain text."""

    text: str
    citations: Raw | UnsetType = UNSET


class Base64(Struct, frozen=True, tag_field="type", tag="base64"):
    """Content that is in the request."""

    media_type: str
    data: str


class Url(Struct, frozen=True, tag_field="type", tag="url"):
    """Content that the provider fetches."""

    url: str


class Plain(Struct, frozen=True, tag_field="type", tag="text"):
    """A document of plain text."""

    data: str
    media_type: str = "text/plain"


class Parts(Struct, frozen=True, tag_field="type", tag="content"):
    """A document of blocks."""

    content: "str | list[Text | Image]"


class Image(Block, frozen=True, tag="image"):
    """A picture."""

    source: Base64 | Url


class Document(Block, frozen=True, tag="document"):
    """A document."""

    source: Base64 | Url | Plain | Parts
    title: str | None = None
    context: str | None = None
    citations: Raw | UnsetType = UNSET


class SearchResult(Block, frozen=True, tag="search_result"):
    """A result of the agent's own search tool."""

    source: str
    title: str
    content: list[Text]
    citations: Raw | UnsetType = UNSET


class Thinking(Block, frozen=True, tag="thinking"):
    """The model's thinking."""

    thinking: str
    signature: str | None = None


class Redacted(Block, frozen=True, tag="redacted_thinking"):
    """The model's thinking, encrypted."""

    data: str


class ToolUse(Block, frozen=True, tag="tool_use"):
    """A call of one of the agent's tools."""

    id: str
    name: str
    input: Raw = Raw(b"{}")
    caller: Raw | UnsetType = UNSET


class ToolReference(Block, frozen=True, tag="tool_reference"):
    """A tool to show to the model; its definition is among the tools."""

    tool_name: str


class ToolResult(Block, frozen=True, tag="tool_result"):
    """A tool's result."""

    tool_use_id: str
    content: "str | list[Text | Image | Document | SearchResult | ToolReference] | None" = None
    is_error: bool | None = None


class ServerToolUse(Block, frozen=True, tag="server_tool_use"):
    """A search that the provider made earlier in the conversation."""

    id: str
    name: Literal["web_search"]
    input: Raw = Raw(b"{}")
    caller: Raw | UnsetType = UNSET


class Searched(Block, frozen=True, tag="web_search_tool_result"):
    """The result of that search, which only the provider can read."""

    tool_use_id: str
    content: Raw
    caller: Raw | UnsetType = UNSET


class Named(Strict, frozen=True, tag_field="type", tag="tool_reference"):
    """One of the request's tools, by its name."""

    name: str


class ToolAddition(Block, frozen=True, tag="tool_addition"):
    """From here on the model knows this tool."""

    tool: Named


class ToolRemoval(Block, frozen=True, tag="tool_removal"):
    """From here on the model no longer knows this tool."""

    tool: Named


AnyBlock: TypeAlias = (
    Text
    | Image
    | Document
    | SearchResult
    | Thinking
    | Redacted
    | ToolUse
    | ToolResult
    | ToolReference
    | ServerToolUse
    | Searched
    | ToolAddition
    | ToolRemoval
)


class Output(Strict, frozen=True):
    """The form of the answer; all of it is counted in tokens."""

    effort: str | None = None
    format: Raw | UnsetType = UNSET


class Turn(Strict, frozen=True):
    """One message."""

    role: Literal["user", "assistant", "system"]
    content: str | list[AnyBlock]
    output_config: Output | None = None


class Tool(Strict, frozen=True, kw_only=True):
    """A tool that the agent runs itself, or a search that the provider makes."""

    type: Literal["custom", "web_search_20250305"] | None = None
    name: str
    cache_control: Kept | None = None
    description: str | None = None
    input_schema: Raw | UnsetType = UNSET
    input_examples: Raw | UnsetType = UNSET
    defer_loading: bool | None = None
    eager_input_streaming: bool | None = None
    strict: bool | None = None
    max_uses: Annotated[int, Meta(ge=1, le=2**31)] | None = None
    allowed_domains: list[str] | None = None
    blocked_domains: list[str] | None = None
    user_location: Raw | UnsetType = UNSET


class Choice(Strict, frozen=True):
    """Which tool to use."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Think(Strict, frozen=True):
    """How much to think; it is counted as output."""

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: Count | None = None
    display: str | None = None


class Edit(Strict, frozen=True):
    """Edits that leave something out; compaction is not included."""

    type: Literal["clear_thinking_20251015", "clear_tool_uses_20250919"]
    keep: Raw | UnsetType = UNSET
    trigger: Raw | UnsetType = UNSET
    clear_at_least: Raw | UnsetType = UNSET
    exclude_tools: list[str] | None = None
    clear_tool_inputs: Raw | UnsetType = UNSET


class Edits(Strict, frozen=True):
    """A list of edits."""

    edits: list[Edit] = []


class Metadata(Strict, frozen=True):
    """The user that the request is for."""

    user_id: str | None = None


class Asked(Strict, frozen=True, kw_only=True):
    """A request, for a message or for the count of its tokens."""

    model: Annotated[str, Meta(max_length=200)]
    """Bounded, because it is recorded with each request."""
    max_tokens: Count | None = None
    """The output limit; required in a request for a message."""
    messages: Annotated[list[Turn], Meta(max_length=MOST_MESSAGES)]
    system: str | list[Text] | None = None
    tools: list[Tool] | None = None
    tool_choice: Choice | None = None
    thinking: Think | None = None
    context_management: Edits | None = None
    output_config: Output | None = None
    cache_control: Kept | None = None
    metadata: Metadata | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: Count | None = None
    stop_sequences: list[str] | None = None
    speed: Literal["standard"] | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    inference_geo: Literal["global"] | None = None


class _Glance(Struct):
    tools: list[Raw] | None = None


_FREE: Final = frozenset({"speed", "inference_geo"})
"""Fields that are accepted only with the provider's default value, and are not sent on."""


def read_request(text: bytes, *, writes: bool = True) -> Asked:
    """Parse a request that writes, or only counts; a field without a price raises."""
    try:
        if len(msgspec.json.decode(text, type=_Glance).tools or []) > MOST_TOOLS:
            raise UnpricedError(f"{_NONE}: it has more than {MOST_TOOLS} tools")
        asked = msgspec.json.decode(text, type=Asked)
    except msgspec.ValidationError as error:
        raise UnpricedError(_refusal(str(error))) from None
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        raise UnpricedError(f"{_NONE}: its body is not a JSON object") from None
    if writes and asked.max_tokens is None:
        raise UnpricedError(f"{_NONE}: `max_tokens` is missing")
    tools = asked.tools and [_bounded(tool) for tool in asked.tools]
    nothing: dict[str, Any] = dict.fromkeys(_FREE)
    return structs.replace(asked, tools=tools, **nothing)


def write_request(asked: Asked) -> bytes:
    return msgspec.json.encode(asked)


def _bounded(tool: Tool) -> Tool:
    if tool.type != SEARCH_TOOL:
        return tool
    return structs.replace(tool, max_uses=min(tool.max_uses or MOST_SEARCHES, MOST_SEARCHES))


_NONE = "this is not a request for a message"
_UNKNOWN = re.compile(
    r"Object contains unknown field `(?P<field>.*?)`(?: - at `(?P<at>.*)`)?", re.DOTALL
)
_PLACE = re.compile(r"(?P<what>.*) - at `\$\.(?P<at>[^`]*)`", re.DOTALL)


def _refusal(message: str) -> str:
    """What is wrong, where, and the cure, without control characters."""
    if unknown := _UNKNOWN.fullmatch(message):
        place = (unknown["at"] or "").removeprefix("$").removeprefix(".")
        where = f"{place}.{unknown['field']}" if place else unknown["field"]
        what = "has no price that Windlass knows"
    elif placed := _PLACE.fullmatch(message):
        where, what = placed["at"], f"cannot be priced: {placed['what']}"
    else:
        return f"{_NONE}: {_shown(message)}"
    first = re.split(r"[.\[]", where)[0]
    why = f" ({_UNPRICED[first]})" if first in _UNPRICED else ""
    cure = "take it out, or use the Claude program that came with this Windlass"
    return f"`{_shown(where)}` {_shown(what)}{why}; {cure}"


def _shown(text: str, longest: int = 120) -> str:
    plain = "".join(char if " " <= char <= "~" else "?" for char in text)
    return plain if len(plain) <= longest else f"{plain[:longest]}..."
