"""Anthropic's Messages API: parses requests and formats answers. Pure.

It has only what the agents' programs rely on: `event:` lines, a `message_start` with an id, blocks
as start, delta and stop, and a `message_delta` with the stop reason. A message can be formatted as
a stream or as one JSON document, because programs fall back from the first to the second.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec import Struct, structs

from windlass.testing.model.script import Answer, Block, Call, Say, Step, Think, Tokens

PARTS = 3
"""The number of deltas of a tool's input, so that readers must join them."""


class _Message(Struct):
    role: str
    content: str | list[dict[str, Any]]


class _Body(Struct):
    messages: list[_Message]
    model: str = ""
    max_tokens: int | None = None
    stream: bool = False
    tools: list[dict[str, Any]] = []


class ParsedRequest(Struct, frozen=True, kw_only=True):
    """The parts of a request that matter here."""

    model: str
    stream: bool
    side: bool
    """A request without tools, such as for titles and quotas, which is not part of the work."""
    prompt: str
    """The user's messages before the first answer."""
    answers: int
    """The number of answers already in the conversation."""
    tools: tuple[str, ...] = ()
    """The names of the tools that the model may use."""
    max_tokens: int | None = None
    """The limit on the length of the answer."""


def variables(url: str) -> dict[str, str]:
    """The environment that directs a program of this protocol to the scripted model at `url`."""
    return {
        "ANTHROPIC_API_KEY": "dummy-key-for-the-scripted-model",
        "ANTHROPIC_BASE_URL": url,
    }


def read(body: bytes) -> ParsedRequest:
    """Parse a request; raises `msgspec.MsgspecError` if it is invalid."""
    decoded = msgspec.json.decode(body, type=_Body)
    return ParsedRequest(
        model=decoded.model,
        stream=decoded.stream,
        side=not decoded.tools,
        prompt="\n".join(_opening(decoded.messages)),
        answers=sum(message.role == "assistant" for message in decoded.messages),
        tools=tuple(str(tool.get("name", "")) for tool in decoded.tools),
        max_tokens=decoded.max_tokens,
    )


def truncated(step: Step, request: ParsedRequest) -> Step:
    """The step, cut off at `max_tokens` as a provider does."""
    if not isinstance(step, Answer) or request.max_tokens is None:
        return step
    if step.usage.output_tokens <= request.max_tokens:
        return step
    usage = structs.replace(step.usage, output_tokens=request.max_tokens)
    begun = (Say("I will now"),)
    return structs.replace(step, blocks=begun, usage=usage, stop_reason="max_tokens")


def _opening(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        if message.role == "assistant":
            return
        if isinstance(message.content, str):
            yield message.content
        else:
            yield from (str(block["text"]) for block in message.content if "text" in block)


def message(answer: Answer, *, ident: int, model: str) -> dict[str, Any]:
    """The whole answer as one document; its ids are derived from `ident`."""
    blocks = [_block(block, f"{ident}_{at}") for at, block in enumerate(answer.blocks)]
    calls = any(isinstance(block, Call) for block in answer.blocks)
    return {
        "id": f"msg_{ident}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": answer.stop_reason or ("tool_use" if calls else "end_turn"),
        "stop_sequence": None,
        "usage": {**msgspec.to_builtins(answer.usage), **answer.usage_more},
    }


def _block(block: Block, ident: str) -> dict[str, Any]:
    match block:
        case Think(text=text):
            return {"type": "thinking", "thinking": text, "signature": f"signed_{ident}"}
        case Say(text=text):
            return {"type": "text", "text": text}
        case Call(tool=tool, input=given):
            return {"type": "tool_use", "id": f"toolu_{ident}", "name": tool, "input": given}


def event(name: str, **data: Any) -> bytes:
    """One event of a stream."""
    return b"event: %s\ndata: %s\n\n" % (
        name.encode(),
        msgspec.json.encode({"type": name, **data}),
    )


def stream(whole: dict[str, Any]) -> Iterator[bytes]:
    """The document as a stream of events."""
    usage = cast("dict[str, Any]", whole["usage"])
    first = {name: usage[name] for name in Tokens.__struct_fields__}
    more = {name: value for name, value in usage.items() if name not in first}
    begun: dict[str, Any] = {
        **whole,
        "content": [],
        "stop_reason": None,
        "usage": {**first, "output_tokens": 1},
    }
    yield event("message_start", message=begun)
    for index, block in enumerate(cast("list[dict[str, Any]]", whole["content"])):
        start, deltas = _deltas(block)
        yield event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    yield event(
        "message_delta",
        delta={"stop_reason": whole["stop_reason"], "stop_sequence": None},
        usage={"output_tokens": usage["output_tokens"], **more},
    )
    yield event("message_stop")


def _deltas(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The start of a block, and the deltas that complete it."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "thinking":
        thought = {"type": "thinking_delta", "thinking": block["thinking"]}
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [thought, signed]
    written = msgspec.json.encode(block["input"]).decode()
    size = max(1, -(-len(written) // PARTS))
    return {**block, "input": {}}, [
        {"type": "input_json_delta", "partial_json": written[at : at + size]}
        for at in range(0, len(written), size)
    ]


def error_body(error: str, message: str) -> bytes:
    """The body of an HTTP error."""
    return msgspec.json.encode({"type": "error", "error": {"type": error, "message": message}})


def limit_headers(end: int) -> dict[str, str]:
    """The headers for a reached usage limit that resets at `end`, in seconds since 1970."""
    window = {"status": "rejected", "reset": str(end)}
    account = {**window, "representative-claim": "five_hour"}
    return {
        **{f"anthropic-ratelimit-unified-{name}": value for name, value in account.items()},
        **{f"anthropic-ratelimit-unified-5h-{name}": value for name, value in window.items()},
        "x-should-retry": "false",
    }


def halves(whole: dict[str, Any], *, streamed: bool) -> tuple[bytes, bytes]:
    """An answer in two parts, split after the first delta of a stream or in the middle of JSON."""
    if not streamed:
        written = msgspec.json.encode(whole)
        return written[: len(written) // 2], written[len(written) // 2 :]
    events = list(stream(whole))
    cut = next(at for at, sent in enumerate(events) if b"content_block_delta" in sent) + 1
    return b"".join(events[:cut]), b"".join(events[cut:])
