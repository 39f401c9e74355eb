"""The network of a box: a door with listeners, the proxy behind it, and the rule for hosts.

Law 1: a box reaches what its door leads to, and nothing else. Agents reach their model, the hosts
of `[sandbox] hosts`, and those that setup of merged code reached. Setup of merged code reaches any
public host. Every other box with network reaches the listed hosts. Refused hosts are reported.
Law 2: the address that is judged is the address that is called. The proxy resolves each name once
and connects to what it found; a name that resolves to another address later changes nothing.
Law 3: the box's program starts only after its listeners exist. Bubblewrap builds the box and waits;
`enter.py` makes the listeners in the box's network; then bubblewrap continues. No part of the door
is in the box: no file, no named socket, no process.
"""

import base64
import os
import re
import select
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol, Self
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import h11
from anyio import aclose_forcefully
from anyio.abc import ByteStream, SocketListener, SocketStream
from anyio.streams.tls import TLSStream
from msgspec import Struct

from windlass.adapters.sandbox.box import Asked, Box, Serve
from windlass.adapters.sandbox.enter import OPEN
from windlass.adapters.user_network import SCHEMES, Proxy, UserNetwork, place
from windlass.core.hosts import PORTS, BadHost, HostEntry, parse, read_address, why_refused
from windlass.errors import ConfigError

LONGEST_HEAD = 64 * 1024
PATIENCE = 60.0
"""Seconds for a request's head, and seconds to connect."""

_OWN = frozenset(
    (b"connection", b"keep-alive", b"proxy-authorization", b"proxy-connection", b"te", b"upgrade")
)
"""Headers for the connection to this proxy only."""


class Rule(Protocol):
    """Decides whether a host may be called."""

    def refuse(self, host: str, port: int, addresses: Sequence[str] | None) -> str | None:
        """Why not, or None if it may. Without addresses, judge the name alone."""
        ...


class Refusal(Exception):
    """The proxy's own answer to a request."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Target(Struct, frozen=True):
    host: str
    port: int
    tunnel: bool

    def __str__(self) -> str:
        """As in a request's first line."""
        return place(self.host, self.port)


class ForwardingProxy:
    """Forwards requests that the rule allows, through the user's own proxy if there is one."""

    def __init__(self, rule: Rule, environment: Mapping[str, str]) -> None:
        """Take the user's environment: its proxy settings apply behind this proxy too."""
        self._rule = rule
        self._network = UserNetwork(environment)

    async def serve(self, client: SocketStream) -> None:
        """Serve one connection to its end; its failures concern no other."""
        async with client:
            # A client that hangs up, or does not speak HTTP, gets no answer.
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                try:
                    await self._pass_on(client)
                except Refusal as refusal:
                    await client.send(_answer(refusal.status, str(refusal)))
                    await client.send_eof()

    async def _pass_on(self, client: SocketStream) -> None:
        head = h11.Connection(h11.SERVER, max_incomplete_event_size=LONGEST_HEAD)
        with anyio.fail_after(PATIENCE):
            request = await _read_request(client, head)
        target = _target(request)
        with anyio.fail_after(PATIENCE):
            upstream, proxy = await self._connect(target)
        async with upstream:
            if target.tunnel:
                await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                await upstream.send(_rewritten(request, proxy))
            if more := head.trailing_data[0]:
                await upstream.send(more)
            await _both_ways(client, upstream)

    async def _connect(self, target: Target) -> tuple[ByteStream, Proxy | None]:
        # Before the lookup: a forbidden name could carry data to its name server.
        self._judge(target, None)
        addresses, proxy = await _resolve(target), self._proxy_for(target)
        if not addresses and proxy is None:
            raise Refusal(502, f"the name {target.host} was not found")
        self._judge(target, addresses)
        try:
            if proxy is not None:
                return await self._through(proxy, target), proxy
            return await _first_of(addresses, target.port), None
        except (OSError, anyio.EndOfStream, anyio.BrokenResourceError) as error:
            raise Refusal(502, f"{target} does not answer: {error}") from error

    def _judge(self, target: Target, addresses: Sequence[str] | None) -> None:
        if (why := self._rule.refuse(target.host, target.port, addresses)) is not None:
            raise Refusal(403, f"{target} cannot be reached from here: {why}")

    def _proxy_for(self, target: Target) -> Proxy | None:
        scheme = "https" if target.tunnel else "http"
        try:
            return self._network.proxy_for(scheme, target.host, target.port)
        except ConfigError as error:
            raise Refusal(502, str(error)) from error

    async def _through(self, proxy: Proxy, target: Target) -> ByteStream:
        """Connect to the user's proxy, and for a tunnel through it to the target."""
        stream: ByteStream = await anyio.connect_tcp(proxy.host, proxy.port)
        try:
            if proxy.url.scheme == "https":
                tls = self._network.tls()
                stream = await TLSStream.wrap(
                    stream, hostname=proxy.host, ssl_context=tls, standard_compatible=False
                )
            if target.tunnel:
                await _open_tunnel(stream, proxy, target)
        except ConfigError as error:
            await aclose_forcefully(stream)
            raise Refusal(502, str(error)) from error
        except BaseException:
            await aclose_forcefully(stream)
            raise
        return stream


async def _read_request(client: SocketStream, head: h11.Connection) -> h11.Request:
    """Read a request's head; the body stays unread."""
    try:
        while (event := head.next_event()) is h11.NEED_DATA:
            try:
                head.receive_data(await client.receive())
            except anyio.EndOfStream:
                head.receive_data(b"")
    except h11.RemoteProtocolError as error:
        raise Refusal(400, "this is no request") from error
    if not isinstance(event, h11.Request):
        raise anyio.ClosedResourceError  # no request came
    return event


def _target(request: h11.Request) -> Target:
    asked = request.target.decode("ascii", "replace")
    tunnel = request.method == b"CONNECT"
    try:
        parts = urlsplit(f"//{asked}" if tunnel else asked)
        port = parts.port or (None if tunnel else SCHEMES["http"])
    except ValueError as error:
        raise Refusal(400, "this names no host") from error
    known = tunnel or parts.scheme == "http"
    if not known or not parts.hostname or not port or not 1 <= port <= PORTS:
        raise Refusal(400, "a proxy is asked for a host, or for http://…")
    return Target(parts.hostname, port, tunnel)


async def _resolve(target: Target) -> list[str]:
    if (address := read_address(target.host)) is not None:
        return [str(address)]
    try:
        found = await anyio.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(address[0] for *_, address in found))


async def _first_of(addresses: Sequence[str], port: int) -> SocketStream:
    """Connect to the first that answers."""
    failure: OSError | None = None
    for address in addresses:
        try:
            return await anyio.connect_tcp(address, port)
        except OSError as error:
            failure = failure or error
    raise failure or OSError("no address")


async def _open_tunnel(stream: ByteStream, proxy: Proxy, target: Target) -> None:
    answer = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD)
    answer.send(h11.Request(method="CONNECT", target=str(target), headers=[_host(target)]))
    await stream.send(_head(f"CONNECT {target} HTTP/1.1", [_host(target), *_login(proxy)]))
    try:
        while (event := answer.next_event()) is h11.NEED_DATA:
            answer.receive_data(await stream.receive())
    except h11.RemoteProtocolError as error:
        raise OSError("your proxy gave no answer") from error
    status = event.status_code if isinstance(event, h11.Response) else 0
    if not 200 <= status < 300:  # noqa: PLR2004 (success)
        raise OSError(f"your proxy answered {status}")


def _rewritten(request: h11.Request, proxy: Proxy | None) -> bytes:
    """The request's head for its host or the user's proxy; one request per connection."""
    parts = urlsplit(request.target.decode("ascii", "replace"))
    path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    target = path if proxy is None else parts.geturl()
    kept = [(name, value) for name, value in request.headers if name.lower() not in _OWN]
    headers = [*kept, (b"connection", b"close"), *(_login(proxy) if proxy else ())]
    return _head(f"{request.method.decode()} {target} HTTP/1.1", headers)


def _head(first: str, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    lines = (first.encode(), *(name + b": " + value for name, value in headers))
    return b"\r\n".join((*lines, b"", b""))


def _host(target: Target) -> tuple[bytes, bytes]:
    return b"host", str(target).encode()


def _login(proxy: Proxy) -> list[tuple[bytes, bytes]]:
    if proxy.login is None:
        return []
    login = base64.b64encode(":".join(proxy.login).encode())
    return [(b"proxy-authorization", b"Basic " + login)]


def _answer(status: int, words: str) -> bytes:
    body = f"windlass: {words}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    return _head(f"HTTP/1.1 {status} Refused by Windlass", headers) + body


async def relay(client: SocketStream, host: str, port: int) -> None:
    """Connect a client to a service of this machine, such as a listed database."""
    async with client:
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with await anyio.connect_tcp(host, port) as service:
                await _both_ways(client, service)


async def _both_ways(one: ByteStream, other: ByteStream) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_pour, one, other, tasks.cancel_scope)
        tasks.start_soon(_pour, other, one, tasks.cancel_scope)


async def _pour(source: ByteStream, sink: ByteStream, both: anyio.CancelScope) -> None:
    """Copy until the end, then close that direction; an error ends both directions."""
    try:
        async for chunk in source:
            await sink.send(chunk)
        # A TLS connection to a proxy has no half-close; its other end will hang up.
        if not isinstance(sink, TLSStream):
            await sink.send_eof()
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        both.cancel()


HELPER = Path(__file__).with_name("enter.py")
DOOR_PATIENCE = 30.0
"""Seconds for the helper: a machine may be busy, and a hang must end."""


class DoorError(OSError):
    """The listeners of a box could not be made."""


class NoBox(DoorError):
    """There is no box: bubblewrap has ended, and says why itself."""


class Door:
    """Listeners for one box, from before it is built until it is gone."""

    def __init__(self, ports: tuple[int, ...]) -> None:
        self._ports = ports
        self._report, self._info = os.pipe()
        self._block, self._begin = os.pipe()
        self._channel, theirs = socket.socketpair()
        self._channel.settimeout(DOOR_PATIENCE)
        self._listeners: list[socket.socket] = []
        # Started before the box, so that both start at the same time.
        with theirs:
            self._helper = subprocess.Popen(
                [sys.executable, "-I", "-S", HELPER, str(theirs.fileno()), *map(str, ports)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )

    @property
    def arguments(self) -> tuple[str, ...]:
        """Bubblewrap's arguments for the door."""
        return ("--info-fd", str(self._info), "--block-fd", str(self._block))

    @property
    def inherited(self) -> tuple[int, ...]:
        return (self._info, self._block)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close everything, and end the helper."""
        self.hand_over()
        for number in (self._report, self._begin):
            os.close(number)
        self._channel.close()
        for listener in self._listeners:
            listener.close()
        self._helper.kill()
        self._helper.wait()

    def hand_over(self) -> None:
        """Close the ends that the box now has, so that its end is noticed."""
        for number in (self._info, self._block):
            if number >= 0:
                os.close(number)
        self._info = self._block = -1

    async def listen(self) -> dict[int, socket.socket]:
        """The listeners by port, once the box exists."""
        return await anyio.to_thread.run_sync(self._listen)

    def let_begin(self) -> None:
        """Let the box's program start."""
        with suppress(BrokenPipeError):  # the box is gone
            os.write(self._begin, b"+")

    def _listen(self) -> dict[int, socket.socket]:
        self._channel.send(self._first_process())
        word, numbers, _, _ = socket.recv_fds(self._channel, 512, len(self._ports))
        self._listeners = [socket.socket(fileno=number) for number in numbers]
        if word != OPEN or len(self._listeners) != len(self._ports):
            raise DoorError(word.decode(errors="replace") or "the helper ended")
        return dict(zip(self._ports, self._listeners, strict=True))

    def _first_process(self) -> bytes:
        """Read the pid of the first process, which bubblewrap writes piece by piece."""
        info = b""
        while (found := re.search(rb'"child-pid": ?(\d+)\D', info)) is None:
            if not select.select([self._report], [], [], DOOR_PATIENCE)[0]:
                raise DoorError("bubblewrap says nothing")
            if not (more := os.read(self._report, 4096)):
                raise NoBox("the box was not built")
            info += more
        return found[1]


METER_PORT, PROXY_PORT = 61_001, 61_002
"""In the box. Above the range that a kernel gives to connections, so that they are free."""

METER_URL = f"http://127.0.0.1:{METER_PORT}"
_PROXY_URL = f"http://127.0.0.1:{PROXY_PORT}"
_DIRECT = "localhost,127.0.0.1,::1"

MOST_TOLD = 100
"""Hosts of one box that are reported."""


class WaysOut:
    """What every door of a run leads to."""

    def __init__(self, hosts: Sequence[str] = (), environment: Mapping[str, str] = {}) -> None:
        """Take `[sandbox] hosts`, and the user's environment for its proxy settings."""
        self._listed = tuple(map(parse, hosts))
        self._environment = environment
        self._reached: set[str] = set()
        self.meter: Serve | None = None
        self.tell: Callable[[Asked], None] = lambda _asked: None

    def allow(self, hosts: Sequence[str]) -> None:
        self._reached.update(hosts)

    def environment(self, box: Box) -> dict[str, str]:
        """The variables that lead programs in the box to the proxy."""
        if not box.network:
            return {}
        names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
        return {
            **dict.fromkeys(names, _PROXY_URL),
            **dict.fromkeys(("no_proxy", "NO_PROXY"), _DIRECT),
            "NODE_USE_ENV_PROXY": "1",
        }

    def door(self, box: Box) -> Door | None:
        """The door of a box with a network."""
        return Door(tuple(self._ports(box))) if box.network else None

    @asynccontextmanager
    async def opened(self, door: Door, box: Box) -> AsyncGenerator[None]:
        """Let the box begin, and serve it while the block lasts."""
        door.hand_over()
        try:
            listeners = await door.listen()
        except NoBox:  # the caller learns why
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
        """The ports of this machine that the box may call as its own."""
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
        """Why not, if so; the answer is recorded."""
        reach = "public" if self._public else "listed"
        why = why_refused(host, port, addresses or (), self._entries, reach)
        if why is None and addresses is None:
            return None
        name = host.lower().rstrip(".")
        recorded = self.reached if why is None else self.refused
        shown = name if why is None or port in _USUAL else str(HostEntry(name, port))
        # Invalid names, and more than a person reads, are refused but not recorded.
        with suppress(BadHost):
            if len(recorded) < MOST_TOLD:
                recorded.add(str(parse(shown)))
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
