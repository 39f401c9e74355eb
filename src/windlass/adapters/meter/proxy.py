"""The meter: agents reach the provider through it, with a token instead of the key.

Rule 1: money is reserved before a request goes out, and settled once, before the last byte of its
answer is passed on, however it ends. If too little is left, the request is limited to what there
is, or refused. Rule 2: the key goes to the upstream and nowhere else. Rule 3: it forwards only what
its wire protocol understands and can price. Rule 4: it has no deadlines; the agent does, and its
disconnect ends its request. Rule 5: the memory that an agent can make it use is bounded.
"""

import contextlib
import secrets
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import assert_never

import anyio
import httpx2
from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from windlass.adapters.clock import SystemClock
from windlass.adapters.meter.holds import Holds
from windlass.adapters.meter.rate_limits import Complaint, Refusal
from windlass.adapters.meter.upstream import Unreached, Upstream
from windlass.adapters.meter.web import Web, connection_of
from windlass.adapters.meter.wire import Call, Problem, UnpricedError, Wire
from windlass.core.events.model import Usage
from windlass.core.state.budget import No
from windlass.ports import Ask, Held, Ledger

MOST_BYTES = 64 * 2**20
"""Of all open requests of one agent; the provider takes half of that in one."""

STREAMED_EVERY = 10.0
"""Seconds between two records of the cost of an answer that is still streaming."""


class Admission(Struct, frozen=True, kw_only=True):
    """What one agent needs to reach the provider."""

    url: str
    token: str
    holds: Holds
    """Says while the meter holds a request of the agent, and why one got no answer."""


class _Agent(Struct, kw_only=True, eq=False):
    """An admitted agent."""

    task: str
    role: str
    holds: Holds
    under_way: dict["_Body", int] = {}
    """Bytes of each request that is not answered yet."""
    refusals: dict[str, Refusal] = {}
    """By model, the newest last: refusals since the last granted request."""
    cut: Refusal | None = None
    """Once an answer was cut short for lack of money, every further request is refused."""

    def note(self, model: str, refusal: Refusal | None, *, granted: bool) -> None:
        """Record how a request was answered."""
        self.holds.unreached = ""
        before = self.refusals.get(model)
        if granted or refusal is not None or (before is not None and before.unreached):
            # Each model has its own limits: a grant for one says nothing about another.
            self.refusals.pop(model, None)
            self.refusals.pop(_NO_MODEL, None)
        if refusal is not None:
            self.refusals[model] = refusal

    def refuse(self, model: str, why: str = "") -> None:
        """Record that a request was refused; without a reason, for lack of money."""
        self._last(model, Refusal(is_ours=not why, why=why))

    def complain(self, model: str, complaint: Complaint, status: int) -> None:
        """Record that the provider found something wrong that a person must put right."""
        self._last(model, Refusal(complaint=complaint, status=status))

    def miss(self, model: str, unreached: Unreached) -> None:
        """Record that the provider gave no answer."""
        self.holds.unreached = unreached.why
        lasting = unreached.is_lasting
        self._last(model, Refusal(why=unreached.why, unreached=True, is_lasting=lasting))

    def _last(self, model: str, refusal: Refusal) -> None:
        self.refusals.pop(model, None)
        self.refusals[model] = refusal

    @property
    def refusal(self) -> Refusal | None:
        """The last answer, if it was a refusal."""
        return self.cut or next(reversed(self.refusals.values()), None)


_NO_MODEL = ""
"""For requests that could not be parsed."""


class Meter:
    """Admits agents, and serves them at an address."""

    def __init__(
        self,
        wire: Wire,
        upstream: str,
        credentials: Mapping[str, str],
        ledger: Ledger,
        environment: Mapping[str, str],
    ) -> None:
        self._wire = wire
        self._upstream = Upstream(upstream, environment)
        self._secrets = wire.secret_headers(credentials)
        self._till = _Till(ledger)
        self._agents: dict[str, _Agent] = {}
        self._client = self._upstream.client()
        self._web = Web(self._serve)
        self.url = self._web.url

    @classmethod
    @contextlib.asynccontextmanager
    async def serving(
        cls,
        wire: Wire,
        upstream: str,
        credentials: Mapping[str, str],
        ledger: Ledger,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncGenerator["Meter"]:
        """Serve until the end of the block; by then every request has ended and is settled.

        The environment is the user's: its proxies and certificates lead to the upstream.
        """
        meter = cls(wire, upstream, credentials, ledger, environment)
        # The socket listens already, so early connections just wait.
        async with meter._client, anyio.create_task_group() as tasks:
            tasks.start_soon(meter._web.serve_until_left)
            try:
                yield meter
            finally:
                meter._agents.clear()
                meter._web.leave()

    def admit(self, task: str, role: str) -> Admission:
        """Admit one agent, with a new token."""
        token, holds = secrets.token_urlsafe(32), Holds()
        self._agents[token] = _Agent(task=task, role=role, holds=holds)
        return Admission(url=self.url, token=token, holds=holds)

    def dismiss(self, token: str) -> Refusal | None:
        """End the agent's admission; return its last refusal, if any."""
        agent = self._agents.pop(token, None)
        self._web.crowd.dismiss(token)
        return agent and agent.refusal

    def listening(self, handed_in: socket.socket) -> AbstractAsyncContextManager[None]:
        """Also serve on this listening socket, until the end of the block."""
        return self._web.listening(handed_in)

    async def take(self, handed_in: socket.socket) -> None:
        await self._web.take(handed_in)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        # An agent that disconnects before its request is complete gets no answer.
        with contextlib.suppress(ClientDisconnect), _Body() as body:
            response = await self._respond(Request(scope, receive), body)
            await response(scope, receive, send)

    async def _respond(self, request: Request, content: "_Body") -> ASGIApp:
        # The raw path: any other spelling of a path is not served.
        path, query = request.scope["raw_path"], request.scope["query_string"]
        if not self._wire.is_served(request.method, path):
            return self._problem(Problem.NO_SUCH_PATH, "no such path")
        token = self._wire.token(request.headers)
        agent = self._agents.get(token)
        if agent is None:
            return self._problem(Problem.NO_TOKEN, "this token is not known")
        if not self._web.crowd.know(connection_of(request.scope), token):
            return self._problem(Problem.TOO_MANY, "too many requests at once")
        if (text := await content.read(request, agent)) is None:
            return self._problem(Problem.TOO_LARGE, "too many bytes of requests at once")
        try:
            call = self._wire.read(path, query, request.headers.items(), text, self._secrets)
        except UnpricedError as error:
            why = f"the meter refused the request: {error}"
            agent.refuse(_NO_MODEL, why)
            return self._problem(Problem.UNPRICED, why)
        target = f"{path.decode()}{'?' if query else ''}{query.decode()}"
        way = (self._upstream, self._client)
        return _Passage(self._wire, way, self._till, target, call, agent)

    def _problem(self, problem: Problem, message: str) -> Response:
        return _answer(self._wire, problem, message)


def _answer(wire: Wire, problem: Problem, message: str) -> Response:
    status, body = wire.problem(problem, message)
    return Response(body, status, media_type="application/json")


class _Till:
    """The ledger, and the requests that wait for money reserved by others."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._settled = anyio.Event()

    async def reserve(self, ask: Ask, holds: Holds) -> Held | None:
        """Reserve money; None if too little is left and no reservation may free more."""
        while True:
            match reply := self._ledger.reserve(ask):
                case Held() as held:
                    return held
                case No.WAIT:
                    with holds.hold():
                        await self._settled.wait()
                case No.REFUSED:
                    return None
                case _:
                    assert_never(reply)

    def stream(self, held: Held, usage: Usage) -> None:
        self._ledger.stream(held.id, usage)

    def settle(self, held: Held, usage: Usage, *, broke_off: bool) -> None:
        """Replace the reservation by the real cost."""
        try:
            self._ledger.settle(held.id, usage, broke_off=broke_off)
        finally:
            self._settled.set()
            self._settled = anyio.Event()

    def refuse(self, ask: Ask) -> None:
        """Record that an answer was cut short for lack of money."""
        self._ledger.refuse(ask)


class _Body:
    """A request's body; counts towards its agent's open bytes until the end of the block."""

    def __init__(self) -> None:
        self._agents: list[_Agent] = []

    def __enter__(self) -> "_Body":
        return self

    def __exit__(self, *_: object) -> None:
        for agent in self._agents:
            agent.under_way.pop(self, None)

    async def read(self, request: Request, agent: _Agent) -> bytes | None:
        """The body; None if the agent has too much open."""
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
    """One request to the upstream, and its answer."""

    def __init__(
        self,
        wire: Wire,
        way: tuple[Upstream, httpx2.AsyncClient],
        till: _Till,
        target: str,
        call: Call,
        agent: _Agent,
    ) -> None:
        self._wire, self._till = wire, till
        self._upstream, self._client = way
        self._url, self._call, self._agent = self._upstream.url + target, call, agent
        self._reading = call.reading
        self._ask = Ask(
            task=agent.task, role=agent.role, model=call.model, most=call.most, least=call.least
        )
        self._held: Held | None = None
        """The reservation until it is settled; None if there is nothing to settle."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request, unless the agent disconnects first."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_gone, receive, tasks.cancel_scope)
                await self._pass_on(scope, receive, send)
                tasks.cancel_scope.cancel()
        finally:
            self._settle()

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = self._call
        if not call.is_free:
            if self._agent.cut is None:
                self._held = await self._till.reserve(self._ask, self._agent.holds)
            if self._held is None:
                self._agent.refuse(call.model)
                refusal = self._problem(Problem.NO_MONEY, "the run's budget is used up")
                await refusal(scope, receive, send)
                return
            call = call.within(self._held.granted)
            self._reading = call.reading
        request = self._client.build_request(
            "POST", self._url, headers=call.headers, content=call.content
        )
        opened = await self._sent(request)
        if isinstance(opened, Unreached):
            await self._missed(opened)(scope, receive, send)
            return
        async with contextlib.aclosing(opened) as answer:
            if not call.is_free:
                # Counting tokens has its own limit, which says nothing about others.
                self._note(answer)
            if not answer.is_success:
                self._settle(Usage())
            try:
                await self._pass_back(answer, scope, receive, send)
            except httpx2.RequestError:
                self._settle()
                # HTTP cannot report a broken answer; hanging up does, and the disconnect ends this.
                connection_of(scope).hang_up()
                await anyio.sleep_forever()

    async def _pass_back(
        self, answer: httpx2.Response, scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = self._wire.answered_headers(answer.status_code, answer.headers)
        if not headers.get("content-type", "").strip().lower().startswith("text/event-stream"):
            body = await answer.aread()
            if answer.is_success and not self._call.is_free:
                self._reading.read_document(body)
            self._settle()
            complaint = self._wire.complaint(answer.status_code, body)
            if complaint is not None and not self._call.is_free:
                self._agent.complain(self._call.model, complaint, answer.status_code)
            whole = Response(body, answer.status_code, headers)
            nonsense = self._nonsense()
            failed = self._problem(Problem.NONSENSE, nonsense) if nonsense else whole
            await failed(scope, receive, send)
            return
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": raw})
        recorded = anyio.current_time()
        async for chunk in answer.aiter_bytes():
            self._reading.read_stream(chunk)
            if self._reading.whole or self._reading.nonsense:
                self._settle()
            if nonsense := self._nonsense():
                body = self._wire.broken_stream(nonsense)
                await send({"type": "http.response.body", "body": body, "more_body": False})
                return
            if self._held is not None and anyio.current_time() - recorded >= STREAMED_EVERY:
                recorded = anyio.current_time()
                self._till.stream(self._held, self._reading.usage())
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        self._settle()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _note(self, answer: httpx2.Response) -> None:
        clock = SystemClock()
        status, headers = answer.status_code, answer.headers
        refusal = self._wire.refusal(status, headers, clock.now(), clock.counted)
        self._agent.note(self._call.model, refusal, granted=answer.is_success)

    async def _sent(self, request: httpx2.Request) -> httpx2.Response | Unreached:
        """The provider's answer, not read yet; or why there is none."""
        try:
            answer = await self._client.send(request, stream=True)
        except httpx2.RequestError as error:
            return self._upstream.explain(error)
        if (unreached := self._upstream.refused_by_proxy(answer.status_code)) is not None:
            await answer.aclose()
            return unreached
        return answer

    def _missed(self, unreached: Unreached) -> Response:
        """The answer to a request that the provider did not answer."""
        self._settle(Usage() if unreached.never_sent else None)
        self._agent.miss(self._call.model, unreached)
        problem = Problem.BARRED if unreached.is_lasting else Problem.UNREACHABLE
        return self._problem(problem, unreached.why)

    def _nonsense(self) -> str:
        """What is wrong with the provider's numbers, if anything; recorded for its agent."""
        if not self._reading.nonsense:
            return ""
        why = f"the provider made a mistake: {self._reading.nonsense}"
        reason = f"{why}; the request counts as the most it could cost"
        self._agent.refuse(self._call.model, reason)
        return why

    def _problem(self, problem: Problem, message: str) -> Response:
        return _answer(self._wire, problem, message)

    async def _until_gone(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    def _settle(self, usage: Usage | None = None) -> None:
        """Settle once: at this usage, or at what was read of the answer."""
        if self._held is None:
            return
        held, self._held = self._held, None
        broke_off = usage is None and not (self._reading.whole or self._reading.nonsense)
        self._till.settle(held, usage or self._reading.usage(), broke_off=broke_off)
        if self._reading.is_cut and held.granted != self._ask.most:
            self._agent.cut = Refusal(is_ours=True, is_cut=True)
            self._till.refuse(self._ask)
