"""The meter: agents reach the provider through it, with a token of its own instead of the key.

Rule 1: money is reserved before a request goes out, and settled, once, before the last byte of its
answer is passed on, whatever way it ends. Rule 2: the key goes to the upstream and nowhere else.
Rule 3: it listens on 127.0.0.1 only and forwards two paths and nothing else: messages, which are
metered, and the count of their tokens, which is free. Rule 4: it takes no signals and has no
deadlines; those are the agent's, whose leaving ends its request. Rule 5: what an agent can have it
hold is bounded, for its memory is the run's; values of a request are passed on as they stand, for
a small text may be a great many objects. Rule 6: what an agent sends is never written to a
terminal, which is the user's, and what cannot be passed on is refused.
"""

import asyncio
import contextlib
import logging
import secrets
import socket
from asyncio import Transport
from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any, Protocol, cast

import anyio
import h11
import httpx2
import msgspec
import uvicorn
from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from windlass.adapters.clock import SystemClock
from windlass.adapters.meter.comeback import REFUSED, Refusal, read_refusal
from windlass.adapters.meter.prices import Asked, Tally
from windlass.events.model import Usage

HOST = "127.0.0.1"
MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
OAUTH_BETA = "oauth-2025-04-20"
"""What a login's token must be sent with; an agent that believes it has a key leaves it out."""
_ASKED = ("accept", "anthropic-", "content-type", "user-agent", "x-")
"""How the headers begin that are passed on; none of them belongs to a single connection."""
_ANSWERED = ("anthropic-", "content-type", "request-id", "retry-after", "x-should-retry")
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""What fails before a provider can have seen a request: whatever fails later may be paid for."""

MOST_BYTES = 64 * 2**20
"""Of all requests that one agent has under way; the provider takes half of that in one."""
MOST_CONNECTIONS = 512
"""Of all agents; what is beyond is hung up on, for each is an open file of the run's process."""


class Ledger(Protocol):
    """Where money is written down; both are quick and may be called at any moment."""

    def reserve(self, task: str, role: str, model: str, usd: float) -> str | None:
        """Set the most a request can cost aside, under a name; None where the budget ends first."""
        ...

    def settle(self, reservation: str, usage: Usage) -> None:
        """Put what it did cost in the place of what was set aside."""
        ...


class Admission(Struct, frozen=True, kw_only=True):
    """What one agent needs to reach the provider."""

    url: str
    token: str


class _Agent(Struct, frozen=True, kw_only=True):
    """One that is admitted."""

    task: str
    role: str
    under_way: dict["_Body", int] = {}
    """Bytes of each request that is not answered yet."""
    refusals: dict[str, Refusal] = {}
    """By model, the last one latest: what was refused and has not been granted since."""

    def note(self, model: str, status: int, headers: Mapping[str, str]) -> None:
        """Take in how a request of it was answered."""
        if httpx2.codes.is_success(status) or status in REFUSED:
            # Each model has limits of its own: one that is granted says nothing of another.
            self.refusals.pop(model, None)
        if status in REFUSED:
            clock = SystemClock()
            self.refusals[model] = read_refusal(status, headers, clock.now(), clock.counted)

    def refuse(self, model: str) -> None:
        """Take in that a request of it was not passed on, for the run may spend no more."""
        self.refusals.pop(model, None)
        self.refusals[model] = Refusal(is_ours=True)

    @property
    def refusal(self) -> Refusal | None:
        """The last word that it was given, where that was a refusal."""
        return next(reversed(self.refusals.values()), None)


class Meter:
    """Who is admitted, and the address they are served at."""

    def __init__(self, upstream: str, credentials: Mapping[str, str], ledger: Ledger) -> None:
        self._upstream = upstream.rstrip("/")
        self._secrets = _secrets(credentials)
        self._ledger = ledger
        self._agents: dict[str, _Agent] = {}
        self._client = httpx2.AsyncClient(timeout=httpx2.Timeout(None, connect=30))
        self._socket = socket.create_server((HOST, 0))
        self.url = f"http://{HOST}:{self._socket.getsockname()[1]}"
        self._web = _Web(self._serve)

    @classmethod
    @contextlib.asynccontextmanager
    async def serving(
        cls, upstream: str, credentials: Mapping[str, str], ledger: Ledger
    ) -> AsyncGenerator["Meter"]:
        """Serve until the block is left; then every request has ended and is settled."""
        meter = cls(upstream, credentials, ledger)
        # The socket listens already, so whoever connects before the server runs just waits.
        async with meter._client, anyio.create_task_group() as tasks:
            tasks.start_soon(meter._web.run_until_told, meter._socket)
            try:
                yield meter
            finally:
                meter._agents.clear()
                meter._web.should_exit = True
                meter._web.hang_up()

    @contextlib.asynccontextmanager
    async def listening(self, listener: socket.socket) -> AsyncGenerator[None]:
        """Serve another listener too, such as one in a box's own network, while the block lasts."""
        async with self._web.listening(listener):
            yield

    def admit(self, task: str, role: str) -> Admission:
        """Let one agent in, under a token nobody else has."""
        token = secrets.token_urlsafe(32)
        self._agents[token] = _Agent(task=task, role=role)
        return Admission(url=self.url, token=token)

    def dismiss(self, token: str) -> Refusal | None:
        """Let its agent ask nothing more; what it was last refused, if it was."""
        agent = self._agents.pop(token, None)
        return agent and agent.refusal

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        # An agent that leaves before it has asked is owed nothing.
        with contextlib.suppress(ClientDisconnect), _Body() as body:
            response = await self._respond(Request(scope, receive), body)
            await response(scope, receive, send)

    async def _respond(self, request: Request, told: "_Body") -> ASGIApp:
        path = request.scope["path"]
        if request.method != "POST" or path not in {MESSAGES, COUNT}:
            return _problem(404, "not_found_error", "no such path")
        agent = self._agents.get(_token(request.headers))
        if agent is None:
            return _problem(401, "authentication_error", "this token admits nobody")
        if (text := await told.read(request, agent)) is None:
            return _problem(413, "request_too_large", "an agent may not ask so much at once")
        try:
            body = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
            # Written anew, for a key that stands there twice could be read in two ways.
            content = msgspec.json.encode(body)
            asked = msgspec.json.decode(content, type=Asked) if path == MESSAGES else None
            forward = self._forward(request, content)
        except (msgspec.MsgspecError, RecursionError, UnicodeError, httpx2.InvalidURL):
            return _problem(400, "invalid_request_error", "this is no request for a message")
        priced = {**body, "max_tokens": asked.max_tokens if asked else 0}
        tally, held = Tally(asked.model if asked else "", priced), None
        if asked is not None:
            held = self._ledger.reserve(agent.task, agent.role, asked.model, tally.bound)
            if held is None:
                agent.refuse(asked.model)
                return _problem(402, "billing_error", "the run's budget is used up")
        model = asked.model if asked else None
        return _Passage(self._client, self._web, self._ledger, forward, tally, held, agent, model)

    def _forward(self, request: Request, content: bytes) -> httpx2.Request:
        query = request.scope["query_string"].decode("latin-1")
        url = f"{self._upstream}{request.scope['path']}{query and f'?{query}'}"
        passed = _only(_ASKED, request.headers)
        passed.pop("x-api-key", None)
        headers = {**passed, **self._secrets, "accept-encoding": "identity"}
        if "anthropic-beta" in passed and "anthropic-beta" in self._secrets:
            headers["anthropic-beta"] = f"{passed['anthropic-beta']},{OAUTH_BETA}"
        return self._client.build_request("POST", url, headers=headers, content=content)


class _Body:
    """What one request says, which counts for its agent until the block is left."""

    def __init__(self) -> None:
        self._agents: list[_Agent] = []

    def __enter__(self) -> "_Body":
        return self

    def __exit__(self, *_: object) -> None:
        for agent in self._agents:
            agent.under_way.pop(self, None)

    async def read(self, request: Request, agent: _Agent) -> bytes | None:
        """All of it; None where the agent has too much under way."""
        self._agents.append(agent)
        pieces: list[bytes] = []
        async for piece in request.stream():
            agent.under_way[self] = agent.under_way.get(self, 0) + len(piece)
            if sum(agent.under_way.values()) > MOST_BYTES:
                agent.under_way.pop(self)
                return None
            pieces.append(piece)
        return b"".join(pieces)


class _Passage(Struct):
    """One request on its way to the upstream, and its answer on the way back."""

    client: httpx2.AsyncClient
    web: "_Web"
    ledger: Ledger
    request: httpx2.Request
    tally: Tally
    held: str | None
    """The reservation until it is settled; None where there is nothing to settle."""
    agent: _Agent
    model: str | None
    """Whom it asks; None where only tokens are counted, which has limits of its own."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, unless the agent leaves first."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_gone, receive, tasks.cancel_scope)
                await self._pass_on(scope, receive, send)
                tasks.cancel_scope.cancel()
        finally:
            self._settle(self.tally.usage())

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            opened = await self.client.send(self.request, stream=True)
        except httpx2.RequestError as error:
            never_sent = isinstance(error, _NEVER_SENT)
            self._settle(Usage() if never_sent else self.tally.usage())
            why = "cannot be reached" if never_sent else "broke off before it answered"
            refusal = _problem(503, "overloaded_error", f"the provider {why}")
            await refusal(scope, receive, send)
            return
        async with contextlib.aclosing(opened) as answer:
            if self.model is not None:
                self.agent.note(self.model, answer.status_code, answer.headers)
            if not answer.is_success:
                self._settle(Usage())
            try:
                await self._pass_back(answer, scope, receive, send)
            except httpx2.RequestError:
                self._settle(self.tally.usage())
                # HTTP has no word for an answer that breaks off; the agent's leaving ends it here.
                self.web.hang_up(scope["client"])
                await anyio.sleep_forever()

    async def _pass_back(
        self, answer: httpx2.Response, scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = _only(_ANSWERED, answer.headers)
        if not headers.get("content-type", "").startswith("text/event-stream"):
            body = await answer.aread()
            self.tally.read_document(body)
            self._settle(self.tally.usage())
            await Response(body, answer.status_code, headers)(scope, receive, send)
            return
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": raw})
        async for chunk in answer.aiter_bytes():
            self.tally.read_stream(chunk)
            if self.tally.whole:
                self._settle(self.tally.usage())
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        self._settle(self.tally.usage())
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _until_gone(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    def _settle(self, usage: Usage) -> None:
        if self.held is not None:
            held, self.held = self.held, None
            self.ledger.settle(held, usage)


class _Connection(H11Protocol):
    def connection_made(self, transport: Transport) -> None:
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except h11.ProtocolError:
            # Garbage in a request that is answered: no second answer can say so.
            self.transport.close()


class _Web(uvicorn.Server):
    def __init__(self, app: ASGIApp) -> None:
        # Where nobody listens, Python prints warnings, and these quote whatever an agent sends.
        logs = logging.getLogger("uvicorn")
        logs.handlers, logs.propagate = [logging.NullHandler()], False
        how: dict[str, Any] = {"interface": "asgi3", "ws": "none", "lifespan": "off"}
        how["http"] = _Connection
        # A client is whoever is connected, whatever its headers say.
        quiet: dict[str, Any] = {"proxy_headers": False, "log_config": None, "access_log": False}
        # An agent whose tools take their time comes back to the connection it has.
        super().__init__(uvicorn.Config(app, timeout_keep_alive=600, **how, **quiet))

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield  # the process is an orchestrator with a shutdown of its own

    async def run_until_told(self, listening: socket.socket) -> None:
        # Shielded: a server that is cancelled would leave its requests behind, unsettled.
        with anyio.CancelScope(shield=True):
            await self.serve([listening])

    @contextlib.asynccontextmanager
    async def listening(self, listener: socket.socket) -> AsyncGenerator[None]:
        listener.setblocking(False)
        made = await asyncio.get_running_loop().create_server(self._connection, sock=listener)
        try:
            yield
        finally:
            made.close()

    def _connection(self) -> _Connection:
        return _Connection(self.config, self.server_state, {})

    def hang_up(self, client: tuple[str, int] | None = None) -> None:
        for connection in cast("list[H11Protocol]", list(self.server_state.connections)):
            if client in {None, connection.client}:
                connection.transport.abort()


def _secrets(credentials: Mapping[str, str]) -> dict[str, str]:
    """The credentials as headers: those the program itself would choose."""
    key, bearer = (credentials.get(f"ANTHROPIC_{name}") for name in ("API_KEY", "AUTH_TOKEN"))
    login = None if key or bearer else credentials.get("CLAUDE_CODE_OAUTH_TOKEN")
    if login:
        return {"authorization": f"Bearer {login}", "anthropic-beta": OAUTH_BETA}
    headers = {"x-api-key": key, "authorization": bearer and f"Bearer {bearer}"}
    return {name: value for name, value in headers.items() if value}


def _token(headers: Mapping[str, str]) -> str:
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")


def _only(prefixes: tuple[str, ...], headers: Mapping[str, str]) -> dict[str, str]:
    return {name: headers[name] for name in headers if name.startswith(prefixes)}


def _problem(status: int, kind: str, message: str) -> Response:
    body = {"type": "error", "error": {"type": kind, "message": message}}
    return Response(msgspec.json.encode(body), status, media_type="application/json")
