"""Connections to the meter: where they come from, whose they are, and how many there may be.

Rule 1: it listens on 127.0.0.1 and on sockets it is given, and nowhere else. Rule 2: each
connection is an open file of the run's process, so their number is bounded, for each agent and for
connections without a token yet: of these the oldest is closed, so that a new one can always show
its token. Rule 3: it handles no signals and has no deadlines; the agent does. Rule 4: what an agent
sends is never written to the terminal, which is the user's.
"""

import asyncio
import contextlib
import logging
import socket
from asyncio import Transport
from collections.abc import AsyncGenerator, Generator
from typing import Any, cast

import anyio
import h11
import uvicorn
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HOST = "127.0.0.1"
MOST_STRANGERS = 64
"""Connections of one listener that have shown no token."""
MOST_OF_ONE = 64
"""Connections of one agent."""


_MOMENT = 0.002
"""Seconds between two checks whether the last request has ended."""


class Connection(H11Protocol):
    """One connection; the application finds it in the scope of its requests."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.crowd = cast("Crowd", self.app_state["crowd"])
        self.door: object = self.app_state.get("door")
        self.app_state = {"connection": self}

    def connection_made(self, transport: Transport) -> None:
        super().connection_made(transport)
        self.crowd.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.crowd.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except h11.ProtocolError:
            # Garbage within a request that is answered: there can be no second answer.
            self.transport.close()

    @property
    def is_idle(self) -> bool:
        """Whether it has no open request."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    def hang_up(self) -> None:
        """Abort the connection; HTTP has no message for that."""
        self.crowd.leave(self)
        self.transport.abort()


class Crowd:
    """The connections: strangers by their listener, agents by their token."""

    def __init__(self) -> None:
        self._strangers: dict[object, dict[Connection, None]] = {}
        self._agents: dict[str, dict[Connection, None]] = {}

    def enter(self, connection: Connection) -> None:
        """Add a stranger; the oldest may have to go."""
        strangers = self._strangers.setdefault(connection.door, {})
        strangers[connection] = None
        if len(strangers) > MOST_STRANGERS:
            next(iter(strangers)).hang_up()

    def leave(self, connection: Connection) -> None:
        for members in (*self._strangers.values(), *self._agents.values()):
            members.pop(connection, None)
        self._strangers = {door: members for door, members in self._strangers.items() if members}
        self._agents = {token: members for token, members in self._agents.items() if members}

    def know(self, connection: Connection, token: str) -> bool:
        """Record whose it is; False if that agent has too many busy connections already."""
        self.leave(connection)
        own = self._agents.setdefault(token, {})
        own[connection] = None
        if len(own) <= MOST_OF_ONE:
            return True
        idle = next((each for each in own if each.is_idle and each is not connection), None)
        if idle is not None:
            idle.hang_up()
        return idle is not None

    def dismiss(self, token: str) -> None:
        """Make an agent's connections strangers again."""
        for connection in list(self._agents.pop(token, {})):
            self.enter(connection)

    def hang_up(self, door: object = None) -> None:
        """Abort every connection of a listener; without one, all."""
        for members in (*self._strangers.values(), *self._agents.values()):
            for connection in list(members):
                if door is None or connection.door is door:
                    connection.hang_up()


def connection_of(scope: Scope) -> Connection:
    """The connection of a request."""
    return cast("Connection", scope["state"]["connection"])


class Web(uvicorn.Server):
    """Serves an application."""

    def __init__(self, app: ASGIApp) -> None:
        # Without a handler Python prints warnings, and these quote what an agent sends.
        logs = logging.getLogger("uvicorn")
        logs.handlers, logs.propagate = [logging.NullHandler()], False
        how: dict[str, Any] = {"interface": "asgi3", "ws": "none", "lifespan": "off"}
        how["http"] = Connection
        # The client's address is the connection's; no header changes it.
        quiet: dict[str, Any] = {"proxy_headers": False, "log_config": None, "access_log": False}
        quiet["date_header"] = False
        # An agent whose tools take long reuses its connection.
        super().__init__(uvicorn.Config(app, timeout_keep_alive=600, **how, **quiet))
        self.crowd = Crowd()
        self._leaving = anyio.Event()
        self._socket = socket.create_server((HOST, 0))
        self.url = f"http://{HOST}:{self._socket.getsockname()[1]}"

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Install none: the process has its own shutdown."""
        yield

    async def serve_until_left(self) -> None:
        """Serve its own socket until `should_exit`."""
        # Shielded: a cancelled server would leave its requests unsettled.
        with anyio.CancelScope(shield=True), self._socket:
            await self.serve([self._socket])

    def leave(self) -> None:
        """Abort every connection and stop serving."""
        self._leaving.set()
        self.crowd.hang_up()

    async def main_loop(self) -> None:
        """Wait for an event: uvicorn would poll ten times a second, and notice the end late."""
        await self.on_tick(0)
        await self._leaving.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002
        """Return as soon as every request has ended; uvicorn would sleep first."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110
            await anyio.sleep(_MOMENT)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen; every connection gets its crowd."""
        self.lifespan.state["crowd"] = self.crowd
        await super().startup(sockets)

    @contextlib.asynccontextmanager
    async def listening(self, handed_in: socket.socket) -> AsyncGenerator[None]:
        """Serve a listening socket that was handed in, until the end of the block."""
        door = object()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: self._connection(door), sock=handed_in)
        try:
            yield
        finally:
            server.close()
            self.crowd.hang_up(door)

    async def take(self, handed_in: socket.socket) -> None:
        """Serve a connection that was accepted elsewhere; it is closed after its last answer."""
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: self._connection(object()), handed_in)

    def _connection(self, door: object) -> Connection:
        if not self.config.loaded:
            self.config.load()
        state = {"crowd": self.crowd, "door": door}
        return Connection(config=self.config, server_state=self.server_state, app_state=state)
