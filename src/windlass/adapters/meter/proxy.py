"""The meter: agents reach the provider through it, with a token of its own instead of the key.

Rule 1: money is reserved before a request goes out, and settled, once, before the last byte of its
answer is passed on, whatever way it ends. Rule 2: the key goes to the upstream and nowhere else.
Rule 3: it forwards two paths and nothing else: messages, which are metered, and the count of their
tokens, which is free. A request is written anew from what has a price (`requests.py`,
`headers.py`); what has none is refused, and its agent is told why. Rule 4: it has no deadlines;
those are the agent's, whose leaving ends its request. Rule 5: what an agent can have it hold is
bounded, for its memory is the run's.
"""

import contextlib
import secrets
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import anyio
import httpx2
import msgspec
from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from windlass.adapters.clock import SystemClock
from windlass.adapters.meter.comeback import REFUSED, Refusal, read_refusal
from windlass.adapters.meter.headers import answered_headers, asked_headers, secret_headers
from windlass.adapters.meter.requests import Asked, UnpricedError, read_request, write_request
from windlass.adapters.meter.tally import Tally
from windlass.adapters.meter.web import Web, connection_of
from windlass.events.model import Usage

MESSAGES, COUNT = b"/v1/messages", b"/v1/messages/count_tokens"
_PATHS = frozenset({MESSAGES, COUNT})
_QUERIES = frozenset({b"", b"beta=true"})
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""What fails before a provider can have seen a request: whatever fails later may be paid for."""

MOST_BYTES = 64 * 2**20
"""Of all requests that one agent has under way; the provider takes half of that in one."""


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
            self.refusals.pop(_NO_MODEL, None)
        if status in REFUSED:
            clock = SystemClock()
            self.refusals[model] = read_refusal(status, headers, clock.now(), clock.counted)

    def refuse(self, model: str, why: str = "") -> None:
        """Take in that a request of it was not granted; without a reason, for want of money."""
        self.refusals.pop(model, None)
        self.refusals[model] = Refusal(is_ours=not why, why=why)

    @property
    def refusal(self) -> Refusal | None:
        """The last word that it was given, where that was a refusal."""
        return next(reversed(self.refusals.values()), None)


_NO_MODEL = ""
"""Under which a request is refused that could not be understood."""


class Meter:
    """Who is admitted, and the address they are served at."""

    def __init__(self, upstream: str, credentials: Mapping[str, str], ledger: Ledger) -> None:
        self._upstream = upstream.rstrip("/")
        self._secrets = secret_headers(credentials)
        self._till = _Till(ledger)
        self._agents: dict[str, _Agent] = {}
        self._client = httpx2.AsyncClient(timeout=httpx2.Timeout(None, connect=30))
        self._web = Web(self._serve)
        self.url = self._web.url

    @classmethod
    @contextlib.asynccontextmanager
    async def serving(
        cls, upstream: str, credentials: Mapping[str, str], ledger: Ledger
    ) -> AsyncGenerator["Meter"]:
        """Serve until the block is left; then every request has ended and is settled."""
        meter = cls(upstream, credentials, ledger)
        # The socket listens already, so whoever connects before the server runs just waits.
        async with meter._client, anyio.create_task_group() as tasks:
            tasks.start_soon(meter._web.run_until_told)
            try:
                yield meter
            finally:
                meter._agents.clear()
                meter._web.should_exit = True
                meter._web.crowd.hang_up()

    def admit(self, task: str, role: str) -> Admission:
        """Let one agent in, under a token nobody else has."""
        token = secrets.token_urlsafe(32)
        self._agents[token] = _Agent(task=task, role=role)
        return Admission(url=self.url, token=token)

    def dismiss(self, token: str) -> Refusal | None:
        """Let its agent ask nothing more; what it was last refused, if it was."""
        agent = self._agents.pop(token, None)
        self._web.crowd.dismiss(token)
        return agent and agent.refusal

    def listening(self, handed_in: socket.socket) -> AbstractAsyncContextManager[None]:
        """Serve on a listening socket that was handed in, too, until the block is left."""
        return self._web.listening(handed_in)

    async def take(self, handed_in: socket.socket) -> None:
        """Serve a connection that was accepted elsewhere."""
        await self._web.take(handed_in)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        # An agent that leaves before it has asked is owed nothing.
        with contextlib.suppress(ClientDisconnect), _Body() as body:
            response = await self._respond(Request(scope, receive), body)
            await response(scope, receive, send)

    async def _respond(self, request: Request, told: "_Body") -> ASGIApp:
        # As it was sent: a path that is written in another way leads nowhere.
        path, query = request.scope["raw_path"], request.scope["query_string"]
        if request.method != "POST" or path not in _PATHS:
            return _problem(404, "not_found_error", "no such path")
        token = _token(request.headers)
        agent = self._agents.get(token)
        if agent is None:
            return _problem(401, "authentication_error", "this token admits nobody")
        if not self._web.crowd.know(connection_of(request.scope), token):
            return _problem(503, "overloaded_error", "an agent may not ask so often at once")
        if (text := await told.read(request, agent)) is None:
            return _problem(413, "request_too_large", "an agent may not ask so much at once")
        try:
            asked, headers = self._understand(request, text)
        except UnpricedError as error:
            why = f"the meter refused the request: {error}"
            agent.refuse(_NO_MODEL, why)
            return _problem(400, "invalid_request_error", why)
        url = f"{self._upstream}{path.decode()}{'?' if query else ''}{query.decode()}"
        content = write_request(asked)
        forward = self._client.build_request("POST", url, headers=headers, content=content)
        counts = path == COUNT
        return _Passage(self._client, self._till, forward, asked, agent, counts=counts)

    def _understand(self, request: Request, text: bytes) -> tuple[Asked, dict[str, str]]:
        if request.scope["query_string"] not in _QUERIES:
            raise UnpricedError("only `?beta=true` may follow the path; take the rest out")
        headers = asked_headers(request.headers.items(), self._secrets)
        return read_request(text, writes=request.scope["raw_path"] == MESSAGES), headers


class _Till:
    """The ledger, and how many requests hold money in it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._held: set[str] = set()
        self._settled = anyio.Event()

    async def reserve(self, agent: _Agent, model: str, usd: float) -> str | None:
        """Set money aside; None where the budget is used up, and not only held by others.

        What others hold is the most that they can cost, and nearly all of it comes back.
        """
        while True:
            held = self._ledger.reserve(agent.task, agent.role, model, usd)
            if held is not None:
                self._held.add(held)
                return held
            if not self._held:
                return None
            await self._settled.wait()

    def settle(self, held: str, usage: Usage) -> None:
        """Put what it did cost in the place of what was set aside."""
        self._held.discard(held)
        try:
            self._ledger.settle(held, usage)
        finally:
            self._settled.set()
            self._settled = anyio.Event()


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


class _Passage:
    """One request on its way to the upstream, and its answer on the way back."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        till: _Till,
        request: httpx2.Request,
        asked: Asked,
        agent: _Agent,
        *,
        counts: bool,
    ) -> None:
        self._client, self._till, self._request = client, till, request
        self._agent, self._model, self._counts = agent, asked.model, counts
        self._tally = Tally(asked.model, asked)
        self._held: str | None = None
        """The reservation until it is settled; None where there is nothing to settle."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, unless the agent leaves first."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_gone, receive, tasks.cancel_scope)
                await self._pass_on(scope, receive, send)
                tasks.cancel_scope.cancel()
        finally:
            self._settle(self._tally.usage())

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._counts:
            self._held = await self._till.reserve(self._agent, self._model, self._tally.bound)
            if self._held is None:
                self._agent.refuse(self._model)
                refusal = _problem(402, "billing_error", "the run's budget is used up")
                await refusal(scope, receive, send)
                return
        try:
            opened = await self._client.send(self._request, stream=True)
        except httpx2.RequestError as error:
            never_sent = isinstance(error, _NEVER_SENT)
            self._settle(Usage() if never_sent else self._tally.usage())
            why = "cannot be reached" if never_sent else "broke off before it answered"
            refusal = _problem(503, "overloaded_error", f"the provider {why}")
            await refusal(scope, receive, send)
            return
        async with contextlib.aclosing(opened) as answer:
            if not self._counts:
                # How many tokens may be counted is a limit of its own, and says nothing of others.
                self._agent.note(self._model, answer.status_code, answer.headers)
            if not answer.is_success:
                self._settle(Usage())
            try:
                await self._pass_back(answer, scope, receive, send)
            except httpx2.RequestError:
                self._settle(self._tally.usage())
                # HTTP has no word for an answer that breaks off; the agent's leaving ends it here.
                connection_of(scope).hang_up()
                await anyio.sleep_forever()

    async def _pass_back(
        self, answer: httpx2.Response, scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = answered_headers(answer.headers)
        if not headers.get("content-type", "").strip().lower().startswith("text/event-stream"):
            body = await answer.aread()
            if answer.is_success and not self._counts:
                self._tally.read_document(body)
            self._settle(self._tally.usage())
            whole = Response(body, answer.status_code, headers)
            await (self._nonsense(502) if self._tally.nonsense else whole)(scope, receive, send)
            return
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": raw})
        async for chunk in answer.aiter_bytes():
            self._tally.read_stream(chunk)
            if self._tally.whole or self._tally.nonsense:
                self._settle(self._tally.usage())
            if self._tally.nonsense:
                said = b"event: error\ndata: %s\n\n" % bytes(self._nonsense(200).body)
                await send({"type": "http.response.body", "body": said, "more_body": False})
                return
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        self._settle(self._tally.usage())
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _nonsense(self, status: int) -> Response:
        why = f"the provider made a mistake: {self._tally.nonsense}"
        self._agent.refuse(self._model, f"{why}; the request counts as the most it could cost")
        return _problem(status, "api_error", why)

    async def _until_gone(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    def _settle(self, usage: Usage) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._till.settle(held, usage)


def _token(headers: Mapping[str, str]) -> str:
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")


def _problem(status: int, kind: str, message: str) -> Response:
    body = {"type": "error", "error": {"type": kind, "message": message}}
    return Response(msgspec.json.encode(body), status, media_type="application/json")
