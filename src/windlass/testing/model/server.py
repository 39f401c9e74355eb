"""The scripted model on a loopback port, inside this process.

Rule 1: it listens only on 127.0.0.1. Rule 2: leaving `serving()` first breaks every connection, so
a hanging client cannot keep it alive. Rule 3: it handles no signals; its owner does.

    POST /v1/messages            answer by the script whose key fits the prompt
    POST /s/NAME/v1/messages     answer by the script of that name
    POST …/count_tokens          answer with a fixed number
    PUT  /_book                  replace the book
    GET  /_log, /_billed         return the requests, and the totals
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import anyio
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from windlass.testing.model import anthropic_wire as wire
from windlass.testing.model.delivery import JSON, Delivery
from windlass.testing.model.ledger import Billed, Ledger, Seen
from windlass.testing.model.script import Answer, Book, Flaky, Say, Step, Tokens

HOST = "127.0.0.1"
SIDE_ANSWER = Answer(
    (Say('{"title": "scripted"}'),), usage=Tokens(input_tokens=10, output_tokens=5)
)
"""The answer to a side call."""


class ModelServer:
    """A book, the ledger of its requests, and the URL where it is served."""

    def __init__(self, book: Book, *, port: int = 0, log: Path | None = None) -> None:
        self.book = book
        self.ledger = Ledger(log)
        self._connections: dict[tuple[str, int], asyncio.Transport] = {}
        self._tries: dict[tuple[str, int], int] = {}
        self._socket = socket.create_server((HOST, port))
        self.url = f"http://{HOST}:{self._socket.getsockname()[1]}"

    @classmethod
    @contextlib.asynccontextmanager
    async def serving(
        cls, book: Book | None = None, *, port: int = 0, log: Path | None = None
    ) -> AsyncGenerator["ModelServer"]:
        """Serve until the block is left."""
        server = cls(book or Book(), port=port, log=log)
        web = server._web()
        # The socket listens already, so a client that connects before the server runs just waits.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(web.serve, [server._socket])
            try:
                yield server
            finally:
                web.should_exit = True
                for connection in list(server._connections.values()):
                    connection.abort()
        # Closed here, because a server that is cancelled while it starts leaves the socket open.
        server._socket.close()

    def address(self, name: str) -> str:
        """The base URL of the script with that name."""
        return f"{self.url}/s/{name}"

    @property
    def log(self) -> list[Seen]:
        """Every request so far, in the order of arrival."""
        return self.ledger.entries

    def billed(self) -> Billed:
        """The totals of all requests."""
        return self.ledger.billed()

    def _web(self) -> "_Web":
        connections = self._connections

        class Protocol(H11Protocol):
            """Stores the transport of each client: HTTP itself cannot break a connection."""

            def connection_made(self, transport: asyncio.Transport) -> None:
                super().connection_made(transport)
                if self.client is not None:
                    connections[self.client] = transport

            def connection_lost(self, exc: Exception | None) -> None:
                if self.client is not None:
                    connections.pop(self.client, None)
                super().connection_lost(exc)

        return _Web(
            uvicorn.Config(
                Starlette(routes=self._routes()),
                http=Protocol,
                lifespan="off",
                log_config=None,
                access_log=False,
                ws="none",
            )
        )

    def _routes(self) -> list[Route]:
        return [
            Route("/v1/messages", self._messages, methods=["POST"]),
            Route("/s/{name}/v1/messages", self._messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", self._count, methods=["POST"]),
            Route("/s/{name}/v1/messages/count_tokens", self._count, methods=["POST"]),
            Route("/_book", self._put_book, methods=["PUT"]),
            Route("/_log", self._get_log, methods=["GET"]),
            Route("/_billed", self._get_billed, methods=["GET"]),
            Route("/{rest:path}", self._unknown, methods=_METHODS),
        ]

    async def _messages(self, request: Request) -> Response:
        seen = self.ledger.open(request.method, request.url.path)
        try:
            parsed = wire.read(await request.body())
        except msgspec.MsgspecError as error:
            return self._respond(seen, 400, wire.error_body("invalid_request_error", str(error)))
        seen.model, seen.side, seen.tools = parsed.model, parsed.side, parsed.tools
        step = SIDE_ANSWER if parsed.side else self._choose(request, parsed, seen)
        seen.max_tokens = parsed.max_tokens
        self.ledger.write(seen)
        client = request.client or ("", 0)
        connection = self._connections[client[0], client[1]]
        return Delivery(
            wire.truncated(step, parsed),
            request=parsed,
            seen=seen,
            ledger=self.ledger,
            connection=connection,
        )

    def _choose(self, request: Request, parsed: wire.ParsedRequest, seen: Seen) -> Step:
        name = request.path_params.get("name")
        book = self.book
        seen.key, script = book.matching(parsed.prompt) if name is None else book.named(name)
        seen.step = parsed.answers
        step = script.step(parsed.answers)
        if not isinstance(step, Flaky):
            return step
        tries = self._tries.get((seen.key, parsed.answers), 0)
        self._tries[seen.key, parsed.answers] = tries + 1
        return step.faults[tries] if tries < len(step.faults) else step.then

    async def _count(self, request: Request) -> Response:
        seen = self.ledger.open(request.method, request.url.path)
        return self._respond(seen, 200, b'{"input_tokens":100}')

    async def _unknown(self, request: Request) -> Response:
        seen = self.ledger.open(request.method, request.url.path)
        return self._respond(seen, 404, wire.error_body("not_found_error", "no such path"))

    def _respond(self, seen: Seen, status: int, body: bytes) -> Response:
        seen.status, seen.completed = status, True
        self.ledger.write(seen)
        return Response(body, status_code=status, media_type=JSON)

    async def _put_book(self, request: Request) -> Response:
        try:
            self.book = msgspec.json.decode(await request.body(), type=Book)
        except msgspec.MsgspecError as error:
            return Response(wire.error_body("bad_book", str(error)), 400, media_type=JSON)
        self._tries.clear()
        return Response(status_code=204)

    async def _get_log(self, _request: Request) -> Response:
        return Response(self.ledger.lines(), media_type="application/jsonl")

    async def _get_billed(self, _request: Request) -> Response:
        return Response(msgspec.json.encode(self.billed()), media_type=JSON)


_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


class _Web(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        # The process may be an orchestrator with its own shutdown.
        yield
