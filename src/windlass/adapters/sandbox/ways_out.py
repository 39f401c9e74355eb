"""The ways out of the boxes of a run: the meter, the proxy, and services that were named.

Law: a box reaches what its door leads to, and nothing else. Agents reach their model, the hosts of
`[sandbox] hosts`, and those that setup of merged code reached; setup of merged code reaches any
public host; whatever else has network reaches the listed hosts. What was refused is told.
"""

import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
from anyio.abc import SocketListener

from windlass.adapters.sandbox.door import Door, NoBox
from windlass.adapters.sandbox.forwarding import ForwardingProxy, relay
from windlass.adapters.sandbox.model import Asked, Box, Serve
from windlass.hosts import BadHost, HostEntry, parse, why_refused

METER_PORT, PROXY_PORT = 61_001, 61_002
"""In the box. Beyond those that a kernel gives to connections, so that nothing is in the way."""

METER_URL = f"http://127.0.0.1:{METER_PORT}"
_PROXY_URL = f"http://127.0.0.1:{PROXY_PORT}"
_DIRECT = "localhost,127.0.0.1,::1"

MOST_TOLD = 100
"""Hosts of one box that a person is told of."""


class WaysOut:
    """What every door of a run leads to."""

    def __init__(self, hosts: Sequence[str] = (), environment: Mapping[str, str] = {}) -> None:
        """Take `[sandbox] hosts`, and the user's environment for the proxy settings in it."""
        self._listed = tuple(map(parse, hosts))
        self._environment = environment
        self._reached: set[str] = set()
        self.meter: Serve | None = None
        """Serves the meter on a listener while the block lasts; set while there is one."""
        self.tell: Callable[[Asked], None] = lambda _asked: None
        """Told what a box asked for when it ends, where there is anything to tell."""

    def allow(self, hosts: Sequence[str]) -> None:
        """Let agents reach these too: setup of merged code did."""
        self._reached.update(hosts)

    def environment(self, box: Box) -> dict[str, str]:
        """Give the variables that lead programs in the box to the proxy."""
        if not box.network:
            return {}
        names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
        return {
            **dict.fromkeys(names, _PROXY_URL),
            **dict.fromkeys(("no_proxy", "NO_PROXY"), _DIRECT),
            "NODE_USE_ENV_PROXY": "1",
        }

    def door(self, box: Box) -> Door | None:
        """Make the door of a box that has one."""
        return Door(tuple(self._ports(box))) if box.network else None

    @asynccontextmanager
    async def opened(self, door: Door, box: Box) -> AsyncGenerator[None]:
        """Serve the box while the block lasts, and let it begin."""
        door.hand_over()
        try:
            listeners = await door.listen()
        except NoBox:  # its starter is told why
            yield
            return
        rule = _Rule(self._entries(box), box.reach == "public")
        proxy = ForwardingProxy(rule, self._environment)
        async with anyio.create_task_group() as tasks:
            for port, target in self._forwards(box).items():
                listener = await _listener(listeners.pop(port))
                tasks.start_soon(listener.serve, partial(relay, host=target, port=port))
            listener = await _listener(listeners.pop(PROXY_PORT))
            tasks.start_soon(listener.serve, proxy.serve)
            meter = self.meter if box.model else None
            async with _served(meter, listeners):
                door.let_begin()
                try:
                    yield
                finally:
                    tasks.cancel_scope.cancel()
                    self._tell(box, rule)

    def _tell(self, box: Box, rule: "_Rule") -> None:
        listed = {str(entry) for entry in self._listed}
        reached = tuple(sorted(rule.reached - listed - self._reached))
        if box.reach == "public":
            self.allow(reached)
        else:
            reached = ()
        if reached or rule.refused:
            refused = tuple(sorted(rule.refused))
            asked = Asked(task=box.task, role=box.role, reached=reached, refused=refused)
            self.tell(asked)

    def _ports(self, box: Box) -> list[int]:
        meter = (METER_PORT,) if box.model and self.meter is not None else ()
        return [*self._forwards(box), PROXY_PORT, *meter]

    def _entries(self, box: Box) -> tuple[HostEntry, ...]:
        learnt = tuple(HostEntry(host) for host in sorted(self._reached))
        return (*self._listed, *learnt, *map(parse, box.hosts))

    def _forwards(self, box: Box) -> dict[int, str]:
        """Give the ports of this machine that the box may call as its own."""
        named = (*self._listed, *map(parse, box.hosts))
        return {e.port: e.host for e in named if e.is_loopback and e.port is not None}


class _Rule:
    """The entries for one box, and what was asked of them."""

    def __init__(self, entries: Sequence[HostEntry], public: bool) -> None:  # noqa: FBT001
        self._entries = entries
        self._public = public
        self.reached: set[str] = set()
        self.refused: set[str] = set()

    def refuse(self, host: str, port: int, addresses: Sequence[str] | None) -> str | None:
        """Say why not, and remember it."""
        reach = "public" if self._public else "listed"
        why = why_refused(host, port, addresses or (), self._entries, reach)
        if why is None and addresses is None:
            return None
        name = host.lower().rstrip(".")
        told = self.reached if why is None else self.refused
        shown = name if why is None or port in _USUAL else str(HostEntry(name, port))
        # What is no host name, and more of them than a person reads, is refused all the same.
        with suppress(BadHost):
            if len(told) < MOST_TOLD:
                told.add(str(parse(shown)))
        return why


_USUAL = frozenset({80, 443})


@asynccontextmanager
async def _served(meter: Serve | None, left: dict[int, socket.socket]) -> AsyncGenerator[None]:
    if meter is None or METER_PORT not in left:
        yield
        return
    async with meter(left.pop(METER_PORT)):
        yield


async def _listener(listening: socket.socket) -> SocketListener:
    listening.setblocking(False)
    return await SocketListener.from_socket(listening)
