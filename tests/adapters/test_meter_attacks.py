"""Odd requests and odd answers over real connections: nothing passes that is not paid for."""

import gzip
import json
import socket
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import h11
import httpx2 as httpx
import pytest

from waiting import eventually
from windlass.adapters.meter.holds import Holds
from windlass.adapters.meter.proxy import Meter
from windlass.adapters.meter.web import HOST
from windlass.adapters.meter.wire.anthropic import ANTHROPIC
from windlass.adapters.meter.wire.anthropic.tally import bound
from windlass.core.events.model import Usage
from windlass.core.events.values import Amount
from windlass.core.state.budget import No
from windlass.core.state.requests import Learnt
from windlass.core.state.requests import Request as Asked
from windlass.ports import Ask, Held
from windlass.testing.model import anthropic_wire as wire

pytestmark = pytest.mark.anyio

KEY = "sk-secret-0123456789"
MODEL = "claude-opus-4-5"
BODY: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 500,
    "messages": [{"role": "user", "content": "hi"}],
}
CONTENT = json.dumps(BODY).encode()
TOLD = {"input_tokens": 10, "output_tokens": 5}


class Books:
    """A ledger that holds so much money."""

    def __init__(self) -> None:
        self.budget = float("inf")
        self.held: dict[str, float] = {}
        self.settled: list[Usage] = []
        self.broken_off: list[bool] = []
        self.reserved: list[float] = []

    def reserve(self, ask: Ask) -> Held | No:
        spent = sum(self.held.values()) + sum(usage.cost_usd for usage in self.settled)
        if spent >= self.budget:
            return No.WAIT if self.held else No.REFUSED
        self.reserved.append(ask.most.usd)
        self.held[f"r{len(self.reserved)}"] = ask.most.usd
        return Held(f"r{len(self.reserved)}", ask.most)

    def settle(self, id_: str, usage: Usage, *, broke_off: bool = False) -> None:
        del self.held[id_]
        self.settled.append(usage)
        self.broken_off.append(broke_off)

    def stream(self, id_: str, usage: Usage) -> None:
        """Nothing here lasts long enough."""

    def refuse(self, ask: Ask) -> None:
        """Nothing here is cut."""


class Place:
    """A provider that answers what it is told, a meter in front of it, an agent that is let in."""

    meter: Meter
    token: str
    holds: Holds

    def __init__(self) -> None:
        self.books = Books()
        self.got: list[tuple[h11.Request, bytes]] = []
        self.answer = answer(json.dumps({"usage": TOLD}).encode())
        self.waits: anyio.Event | None = None

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        """Answer one request."""
        read = h11.Connection(h11.SERVER)
        request, body = None, bytearray()
        async with stream:
            while True:
                match read.next_event():
                    case h11.Request() as request:
                        pass
                    case h11.Data(data=data):
                        body += bytes(data)
                    case h11.EndOfMessage():
                        break
                    case _:
                        read.receive_data(await stream.receive())
            assert request is not None
            self.got.append((request, bytes(body)))
            if self.waits is not None:
                await self.waits.wait()
            await stream.send(self.answer)

    async def raw(self, sent: bytes) -> bytes:
        """What is answered to these very bytes."""
        with anyio.fail_after(60):
            async with await anyio.connect_tcp(HOST, self.port) as stream:
                await stream.send(sent.replace(b"TOKEN", self.token.encode()))
                answered = b""
                with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    while b"\r\n\r\n" not in answered:
                        answered += await stream.receive()
                return answered

    async def post(self, content: bytes = CONTENT, **headers: str) -> httpx.Response:
        url, token = f"{self.meter.url}/v1/messages", {"x-api-key": self.token}
        async with httpx.AsyncClient(timeout=60) as client:
            return await client.post(url, content=content, headers={**token, **headers})

    @property
    def port(self) -> int:
        return int(self.meter.url.rpartition(":")[2])


@asynccontextmanager
async def place() -> AsyncGenerator[Place]:
    made = Place()
    listener = await anyio.create_tcp_listener(local_host=HOST)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  no Django here
    key = {"ANTHROPIC_API_KEY": KEY}
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, made.serve)
        async with Meter.serving(
            ANTHROPIC, f"http://{HOST}:{port}/base", key, made.books
        ) as made.meter:
            admission = made.meter.admit("1.1", "player")
            made.token, made.holds = admission.token, admission.holds
            yield made
        tasks.cancel_scope.cancel()


def answer(body: bytes, kind: str = "application/json", *more: str) -> bytes:
    head = ["HTTP/1.1 200 OK", f"content-type: {kind}", "connection: close", *more, "", ""]
    return "\r\n".join(head).encode() + body


def asking(
    first: str = "POST /v1/messages HTTP/1.1", *headers: str, content: bytes = CONTENT
) -> bytes:
    lines = [first, "host: x", "x-api-key: TOKEN", *headers]
    if not any(line.lower().startswith(("transfer-", "content-length")) for line in headers):
        lines.append(f"content-length: {len(content)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + content


def chunked(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)


ELSEWHERE = [
    "POST /v1/messages/ HTTP/1.1",
    "POST //v1/messages HTTP/1.1",
    "POST /v1//messages HTTP/1.1",
    "POST /v1/./messages HTTP/1.1",
    "POST /v1/../v1/messages HTTP/1.1",
    "POST /v1/messages/../../v1/messages HTTP/1.1",
    "POST /v1/messages/../batches HTTP/1.1",
    "POST /v1%2Fmessages HTTP/1.1",
    "POST /v1%2fmessages HTTP/1.1",
    "POST /v1/%6Dessages HTTP/1.1",
    "POST /v1/messages%00 HTTP/1.1",
    "POST /v1/messages%3Fa HTTP/1.1",
    "POST /v1/messages;a=b HTTP/1.1",
    "POST /V1/MESSAGES HTTP/1.1",
    "POST /v1\\messages HTTP/1.1",
    "POST /v1/messages/batches HTTP/1.1",
    "POST /v1/files HTTP/1.1",
    "POST /v1/complete HTTP/1.1",
    "POST /api/oauth/usage HTTP/1.1",
    "POST http://evil.example/v1/messages HTTP/1.1",
    "POST https://api.anthropic.com/v1/messages HTTP/1.1",
    "POST evil.example:443 HTTP/1.1",
    "POST * HTTP/1.1",
    "POST @evil.example/v1/messages HTTP/1.1",
    "CONNECT evil.example:443 HTTP/1.1",
    "GET /v1/messages HTTP/1.1",
    "PUT /v1/messages HTTP/1.1",
    "PATCH /v1/messages HTTP/1.1",
    "DELETE /v1/messages HTTP/1.1",
    "OPTIONS /v1/messages HTTP/1.1",
    "TRACE /v1/messages HTTP/1.1",
    "post /v1/messages HTTP/1.1",
    "PRI * HTTP/2.0",
]


@pytest.mark.parametrize("first", ELSEWHERE)
async def test_other_ways_lead_nowhere(first: str):  # B6
    async with place() as p:
        answered = await p.raw(asking(first))
        assert answered.split(b" ")[1] in {b"400", b"404"}
        assert p.got == p.books.reserved == []


@pytest.mark.parametrize(
    "query", ["?", "?beta=true&beta=false", "?beta=false", "?x=1", "?beta=true#a", "?%62eta=true"]
)
async def test_nothing_else_may_follow_a_path(query: str):  # B6
    async with place() as p:
        answered = await p.raw(asking(f"POST /v1/messages{query} HTTP/1.1"))
        if query == "?":  # says nothing
            assert p.got[0][0].target == b"/base/v1/messages"
        else:
            assert answered.split(b" ")[1] == b"400"
            assert p.got == p.books.reserved == []


REFUSED = {
    "gzip": asking(
        "POST /v1/messages HTTP/1.1", "content-encoding: gzip", content=gzip.compress(CONTENT)
    ),
    "deflate, but plain": asking("POST /v1/messages HTTP/1.1", "content-encoding: deflate"),
    "two lengths": asking(
        "POST /v1/messages HTTP/1.1", "content-length: 10", f"content-length: {len(CONTENT)}"
    ),
    "a length and pieces": asking(
        "POST /v1/messages HTTP/1.1",
        f"content-length: {len(CONTENT)}",
        "transfer-encoding: chunked",
        content=chunked(CONTENT),
    ),
    "pieces of an odd kind": asking(
        "POST /v1/messages HTTP/1.1", "transfer-encoding: xchunked", content=chunked(CONTENT)
    ),
    "packed pieces": asking(
        "POST /v1/messages HTTP/1.1", "transfer-encoding: gzip, chunked", content=chunked(CONTENT)
    ),
    "a length below nothing": asking("POST /v1/messages HTTP/1.1", "content-length: -5"),
    "a length in words": asking("POST /v1/messages HTTP/1.1", "content-length: 0x10"),
    "two hosts": asking("POST /v1/messages HTTP/1.1", "host: y"),
    "a folded header": asking("POST /v1/messages HTTP/1.1", "x-app: a\r\n b\x00"),
    "a space before the colon": asking("POST /v1/messages HTTP/1.1", "x-original-url : /x"),
    "another version": asking("POST /v1/messages HTTP/1.1", "anthropic-version: 2099-01-01"),
    "sixteen bits": asking(content=json.dumps(BODY).encode("utf-16")),
    "a mark before it": asking(content=b"\xef\xbb\xbf" + CONTENT),
    "two bodies": asking(content=CONTENT + CONTENT),
    "a form": asking(content=b"model=claude&max_tokens=1"),
    "fast": asking(content=json.dumps({**BODY, "speed": "fast"}).encode()),
    "fast, said twice": asking(content=CONTENT[:-1] + b', "speed": "standard", "speed": "fast"}'),
    "fast, in other letters": asking(content=CONTENT[:-1] + b', "sp\\u0065ed": "f\\u0061st"}'),
    "a batch": asking(content=json.dumps({"requests": [BODY, BODY]}).encode()),
    "no token": asking().replace(b"x-api-key", b"x-no-key"),
    "the key itself": asking().replace(b"TOKEN", KEY.encode()),
}


@pytest.mark.parametrize("sent", REFUSED.values(), ids=REFUSED.keys())
async def test_what_can_be_read_in_two_ways_is_not_passed_on(sent: bytes):  # B6
    async with place() as p:
        answered = await p.raw(sent)
        assert answered.split(b" ")[1][:1] in {b"4", b"5"}
        assert p.got == p.books.reserved == []


REBUILT = {
    "headers that lead elsewhere": asking(
        "POST /v1/messages HTTP/1.1",
        "x-original-url: /v1/messages/batches",
        "x-rewrite-url: /v1/files",
        "x-forwarded-host: evil.example",
        "x-forwarded-for: 10.0.0.1",
        "forwarded: host=evil.example",
        "x-http-method-override: DELETE",
        "anthropic-beta: fast-mode-2026-02-01,advisor-tool-2026-03-01",
        "authorization: Bearer stolen",
        "cookie: a=b",
        "connection: x-api-key, keep-alive",
        "te: trailers",
    ),
    "pieces": asking(
        "POST /v1/messages HTTP/1.1", "transfer-encoding: chunked", content=chunked(CONTENT)
    ),
    "pieces with more behind them": asking(
        "POST /v1/messages HTTP/1.1",
        "transfer-encoding: chunked",
        "trailer: x-original-url",
        content=b"%x\r\n%s\r\n0\r\nx-original-url: /x\r\n\r\n" % (len(CONTENT), CONTENT),
    ),
    "an old version": asking("POST /v1/messages HTTP/1.0"),
    "white space": asking(content=b" \n" * 1000 + CONTENT + b"\t" * 1000),
    "a key twice": asking(content=b'{"max_tokens": 1, ' + CONTENT[1:]),
    "another kind of body": asking("POST /v1/messages HTTP/1.1", "content-type: text/xml"),
    "another host": asking().replace(b"host: x", b"host: evil.example"),
    "what is so anyway": asking(content=CONTENT[:-1] + b', "speed": "standard"}'),
}


@pytest.mark.parametrize("sent", REBUILT.values(), ids=REBUILT.keys())
async def test_what_is_passed_on_is_written_anew(sent: bytes):  # B6
    async with place() as p:
        answered = await p.raw(sent)
        assert answered.split(b" ")[1] == b"200"
        [(request, body)] = p.got
        assert (request.method, request.target) == (b"POST", b"/base/v1/messages")
        assert json.loads(body) == BODY
        assert len(body) <= len(CONTENT)
        headers = dict(request.headers)
        assert headers.pop(b"host").startswith(b"127.0.0.1:")
        assert headers == {
            b"x-api-key": KEY.encode(),
            b"anthropic-version": b"2023-06-01",
            b"content-type": b"application/json",
            b"content-length": str(len(body)).encode(),
            b"accept-encoding": b"identity",
            b"accept": b"*/*",
            b"connection": b"keep-alive",
            b"user-agent": headers[b"user-agent"],
        }
        assert p.books.reserved == [bound(MODEL, json.loads(body))]


_TURN = b'{"role":"user","content":""}'
_TEXT = b'{"type":"text","text":""}'
_USE = b'{"type":"tool_use","id":"","name":"","input":'


@pytest.mark.parametrize(
    ("first", "one", "last"),
    [
        (b'"messages":[', _TURN, b"]"),
        (b'"messages":[{"role":"user","content":[', _TEXT, b"]}]"),
        (b'"messages":[{"role":"user","content":[', _USE + b"{}}", b"]}]"),
        (b'"messages":[{"role":"user","content":[' + _USE + b"[", b"[]", b"]}]}]"),
        (b'"messages":[],"tools":[', b'{"name":""}', b"]"),
        (b'"messages":[],"stop_sequences":[', b'""', b"]"),
        (b'"messages":[],"x":[', b"[]", b"]"),
    ],
    ids=["turns", "texts", "uses", "input", "tools", "words", "unknown"],
)
async def test_many_small_things_take_no_more_than_their_length(  # B6
    first: bytes, one: bytes, last: bytes
):
    many = b",".join([one] * (10_000_000 // len(one)))
    content = b'{"model":"m","max_tokens":1,' + first + many + last + b"}"
    async with place() as p:
        tracemalloc.start()
        try:
            await p.post(content)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 15 * len(content)


async def test_a_refusal_says_what_where_and_the_cure_and_is_remembered():  # B6
    async with place() as p:
        answered = await p.post(json.dumps({**BODY, "speed": "fast"}).encode())
        error = answered.json()["error"]
        assert (answered.status_code, error["type"]) == (400, "invalid_request_error")
        for word in ("the meter refused", "`speed`", "six times", "take it out"):
            assert word in error["message"]
        told = p.meter.dismiss(p.token)
        assert told is not None
        assert told.why == error["message"]


async def test_what_is_granted_later_is_refused_no_more():
    async with place() as p:
        await p.post(b"{}")
        assert (await p.post()).status_code == 200
        assert p.meter.dismiss(p.token) is None


@pytest.mark.parametrize("usage", [{"output_tokens": -5}, {"input_tokens": 10**30}, {"x": 1.5}, 7])
async def test_a_document_whose_numbers_cannot_be_is_the_providers_mistake(usage: Any):  # B6
    async with place() as p:
        p.answer = answer(json.dumps({"content": [], "usage": usage}).encode())
        answered = await p.post()
        assert answered.status_code == 502
        assert answered.json()["error"]["type"] == "api_error"
        [settled] = p.books.settled
        assert (settled.cost_usd, settled.known) == (p.books.reserved[0], False)
        told = p.meter.dismiss(p.token)
        assert told is not None
        assert "the provider made a mistake" in told.why


async def test_a_stream_whose_numbers_cannot_be_ends_in_an_error():  # B6
    async with place() as p:
        begun = wire.event("message_start", message={"usage": TOLD})
        wrong = wire.event("message_delta", usage={"output_tokens": -5})
        p.answer = answer(begun + wrong + wire.event("message_stop"), "text/event-stream")
        answered = await p.post(json.dumps({**BODY, "stream": True}).encode())
        assert b"api_error" in answered.content
        assert b"message_stop" not in answered.content
        [settled] = p.books.settled
        assert (settled.cost_usd, settled.known) == (p.books.reserved[0], False)


@pytest.mark.parametrize(
    "told",
    [
        answer(b""),
        answer(b"no JSON"),
        answer(b"[]"),
        answer(b"{}"),
        answer(b'{"usage":{}}'),
        answer(b'{"usage":null}'),
        answer(b"\xff" * 1000),
        answer(gzip.compress(b'{"usage":{}}'), "application/json", "content-encoding: gzip"),
        answer(b"data: {}\n\n", "text/event-stream"),
        answer(wire.event("message_stop"), "text/event-stream"),
        answer(b"", "text/event-stream"),
        answer(b'{"usage":{"input_tokens":1}}', "text/event-stream"),
    ],
    ids=range(12),
)
async def test_an_answer_that_tells_nothing_is_never_free(told: bytes):  # B6
    async with place() as p:
        p.answer = told
        await p.post()
        [settled] = p.books.settled
        assert not settled.known
        assert settled.cost_usd <= p.books.reserved[0]
        [broke_off] = p.books.broken_off
        request = Asked(
            task="1.1", role="player", model=MODEL, most=Amount(usd=p.books.reserved[0])
        )
        counted = Learnt().settled(request, settled, broke_off=broke_off)
        assert (counted.cost_usd, counted.known) == (p.books.reserved[0], False)


async def test_a_redirection_leads_nowhere():  # B6
    async with place() as p:
        p.answer = (
            b"HTTP/1.1 307 Elsewhere\r\nlocation: http://evil.example/v1/messages\r\n"
            b"content-length: 0\r\nconnection: close\r\n\r\n"
        )
        answered = await p.post()
        assert answered.status_code == 307
        assert "location" not in answered.headers
        assert len(p.got) == 1


async def test_money_that_others_only_hold_is_waited_for():  # B6
    """A large reservation of one request does not end a run whose money is not spent."""
    async with place() as p, anyio.create_task_group() as tasks:
        p.books.budget, p.waits = 0.001, anyio.Event()
        answered: list[int] = []

        async def ask() -> None:
            answered.append((await p.post()).status_code)

        tasks.start_soon(ask)
        await anyio.to_thread.run_sync(eventually, lambda: p.got)
        assert not p.holds.any, "a request that the provider answers is not held"
        tasks.start_soon(ask)
        await anyio.to_thread.run_sync(eventually, lambda: p.holds.any)
        assert len(p.got) == 1
        p.waits.set()
        await anyio.to_thread.run_sync(eventually, lambda: len(answered) == 2)
        assert answered == [200, 200]
        assert not p.holds.any
        p.books.budget = 0
        assert (await p.post()).status_code == 402


async def test_an_agent_that_leaves_while_it_waits_for_money_is_let_go():  # B6
    async with place() as p, anyio.create_task_group() as tasks:
        p.books.budget, p.waits = 0.001, anyio.Event()
        tasks.start_soon(p.post)
        await anyio.to_thread.run_sync(eventually, lambda: p.got)
        async with anyio.create_task_group() as leaving:
            leaving.start_soon(p.post)
            await anyio.to_thread.run_sync(eventually, lambda: p.holds.any)
            leaving.cancel_scope.cancel()
        await anyio.to_thread.run_sync(eventually, lambda: len(_connections(p)) == 1)
        assert not p.holds.any
        p.waits.set()
        await anyio.to_thread.run_sync(eventually, lambda: len(p.books.settled) == 1)
    assert len(p.got) == 1


async def test_a_listening_socket_can_be_handed_in():
    async with place() as p:
        with socket.create_server((HOST, 0)) as door:
            async with p.meter.listening(door):
                url = f"http://{HOST}:{door.getsockname()[1]}/v1/messages"
                async with httpx.AsyncClient() as client:
                    answered = await client.post(url, json=BODY, headers={"x-api-key": p.token})
                    assert answered.status_code == 200
                    stranger = await client.post(url, json=BODY)
                    assert stranger.status_code == 401
            await anyio.to_thread.run_sync(eventually, lambda: not _connections(p))


async def test_connections_through_one_door_shut_nobody_out_at_another():  # B6
    async with place() as p:
        with socket.create_server((HOST, 0)) as door:
            async with p.meter.listening(door):
                first = await anyio.connect_tcp(HOST, p.port)
                held = [await anyio.connect_tcp(*door.getsockname()) for _ in range(100)]
                await first.send(asking().replace(b"TOKEN", p.token.encode()))
                assert (await first.receive()).startswith(b"HTTP/1.1 200")
                for stream in (first, *held):
                    await stream.aclose()


async def test_a_connection_can_be_handed_in():
    async with place() as p:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        await p.meter.take(theirs)
        ours.sendall(asking().replace(b"TOKEN", p.token.encode()))
        answered = await anyio.to_thread.run_sync(partial(ours.recv, 65536))
        ours.close()
        assert answered.startswith(b"HTTP/1.1 200")
        assert len(p.books.settled) == 1


def _connections(p: Place) -> set[Any]:
    return p.meter._web.server_state.connections
