"""Sends one step to the client, faults included. No other module writes to a connection."""

import asyncio
import math
import time
from typing import Any, TypeAlias, assert_never

import anyio
import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from windlass.testing.model import anthropic_wire as wire
from windlass.testing.model.ledger import Ledger, Seen
from windlass.testing.model.script import (
    Answer,
    Call,
    Drop,
    DropMid,
    Flaky,
    Hang,
    Limit,
    Say,
    SseError,
    Status,
    Step,
)

JSON = "application/json"
EVENTS = "text/event-stream"

_Broken: TypeAlias = Drop | DropMid | Hang


class Delivery(Response):
    """A response that may break off, hang or fail, as its step says."""

    def __init__(
        self,
        step: Step,
        *,
        request: wire.ParsedRequest,
        seen: Seen,
        ledger: Ledger,
        connection: asyncio.Transport,
    ) -> None:
        super().__init__()
        self._step = step
        self._request = request
        self._seen = seen
        self._ledger = ledger
        self._connection = connection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the step, unless the client disconnects first."""
        del scope
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_gone, receive, tasks.cancel_scope)
                await self._deliver(send)
                tasks.cancel_scope.cancel()
        finally:
            self._ledger.write(self._seen)

    async def _until_gone(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async def _deliver(self, send: Send) -> None:
        match self._step:
            case Say() | Call() as block:
                await self._answer(send, Answer((block,)))
            case Answer() as answer:
                await self._answer(send, answer)
            case Status() | Limit() as refusal:
                await self._refuse(send, refusal)
            case SseError(error=error) if not self._request.stream:
                await self._start(send, JSON, 529 if error == "overloaded_error" else 500)
                await self._finish(send, wire.error_body(error, "scripted"))
            case SseError(error=error):
                opening = next(wire.stream(self._whole(Answer((Say(""),)))))
                failure = wire.event("error", error={"type": error, "message": "scripted"})
                await self._start(send, EVENTS)
                await self._finish(send, opening + failure)
            case Drop() | DropMid() | Hang() as broken:
                await self._break(send, broken)
            case Flaky():
                message = "a flaky step is resolved before it is delivered"
                raise TypeError(message)
            case _:
                assert_never(self._step)

    async def _refuse(self, send: Send, refusal: Status | Limit) -> None:
        match refusal:
            case Status() as status:
                pass
            case Limit(seconds=seconds):
                end = math.ceil(time.time() + seconds)  # noqa: TID251  as a provider does
                status = Status(429, "rate_limit_error", wire.limit_headers(end))
        await self._start(send, JSON, status.code, status.headers)
        await self._finish(send, wire.error_body(status.error, status.message))

    async def _answer(self, send: Send, answer: Answer) -> None:
        await anyio.sleep(answer.delay)
        whole = self._whole(answer)
        if not self._request.stream:
            await self._start(send, JSON)
            await self._finish(send, msgspec.json.encode(whole))
            return
        await self._start(send, EVENTS)
        for sent in wire.stream(whole):
            await self._send(send, sent)
            await anyio.sleep(answer.pace)
        await self._finish(send, b"")

    async def _break(self, send: Send, broken: _Broken) -> None:
        match broken:
            case DropMid(text=text) | Hang(stage="middle", text=text):
                await self._half(send, text)
            case Drop() | Hang():
                pass
        if not isinstance(broken, Hang):
            # Without this pause the connection could break before the first byte is sent.
            await anyio.sleep(0.05)
            self._connection.abort()
        # Dropped or hanging, it ends when the client disconnects.
        await anyio.sleep_forever()

    async def _half(self, send: Send, text: str) -> None:
        first, _ = wire.halves(self._whole(Answer((Say(text),))), streamed=self._request.stream)
        await self._start(send, EVENTS if self._request.stream else JSON)
        await self._send(send, first)

    def _whole(self, answer: Answer) -> dict[str, Any]:
        self._seen.usage = answer.usage
        return wire.message(answer, ident=self._seen.seq, model=self._request.model)

    async def _start(
        self, send: Send, kind: str, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self._seen.status = status
        fields = {"content-type": kind, "request-id": f"req_{self._seen.seq}", **(headers or {})}
        raw = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})

    async def _send(self, send: Send, body: bytes) -> None:
        await send({"type": "http.response.body", "body": body, "more_body": True})

    async def _finish(self, send: Send, body: bytes) -> None:
        await send({"type": "http.response.body", "body": body, "more_body": False})
        self._seen.completed = True
