"""The meter over real connections: what passes, what it costs, who may ask, and how it ends."""

import logging
import os
import socket
import tracemalloc
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from logging import NullHandler
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import httpx2 as httpx
import msgspec
import pytest

from waiting import eventually
from windlass.adapters.agents.claude import VENDOR, find_program
from windlass.adapters.agents.claude.agent import ClaudeAgent
from windlass.adapters.agents.metered import MeteredAgent, informed
from windlass.adapters.clock import SystemClock
from windlass.adapters.meter import proxy, web
from windlass.adapters.meter.proxy import MOST_BYTES, Admission, Meter
from windlass.adapters.meter.rate_limits import Refusal
from windlass.adapters.meter.web import HOST
from windlass.adapters.meter.wire.anthropic import ANTHROPIC
from windlass.adapters.meter.wire.anthropic.prices import cost
from windlass.adapters.meter.wire.anthropic.tally import bound
from windlass.adapters.sandbox.plain import Plain
from windlass.core.events.model import Failure, Usage
from windlass.core.events.values import Amount
from windlass.core.settings import AgentSettings
from windlass.core.state.budget import No
from windlass.ports import Ask, Held, Report
from windlass.testing.conformance.agent import brief
from windlass.testing.model import (
    Answer,
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
    Tokens,
)
from windlass.testing.model.server import ModelServer

pytestmark = pytest.mark.anyio

KEY = "sk-secret-0123456789"
MODEL = "claude-sonnet-4-5"
TOKENS = Tokens(
    input_tokens=7, output_tokens=50, cache_creation_input_tokens=30, cache_read_input_tokens=400
)
USED = Usage(input_tokens=7, output_tokens=50, cache_write_tokens=30, cache_read_tokens=400)
SAID = Answer((Say("word " * 40), Call("Write", {"text": "x"})), usage=TOKENS)
KEYS = {"ANTHROPIC_API_KEY": KEY}
PATH = "/v1/messages?beta=true"
BETA = "effort-2025-11-24"


class Recording:
    """A ledger that remembers, and refuses when it is told to."""

    def __init__(self) -> None:
        self.reserved: list[tuple[str, str, str, float]] = []
        self.streamed: list[tuple[str, Usage]] = []
        self.broken_off: list[str] = []
        self.cut: list[Ask] = []
        self.left = Amount(usd=float("inf"), tokens=2**63)
        self.settled: list[tuple[str, Usage]] = []
        self.refuses = False
        self.fails = False
        self.changed = anyio.Event()

    def reserve(self, ask: Ask) -> Held | No:
        left = self.left
        if self.refuses or ask.least.usd > left.usd or ask.least.tokens > left.tokens:
            return No.REFUSED
        usd, tokens = min(ask.most.usd, left.usd), min(ask.most.tokens, left.tokens)
        self.reserved.append((ask.task, ask.role, ask.model, usd))
        return Held(f"r{len(self.reserved)}", Amount(usd=usd, tokens=tokens))

    def settle(self, id_: str, usage: Usage, *, broke_off: bool = False) -> None:
        if self.fails:
            raise OSError("no space left")
        self.settled.append((id_, usage))
        self.broken_off += [id_] if broke_off else []
        self.changed.set()

    def stream(self, id_: str, usage: Usage) -> None:
        self.streamed.append((id_, usage))

    def refuse(self, ask: Ask) -> None:
        self.cut.append(ask)

    @property
    def only(self) -> Usage:
        [(_, usage)] = self.settled
        return usage


class World:
    """A scripted provider, a meter in front of it, one agent let in."""

    server: ModelServer

    def __init__(self, meter: Meter, ledger: Recording) -> None:
        self.meter, self.ledger = meter, ledger
        self.admission = meter.admit("1.1", "player")

    @asynccontextmanager
    async def agent(self, admission: Admission | None = None) -> AsyncGenerator[httpx.AsyncClient]:
        let_in = admission or self.admission
        headers = {"x-api-key": let_in.token, "anthropic-beta": BETA}
        async with httpx.AsyncClient(base_url=let_in.url, headers=headers, timeout=90) as client:
            yield client

    async def ask(self, path: str = PATH, **more: Any) -> httpx.Response:
        return await self.post(self.admission, path, **more)

    async def post(self, admission: Admission, path: str = PATH, **more: Any) -> httpx.Response:
        async with self.agent(admission) as agent:
            return await agent.post(path, json=body(**more))


def body(**more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "hi"}]
    tools = [{"name": "Write"}]
    return {"model": MODEL, "max_tokens": 500, "tools": tools, "messages": messages, **more}


@asynccontextmanager
async def world(
    *steps: Step, credentials: Mapping[str, str] | None = None
) -> AsyncGenerator[World]:
    ledger = Recording()
    async with (
        ModelServer.serving(Book(default=Script(steps))) as server,
        Meter.serving(
            ANTHROPIC, server.url, credentials or {"ANTHROPIC_API_KEY": KEY}, ledger
        ) as meter,
    ):
        with anyio.fail_after(100):
            made = World(meter, ledger)
            made.server = server
            yield made


@asynccontextmanager
async def echo(credentials: Mapping[str, str]) -> AsyncGenerator[tuple[World, list[bytes]]]:
    """A provider that answers 400, and the requests it got, to the byte."""
    got: list[bytes] = []

    async def handle(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            got.append(await stream.receive())
            await stream.send(b"HTTP/1.1 400 No\r\ncontent-length: 0\r\nset-cookie: a=b\r\n\r\n")

    listener = await anyio.create_tcp_listener(local_host=HOST)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  no Django here
    ledger = Recording()
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        async with Meter.serving(
            ANTHROPIC, f"http://{HOST}:{port}/base/", credentials, ledger
        ) as meter:
            yield World(meter, ledger), got
        tasks.cancel_scope.cancel()


def priced(usage: Usage) -> float:
    return cost(MODEL, usage)


class TestPassing:
    async def test_a_stream_passes_unchanged_and_is_settled_before_it_ends(self):
        async with world(SAID) as w:
            async with httpx.AsyncClient() as direct:
                asked = body(stream=True)
                straight = (await direct.post(f"{w.server.url}/v1/messages", json=asked)).content
            seen = b""
            async with w.agent() as agent, agent.stream("POST", PATH, json=asked) as answer:
                assert answer.headers["content-type"] == "text/event-stream"
                assert answer.headers["request-id"] == "req_2"
                async for chunk in answer.aiter_raw():
                    seen += chunk
                    assert len(w.ledger.settled) == 1 or b"message_stop" not in seen
            assert seen == straight.replace(b"msg_1", b"msg_2").replace(b"toolu_1", b"toolu_2")
            assert w.ledger.reserved == [("1.1", "player", MODEL, bound(MODEL, asked))]
            assert w.ledger.settled[0][0] == "r1"
            assert w.ledger.only.cost_usd == pytest.approx(priced(USED))
            assert _tokens(w.ledger.only) == TOKENS
            assert w.ledger.only.known

    @pytest.mark.parametrize("stream", [True, False])
    async def test_what_cannot_be_settled_does_not_end(self, *, stream: bool):
        async with world(SAID) as w, w.agent() as agent:
            w.ledger.fails = True
            seen = b""
            with pytest.raises((httpx.TransportError, httpx.HTTPStatusError)):  # noqa: PT012
                async with agent.stream("POST", PATH, json=body(stream=stream)) as answer:
                    answer.raise_for_status()
                    async for chunk in answer.aiter_raw():
                        seen += chunk
            assert (b"message_start" in seen) == stream
            assert b"message_stop" not in seen

    async def test_a_document_passes_unchanged_and_costs_the_same(self):
        async with world(SAID) as w:
            answer = await w.ask()
            assert answer.json()["usage"]["output_tokens"] == 50
            assert answer.json()["content"][0]["text"] == "word " * 40
            assert _tokens(w.ledger.only) == TOKENS == w.server.log[0].usage

    async def test_side_requests_are_metered_too(self):
        async with world() as w:
            await w.ask(tools=[], model="claude-haiku-4-5")
            assert w.ledger.reserved[0][2] == "claude-haiku-4-5"
            assert w.ledger.only.cost_usd == pytest.approx((10 * 1 + 5 * 5) / 1e6)

    async def test_tokens_are_counted_for_nothing(self):
        async with world() as w:
            answer = await w.ask("/v1/messages/count_tokens")
            assert answer.json() == {"input_tokens": 100}
            assert w.ledger.reserved == w.ledger.settled == []

    async def test_two_agents_at_once_are_told_apart(self):
        async with world(SAID) as w, anyio.create_task_group() as tasks:
            for task, model in (("1.1", "claude-opus-4-5"), ("1.2", MODEL)):
                admission = w.meter.admit(task, "coach")
                tasks.start_soon(partial(w.post, admission, model=model, stream=True))
        asked = sorted(reserved[:3] for reserved in w.ledger.reserved)
        assert asked == [("1.1", "coach", "claude-opus-4-5"), ("1.2", "coach", MODEL)]
        costs = {held: usage.cost_usd for held, usage in w.ledger.settled}
        models = {f"r{at}": kept[2] for at, kept in enumerate(w.ledger.reserved, 1)}
        assert costs == {held: cost(model, USED) for held, model in models.items()}


class TestRefusing:
    @pytest.mark.parametrize("headers", [{}, {"x-api-key": KEY}, {"authorization": "Bearer x"}])
    async def test_without_a_token_nothing_is_forwarded(self, headers: dict[str, str]):
        async with world() as w, httpx.AsyncClient(base_url=w.meter.url) as stranger:
            answer = await stranger.post(PATH, json=body(), headers=headers)
            assert answer.status_code == 401
            assert answer.json()["error"]["type"] == "authentication_error"
            assert w.server.log == w.ledger.reserved == []

    async def test_a_token_may_be_the_bearer_and_ends_with_its_agent(self):
        async with world() as w, httpx.AsyncClient(base_url=w.meter.url) as agent:
            bearer = {"authorization": f"Bearer {w.admission.token}"}
            assert (await agent.post(PATH, json=body(), headers=bearer)).status_code == 200
            w.meter.dismiss(w.admission.token)
            assert (await agent.post(PATH, json=body(), headers=bearer)).status_code == 401

    async def test_beyond_the_budget_nothing_is_forwarded(self):
        async with world() as w:
            w.ledger.refuses = True
            answer = await w.ask()
            assert answer.status_code == 402
            told = {"type": "billing_error", "message": "the run's budget is used up"}
            assert answer.json() == {"type": "error", "error": told}
            assert w.server.log == w.ledger.settled == []

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/v1/messages"),
            ("POST", "/v1/messages/batches"),
            ("HEAD", "/"),
            ("GET", "/_log"),
        ],
    )
    async def test_other_paths_lead_nowhere(self, method: str, path: str):
        async with world() as w, w.agent() as agent:
            answer = await agent.request(method, path)
            assert answer.status_code == 404
            assert method == "HEAD" or answer.json()["error"]["type"] == "not_found_error"
            assert w.server.log == []

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"[]",
            b'{"model":"m"}',
            b'{"max_tokens":-1}',
            b'{"model":"m","max_tokens":' + b"9" * 400 + b"}",
            b'{"model":"m","max_tokens":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            b'{"model":"' + b"m" * 201 + b'","max_tokens":1}',
        ],
        ids=range(7),
    )
    async def test_what_cannot_be_priced_is_not_forwarded(self, content: bytes):
        async with world() as w, w.agent() as agent:
            assert (await agent.post(PATH, content=content)).status_code == 400
            assert w.server.log == w.ledger.reserved == []

    async def test_a_name_of_a_model_may_be_as_long_as_names_are(self):
        async with world() as w:
            assert (await w.ask(model="m" * 200)).status_code == 200

    @pytest.mark.parametrize(
        ("query", "header"), [("", "x-app: é"), ("", "anthropic-beta: é"), ("?" + "a" * 70_000, "")]
    )
    async def test_what_cannot_be_passed_on_is_refused(self, query: str, header: str):
        async with world() as w:
            answer = await _raw(w, f"POST {PATH}{query}", header, msgspec.json.encode(body()))
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert b"invalid_request_error" in answer
            assert w.server.log == w.ledger.reserved == []

    @pytest.mark.parametrize(
        ("first", "header", "content", "later"),
        [
            ("garbage", "", b"", b""),
            (f"POST {PATH}", "x-app: é", msgspec.json.encode(body()), b""),
            (f"POST {PATH}", "connection: upgrade\r\nupgrade: websocket", b"{}", b""),
            (f"POST {PATH}", "", b'{"x":' + b"[" * 100_000, b""),
            (f"POST {PATH}", "", b"{}", b"garbage\r\n\r\n"),
            ("POST /elsewhere", "transfer-encoding: chunked", b"", b"zz\r\n"),
            ("POST /elsewhere", "transfer-encoding: chunked", b"zz\r\n", b""),
        ],
        ids=range(7),
    )
    async def test_what_an_agent_sends_never_shows_on_the_users_terminal(
        self,
        first: str,
        header: str,
        content: bytes,
        later: bytes,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ):
        async with world() as w:
            for name in ("", "uvicorn", "uvicorn.error", "asyncio"):  # as outside of any test
                kept = [h for h in logging.getLogger(name).handlers if type(h) is NullHandler]
                monkeypatch.setattr(logging.getLogger(name), "handlers", kept)
            answer = await _raw(w, first, header, content, later)
            assert answer.startswith(b"HTTP/1.1 40")
        assert capfd.readouterr() == ("", "")

    async def test_what_is_too_much_at_once_is_refused_and_not_kept(self):  # B6
        """In one request, whether or not its length is told, or in several; then all is as ever."""
        piece = b" " * 2**20
        asked = msgspec.json.encode(body())

        async def sent(pieces: int) -> AsyncGenerator[bytes]:
            for _ in range(pieces):
                yield piece
            yield asked

        most = MOST_BYTES // len(piece)
        async with world(SAID) as w, w.agent() as agent:
            assert (await agent.post(PATH, content=sent(most))).status_code == 413
            whole = piece * most + asked
            assert (await agent.post(PATH, content=whole)).status_code == 413
            assert w.server.log == w.ledger.reserved == []
            assert (await agent.post(PATH, content=sent(most - 1))).status_code == 200
            assert (await agent.post(PATH, content=sent(most - 1))).status_code == 200

    async def test_what_one_agent_has_under_way_counts_together(self):  # B6
        half = b" " * (MOST_BYTES // 2) + msgspec.json.encode(body())
        async with (
            world(Hang("start"), Hang("start")) as w,
            w.agent() as agent,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(partial(agent.post, PATH, content=half))
            await anyio.to_thread.run_sync(eventually, lambda: w.server.log)
            assert (await agent.post(PATH, content=half)).status_code == 413
            other = w.meter.admit("1.2", "player")
            async with w.agent(other) as another:
                asked = another.build_request("POST", PATH, content=half)
                tasks.start_soon(partial(another.send, asked))
                await anyio.to_thread.run_sync(eventually, lambda: len(w.server.log) == 2)
                tasks.cancel_scope.cancel()

    async def test_a_small_text_of_many_objects_takes_no_more_than_its_length(self):  # B6
        many = b'{"model":"m","max_tokens":1,"messages":[' + b"[]," * 5_000_000 + b"[]]}"
        async with world(SAID) as w, w.agent() as agent:
            tracemalloc.start()
            try:
                await agent.post(PATH, content=many)
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert peak < 10 * len(many)

    async def test_headers_without_end_are_not_kept(self):  # B6
        async with world() as w:
            port = int(w.meter.url.rpartition(":")[2])
            async with await anyio.connect_tcp(HOST, port) as stream:
                await stream.send(b"POST /v1/messages HTTP/1.1\r\nx: " + b"x" * 200_000)
                assert b" 400 " in await stream.receive()

    async def test_connections_without_end_are_hung_up_on(self, monkeypatch: pytest.MonkeyPatch):
        """The one that has waited longest without a token goes; a newcomer can always show its."""
        monkeypatch.setattr(web, "MOST_STRANGERS", 3)
        async with world(SAID) as w, AsyncExitStack() as held:
            port = int(w.meter.url.rpartition(":")[2])
            opened = [
                await held.enter_async_context(await anyio.connect_tcp(HOST, port))
                for _ in range(4)
            ]
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await opened[0].receive()
            assert (await w.ask()).status_code == 200

    async def test_idle_connections_of_one_agent_shut_no_other_out(self):  # B6
        async with world(SAID) as w, AsyncExitStack() as held:
            port = int(w.meter.url.rpartition(":")[2])
            for _ in range(600):
                await held.enter_async_context(await anyio.connect_tcp(HOST, port))
            other = w.meter.admit("1.2", "player")
            assert (await w.post(other)).status_code == 200
            assert len(w.meter._web.server_state.connections) <= web.MOST_STRANGERS + 1

    async def test_an_agent_has_so_many_connections_and_its_idle_ones_go(
        self, monkeypatch: pytest.MonkeyPatch
    ):  # B6
        monkeypatch.setattr(web, "MOST_OF_ONE", 3)
        async with world(SAID) as w, AsyncExitStack() as held:
            for _ in range(6):
                agent = await held.enter_async_context(w.agent())
                assert (await agent.post(PATH, json=body())).status_code == 200
            assert len(w.meter._web.server_state.connections) <= 3

    async def test_an_agent_that_asks_too_often_at_once_is_told_so(
        self, monkeypatch: pytest.MonkeyPatch
    ):  # B6
        monkeypatch.setattr(web, "MOST_OF_ONE", 2)
        async with world(Hang("start")) as w, anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(w.ask)
            await anyio.to_thread.run_sync(eventually, lambda: len(w.server.log) == 2)
            assert (await w.ask()).status_code == 503
            tasks.cancel_scope.cancel()

    async def test_what_no_model_writes_is_not_reserved(self):  # B6
        async with world() as w:
            assert (await w.ask(max_tokens=10**9)).status_code == 200
            assert w.ledger.reserved[0][3] < 2

    async def test_what_the_provider_brings_in_itself_is_reserved(self):  # B6
        async with world() as w:
            document = {"type": "document", "source": {"type": "url", "url": "https://x"}}
            assert (await w.ask(messages=[{"role": "user", "content": [document]}])).is_success
            assert w.ledger.reserved[0][3] > 3

    async def test_what_is_priced_is_what_is_sent(self):
        async with world() as w, w.agent() as agent:
            twice = b'{"model":"claude-opus-4","model":"m","max_tokens":1,"messages":[]}'
            await agent.post(PATH, content=twice)
            assert w.server.log[0].model == w.ledger.reserved[0][2] == "m"


class TestFailing:
    @pytest.mark.parametrize(
        "status",
        [
            Status(401, "authentication_error"),
            Status(429, "rate_limit_error", {"retry-after": "7", "anthropic-ratelimit-x": "1"}),
            Status(529, "overloaded_error"),
        ],
    )
    async def test_the_providers_refusal_passes_unchanged_and_costs_nothing(self, status: Status):
        async with world(status) as w:
            answer = await w.ask(stream=True)
            assert answer.status_code == status.code
            assert answer.json()["error"] == {"type": status.error, "message": "scripted"}
            assert status.headers.items() <= dict(answer.headers).items()
            assert w.ledger.only == Usage()

    async def test_a_provider_out_of_reach_is_overloaded_and_costs_nothing(self):
        with socket.create_server((HOST, 0)) as taken:
            nobody = f"http://{HOST}:{taken.getsockname()[1]}"
        ledger = Recording()
        async with Meter.serving(ANTHROPIC, nobody, KEYS, ledger) as meter:
            answer = await World(meter, ledger).ask()
        assert answer.status_code == 503
        assert answer.json()["error"]["type"] == "overloaded_error"
        assert ledger.only == Usage()

    @pytest.mark.parametrize("stream", [True, False])
    async def test_a_connection_lost_before_any_answer_is_estimated(self, *, stream: bool):  # B6
        async with world(Drop()) as w:
            answer = await w.ask(stream=stream)
            assert answer.status_code == 503
            assert answer.json()["error"]["type"] == "overloaded_error"
            _assert_estimated(w, started=False)

    @pytest.mark.parametrize("stream", [True, False])
    async def test_an_answer_that_breaks_off_breaks_off_and_is_estimated(self, *, stream: bool):
        async with world(DropMid()) as w:
            with pytest.raises(httpx.TransportError):
                await w.ask(stream=stream)
            _assert_estimated(w, started=stream)

    async def test_an_answer_that_ends_in_an_error_is_estimated(self):
        async with world(SseError()) as w:
            assert b"overloaded_error" in (await w.ask(stream=True)).content
            _assert_estimated(w, started=True)

    async def test_an_agent_that_leaves_in_the_middle_ends_its_request(self):
        async with world(Hang("middle")) as w:
            async with w.agent() as agent, agent.stream("POST", PATH, json=body(stream=True)) as a:
                assert await anext(a.aiter_raw())
                assert w.ledger.settled == []
            await w.ledger.changed.wait()
            await _ended(w.server)
            _assert_estimated(w, started=True)

    @pytest.mark.parametrize("stream", [True, False])
    async def test_an_answer_of_which_no_byte_came_settles_with_nothing_seen(  # B6
        self, *, stream: bool
    ):
        """The run's other requests say what it may have cost, not the most that it could cost."""
        async with world(Hang("start")) as w:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(w.ask, stream=stream))
                await anyio.to_thread.run_sync(eventually, lambda: w.server.log)
                tasks.cancel_scope.cancel()
            await w.ledger.changed.wait()
            await _ended(w.server)
            _assert_estimated(w, started=False)

    async def test_leaving_the_meter_settles_what_is_open_even_when_cancelled(self):
        ledger = Recording()
        async with (
            ModelServer.serving(Book(default=Script((Hang("middle"),)))) as server,
            httpx.AsyncClient() as agent,
        ):
            with anyio.CancelScope() as scope:
                async with Meter.serving(
                    ANTHROPIC, server.url, {"ANTHROPIC_API_KEY": KEY}, ledger
                ) as meter:
                    w = World(meter, ledger)
                    headers = {"x-api-key": w.admission.token}
                    url = f"{meter.url}{PATH}"
                    asked = agent.build_request(
                        "POST", url, json=body(stream=True), headers=headers
                    )
                    answer = await agent.send(asked, stream=True)
                    assert await anext(answer.aiter_raw())
                    scope.cancel()
                    await anyio.sleep_forever()
            _assert_estimated(w, started=True)
            await answer.aclose()


IN_TWO_HOURS = (SystemClock().now() + timedelta(hours=2)).isoformat()
BUSY = Status(429, "rate_limit_error", {"retry-after": "60"})


class TestRefusals:  # G13 B6
    async def refused(self, *faults: Fault, asks: int) -> Refusal | None:
        """What is known at the end of an agent that met these faults, then an answer."""
        async with world(Flaky(faults, SAID)) as w:
            for _ in range(asks):
                await w.ask(stream=True)
            return w.meter.dismiss(w.admission.token)

    @pytest.mark.parametrize("code", [429, 503, 529])
    async def test_when_to_come_back_is_remembered(self, code: int):
        told = await self.refused(Status(code, headers={"retry-after": "60"}), asks=1)
        assert told is not None
        assert told.until is not None
        assert timedelta(seconds=30) < told.until - SystemClock().now() <= timedelta(seconds=60)

    async def test_the_last_word_counts(self):
        told = await self.refused(BUSY, Limit(7200), Status(500), asks=3)
        assert told is not None
        assert told.is_limit
        assert told.until is not None
        assert told.until - SystemClock().now() > timedelta(hours=1)

    async def test_what_is_granted_is_refused_no_more(self):
        assert await self.refused(BUSY, asks=2) is None

    async def test_what_one_model_is_granted_says_nothing_of_another(self):
        async with world(BUSY) as w:
            await w.ask(model="claude-opus-4-5")
            await w.ask(tools=[], model="claude-haiku-4-5")
            await w.ask("/v1/messages/count_tokens")
            assert w.meter.dismiss(w.admission.token) is not None

    async def test_each_agent_has_its_own_and_others_have_none(self):
        async with world(Flaky((BUSY,), SAID)) as w:
            other = w.meter.admit("1.2", "coach")
            await w.ask()
            await w.post(other)
            assert w.meter.dismiss(other.token) is None
            assert w.meter.dismiss("nobody") is None
            assert w.meter.dismiss(w.admission.token) is not None


class TestSecrecy:
    @pytest.mark.parametrize(
        ("credentials", "sent", "beta"),
        [
            ({"ANTHROPIC_API_KEY": KEY}, f"x-api-key: {KEY}", BETA),
            ({"ANTHROPIC_AUTH_TOKEN": KEY}, f"authorization: Bearer {KEY}", BETA),
            (
                {"CLAUDE_CODE_OAUTH_TOKEN": KEY, "ANTHROPIC_API_KEY": ""},
                f"authorization: Bearer {KEY}",
                f"{BETA},oauth-2025-04-20",
            ),
        ],
    )
    async def test_the_key_takes_the_tokens_place(
        self, credentials: dict[str, str], sent: str, beta: str
    ):
        async with echo(credentials) as (w, got):
            answer = await w.ask()
        assert "set-cookie" not in answer.headers
        head = got[0].decode().split("\r\n\r\n")[0].lower().split("\r\n")
        assert head[0] == "post /base/v1/messages?beta=true http/1.1"
        assert sent.lower() in head
        assert f"anthropic-beta: {beta}" in head
        assert "accept-encoding: identity" in head
        assert w.admission.token.lower() not in got[0].decode().lower()

    async def test_the_key_is_seen_nowhere_else(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ):
        caplog.set_level(logging.DEBUG)
        monkeypatch.setattr(logging.getLogger("uvicorn"), "handlers", [caplog.handler])
        said = ""
        for step in (SAID, Status(401), Drop(), SseError()):
            async with world(step) as w:
                for answer in (await w.ask(stream=True), await w.ask("/elsewhere")):
                    said += f"{answer.headers}{answer.text}"
                said += f"{w.meter!r}{w.admission!r}{w.ledger.settled}"
        assert KEY not in said + caplog.text
        assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


@pytest.mark.e2e
@pytest.mark.skipif(find_program() is None, reason="the Claude CLI is not installed")
class TestClaude:
    async def test_claude_works_through_it_and_the_sums_agree(self, tmp_path: Path):
        write = Call("Write", {"file_path": str(tmp_path / "w" / "a.txt"), "content": "hello"})
        async with world(Answer((write,), usage=TOKENS), Answer((Say("done"),), TOKENS)) as w:
            report = await _claude(w, tmp_path)
            billed, settled = w.server.billed(), [usage for _, usage in w.ledger.settled]
        assert report.failure is None
        assert (tmp_path / "w" / "a.txt").read_text() == "hello"
        assert billed.requests == 2
        assert billed.output_tokens == sum(usage.output_tokens for usage in settled)
        assert billed.input_tokens == sum(usage.input_tokens for usage in settled)
        assert report.usage.cost_usd == pytest.approx(sum(usage.cost_usd for usage in settled))

    @pytest.mark.parametrize(
        ("step", "failure"),
        [
            (Status(429, "rate_limit_error", {"retry-after": "7200"}), Failure.USAGE_LIMIT),
            (Status(529, "overloaded_error", {"retry-after": "7200"}), Failure.TRANSIENT),
            (Limit(7200), Failure.USAGE_LIMIT),
            # Refused as often as the program asks: it has no word for the limit of a login.
            (
                Status(
                    429,
                    "rate_limit_error",
                    {
                        "anthropic-ratelimit-unified-status": "rejected",
                        "anthropic-ratelimit-unified-5h-status": "rejected",
                        "anthropic-ratelimit-unified-5h-reset": IN_TWO_HOURS,
                    },
                ),
                Failure.USAGE_LIMIT,
            ),
        ],
        ids=["429", "529", "limit", "limit of a login"],
    )
    async def test_until_when_to_wait_is_the_providers_word(  # G13 B6
        self, tmp_path: Path, step: Step, failure: Failure
    ):
        async with world(step) as w:
            make = partial(_agent, tmp_path, retries=1)
            agent = MeteredAgent(w.meter, VENDOR, lambda given, _: make(given))
            report = await agent.work(brief(VENDOR.model), tmp_path / "w", lambda _: None)
        assert report.failure is failure
        assert report.retry_at is not None
        assert report.retry_at - SystemClock().now() > timedelta(hours=1)

    async def test_claude_beyond_the_budget_says_so(self, tmp_path: Path):
        async with world() as w:
            w.ledger.refuses = True
            report = await _claude(w, tmp_path)
        assert report.failure is Failure.BUDGET
        assert w.server.log == []

    async def test_whose_budget_it_was_is_said(self, tmp_path: Path):
        async with world() as w:
            w.ledger.refuses = True
            agent = MeteredAgent(w.meter, VENDOR, lambda given, _: _agent(tmp_path, given))
            report = await agent.work(brief(VENDOR.model), tmp_path / "w", lambda _: None)
        assert (report.failure, report.message) == (
            Failure.BUDGET,
            "the run's own budget is used up",
        )


def _agent(tmp_path: Path, credentials: Mapping[str, str], **more: int) -> ClaudeAgent:
    for name in ("home", "w"):
        (tmp_path / name).mkdir()
    host = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    sandbox = Plain("none", home=tmp_path / "home", environment=host, marker=tmp_path.name)
    return ClaudeAgent(AgentSettings(), sandbox, credentials, **more)


async def _claude(w: World, tmp_path: Path) -> Report:
    admission = w.admission
    credentials = {"ANTHROPIC_API_KEY": admission.token, "ANTHROPIC_BASE_URL": admission.url}
    agent = _agent(tmp_path, credentials)
    return await agent.work(brief(VENDOR.model), tmp_path / "w", lambda _: None)


async def _raw(w: World, first: str, header: str, content: bytes, later: bytes = b"") -> bytes:
    """The answer to what no client would send."""
    lines = [f"{first} HTTP/1.1", "host: x", f"x-api-key: {w.admission.token}"]
    if "chunked" not in header:
        lines.append(f"content-length: {len(content)}")
    head = "\r\n".join([*lines, *([header] if header else []), "", ""])
    answer = b""
    async with await anyio.connect_tcp(HOST, int(w.meter.url.rpartition(":")[2])) as stream:
        await stream.send(head.encode() + content)
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            answer = await stream.receive()
            if later:
                await stream.send(later)
                answer += await stream.receive()
    return answer


def _tokens(usage: Usage) -> Tokens:
    return Tokens(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_creation_input_tokens=usage.cache_write_tokens,
        cache_read_input_tokens=usage.cache_read_tokens,
    )


def _assert_estimated(w: World, *, started: bool) -> None:
    usage = w.ledger.only
    assert not usage.known
    assert w.ledger.broken_off == ["r1"], "the ledger raises it to what requests cost"
    assert usage.cost_usd <= w.ledger.reserved[0][3]
    assert usage.input_tokens == (100 if started else 0)
    if not started:
        assert usage == Usage(known=False), "nothing was seen"


async def _ended(server: ModelServer) -> None:
    await anyio.to_thread.run_sync(eventually, lambda: not server._connections)


LONG = Answer((Say("word " * 40),), usage=Tokens(input_tokens=7, output_tokens=30_000))


class TestTooLittleIsLeft:
    """`max_tokens` is lowered to what is left, never too far, or the request is refused."""  # B6

    async def test_a_request_that_fits_is_sent_as_it_is(self):
        async with world(SAID) as w:
            w.ledger.left = Amount(usd=1.0, tokens=200_000)
            assert (await w.ask(max_tokens=32_000)).status_code == 200
            assert w.server.log[0].max_tokens == 32_000
            assert w.ledger.cut == []

    @pytest.mark.parametrize("stream", [True, False], ids=["streamed", "in one piece"])
    async def test_an_answer_that_is_cut_to_what_is_left_is_the_agents_last(self, stream):
        async with world(LONG) as w:
            w.ledger.left = Amount(usd=0.2, tokens=10**9)
            await w.ask(max_tokens=32_000, stream=stream)
            sent = w.server.log[0].max_tokens or 0
            assert 4096 < sent < 32_000
            asked = body(max_tokens=sent, stream=stream)
            more = body(max_tokens=sent + 20, stream=stream)
            assert bound(MODEL, asked) <= 0.2 < bound(MODEL, more), "as much as fits"
            assert w.ledger.only.cost_usd <= 0.2
            [cut] = w.ledger.cut
            assert cut.most.usd == pytest.approx(bound(MODEL, body(max_tokens=32_000)), rel=0.01)
            w.ledger.left = Amount(usd=100.0, tokens=10**9)
            assert (await w.ask()).status_code == 402, "half an answer is nothing to go on from"
            refusal = w.meter.dismiss(w.admission.token)
            assert refusal is not None
            assert refusal.is_cut
            done = Report(summary="done", usage=Usage(cost_usd=1.0))
            report = informed(done, refusal)
            assert (report.failure, report.answer) == (Failure.BUDGET, None)
            assert "cut short" in report.message

    async def test_an_answer_that_is_shorter_than_its_bound_is_an_answer(self):
        async with world(SAID, SAID) as w:
            w.ledger.left = Amount(usd=0.2, tokens=10**9)
            assert (await w.ask(max_tokens=32_000)).status_code == 200
            assert w.ledger.cut == []
            assert (await w.ask(max_tokens=32_000)).status_code == 200

    async def test_an_answer_as_long_as_the_agent_itself_allows_is_no_matter_of_money(self):
        async with world(LONG) as w:
            assert (await w.ask(max_tokens=500)).status_code == 200
            assert w.ledger.cut == []
            assert w.meter.dismiss(w.admission.token) is None

    @pytest.mark.parametrize(
        ("more", "least"),
        [
            ({}, 4096),
            ({"thinking": {"type": "enabled", "budget_tokens": 9000}}, 9001),
            ({"max_tokens": 300}, 300),
        ],
        ids=["an answer", "thoughts and an answer", "already short"],
    )
    async def test_it_is_never_lowered_too_far(self, more: dict[str, Any], least: int):
        asked = {"max_tokens": 32_000, **more}
        async with world(SAID, SAID) as w:
            enough = bound(MODEL, body(**{**asked, "max_tokens": least})) + 2e-6
            w.ledger.left = Amount(usd=enough - 4e-5, tokens=10**9)
            assert (await w.ask(**asked)).status_code == 402
            assert w.server.log == []
            w.ledger.left = Amount(usd=enough, tokens=10**9)
            assert (await w.ask(**asked)).status_code == 200
            assert least <= (w.server.log[0].max_tokens or 0) <= least + 2

    async def test_tokens_bound_it_as_well(self):
        async with world(SAID) as w:
            w.ledger.left = Amount(usd=100.0, tokens=6000)
            assert (await w.ask(max_tokens=32_000)).status_code == 200
            assert 4096 < (w.server.log[0].max_tokens or 0) < 6000


async def test_what_a_long_answer_has_come_to_is_recorded_while_it_streams(
    monkeypatch: pytest.MonkeyPatch,
):  # B6
    monkeypatch.setattr(proxy, "STREAMED_EVERY", 0.0)
    async with world(SAID) as w:
        assert (await w.ask(stream=True)).status_code == 200
        costs = [usage.cost_usd for _, usage in w.ledger.streamed]
        assert costs
        assert costs == sorted(costs)
        assert {id_ for id_, _ in w.ledger.streamed} == {"r1"}
        assert not any(usage.known for _, usage in w.ledger.streamed)
        assert w.ledger.broken_off == []


async def test_an_answer_that_breaks_off_is_said_to():  # B6
    async with world(DropMid()) as w:
        with suppress(httpx.RemoteProtocolError):
            await w.ask(stream=True)
        await w.ledger.changed.wait()
        assert w.ledger.broken_off == ["r1"]
        assert w.ledger.only.known is False
