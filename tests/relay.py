"""A TCP relay to a port of this machine that records the HTTP requests it forwards."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.abc
import h11
import msgspec
from msgspec import Struct

HOST = "127.0.0.1"
_BROKEN = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


class RelayedRequest(Struct):
    """One request."""

    target: str
    headers: dict[str, str]
    body: Any

    @property
    def betas(self) -> list[str]:
        """The beta features that it requests."""
        return self.headers.get("anthropic-beta", "").split(",")


class Relay:
    """The relay, and the requests it forwarded."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.requests: list[RelayedRequest] = []
        self.url = ""

    async def serve(self, client: anyio.abc.SocketStream) -> None:
        """Forward one connection."""
        parser = _Parser(self.requests)
        async with (
            client,
            await anyio.connect_tcp(HOST, self._port) as server,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(_forward, server, client, None, tasks.cancel_scope)
            await _forward(client, server, parser, tasks.cancel_scope)


async def _forward(
    source: anyio.abc.SocketStream,
    target: anyio.abc.SocketStream,
    parser: "_Parser | None",
    scope: anyio.CancelScope,
) -> None:
    with suppress(*_BROKEN):
        while True:
            data = await source.receive()
            if parser is not None:
                parser.feed(data)
            await target.send(data)
    scope.cancel()


class _Parser:
    """Parses the requests of one connection."""

    def __init__(self, requests: list[RelayedRequest]) -> None:
        self._requests = requests
        self._read = h11.Connection(h11.SERVER)
        self._request: h11.Request | None = None
        self._body = b""

    def feed(self, data: bytes) -> None:
        self._read.receive_data(data)
        while True:
            match self._read.next_event():
                case h11.Request() as request:
                    self._request, self._body = request, b""
                case h11.Data(data=part):
                    self._body += bytes(part)
                case h11.EndOfMessage():
                    self._keep()
                case _:
                    return

    def _keep(self) -> None:
        assert self._request is not None
        headers = {name.decode(): value.decode() for name, value in self._request.headers}
        body = msgspec.json.decode(self._body) if self._body else None
        self._requests.append(RelayedRequest(self._request.target.decode(), headers, body))
        # The real answer goes from server to client; this one only advances the parser.
        self._read.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
        self._read.send(h11.EndOfMessage())
        if self._read.our_state is h11.DONE:
            self._read.start_next_cycle()


@asynccontextmanager
async def relaying(url: str) -> AsyncGenerator[Relay]:
    """A relay to the server at this loopback URL, until the block ends."""
    relay = Relay(int(url.rpartition(":")[2]))
    listener = await anyio.create_tcp_listener(local_host=HOST)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  no Django here
    relay.url = f"http://{HOST}:{port}"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, relay.serve)
        yield relay
        tasks.cancel_scope.cancel()
