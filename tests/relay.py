"""A wire with an ear: passes bytes to a port of this machine and keeps the requests it carried."""

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


class Carried(Struct):
    """One request."""

    target: str
    headers: dict[str, str]
    body: Any

    @property
    def betas(self) -> list[str]:
        """The features it asks for."""
        return self.headers.get("anthropic-beta", "").split(",")


class Relay:
    """The wire, and what it carried."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.carried: list[Carried] = []
        self.url = ""

    async def serve(self, near: anyio.abc.SocketStream) -> None:
        """Carry one connection."""
        ear = _Ear(self.carried)
        async with (
            near,
            await anyio.connect_tcp(HOST, self._port) as far,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(_carry, far, near, None, tasks.cancel_scope)
            await _carry(near, far, ear, tasks.cancel_scope)


async def _carry(
    come: anyio.abc.SocketStream,
    go: anyio.abc.SocketStream,
    ear: "_Ear | None",
    scope: anyio.CancelScope,
) -> None:
    with suppress(*_BROKEN):
        while True:
            heard = await come.receive()
            if ear is not None:
                ear.hear(heard)
            await go.send(heard)
    scope.cancel()


class _Ear:
    """Understands one connection's requests."""

    def __init__(self, carried: list[Carried]) -> None:
        self._carried = carried
        self._read = h11.Connection(h11.SERVER)
        self._request: h11.Request | None = None
        self._body = b""

    def hear(self, heard: bytes) -> None:
        self._read.receive_data(heard)
        while True:
            match self._read.next_event():
                case h11.Request() as request:
                    self._request, self._body = request, b""
                case h11.Data(data=data):
                    self._body += bytes(data)
                case h11.EndOfMessage():
                    self._keep()
                case _:
                    return

    def _keep(self) -> None:
        assert self._request is not None
        headers = {name.decode(): value.decode() for name, value in self._request.headers}
        body = msgspec.json.decode(self._body) if self._body else None
        self._carried.append(Carried(self._request.target.decode(), headers, body))
        # What is really answered goes by on the other side; here it only makes room.
        self._read.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
        self._read.send(h11.EndOfMessage())
        if self._read.our_state is h11.DONE:
            self._read.start_next_cycle()


@asynccontextmanager
async def relaying(url: str) -> AsyncGenerator[Relay]:
    """A wire to the server at this address of this machine."""
    relay = Relay(int(url.rpartition(":")[2]))
    listener = await anyio.create_tcp_listener(local_host=HOST)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  no Django here
    relay.url = f"http://{HOST}:{port}"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, relay.serve)
        yield relay
        tasks.cancel_scope.cancel()
