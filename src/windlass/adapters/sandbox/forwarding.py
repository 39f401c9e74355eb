"""The proxy behind a box's door: HTTP's CONNECT and plain requests, to hosts that are allowed.

Law: the address that is judged is the address that is called. The proxy resolves each name itself,
once, and connects to what it found; a name that resolves to another a moment later changes nothing.
It decides nothing: the rule that it is given does.
"""

import base64
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import (
    proxy_bypass_environment,  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
)

import anyio
import h11
from anyio.abc import ByteStream, SocketStream
from msgspec import Struct

from windlass.hosts import PORTS, read_address

LONGEST_HEAD = 64 * 1024
PATIENCE = 60.0
"""Seconds to say what is asked for, and seconds to reach it."""
SCHEMES = {"http": 80, "https": 443}

_OWN = frozenset(
    (b"connection", b"keep-alive", b"proxy-authorization", b"proxy-connection", b"te", b"upgrade")
)
"""Headers that concern the connection to this proxy alone."""


class Rule(Protocol):
    """Says whether a host may be called."""

    def refuse(self, host: str, port: int, addresses: Sequence[str] | None) -> str | None:
        """Say why not; None where it may. Without addresses, judge the name alone."""
        ...


class Refusal(Exception):
    """The request is answered here, with this status and these words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Target(Struct, frozen=True):
    """Whom a request is for."""

    host: str
    port: int
    tunnel: bool

    def __str__(self) -> str:
        """Write it as in a request's first line."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{shown}:{self.port}"


class ForwardingProxy:
    """Passes requests on, as the rule allows, through the user's own proxy where there is one."""

    def __init__(self, rule: Rule, environment: Mapping[str, str]) -> None:
        """Take the user's environment: its proxy settings hold behind this proxy too."""
        self._rule = rule
        self._proxies = {
            kind: value
            for kind in ("http", "https", "all", "no")
            for name in (f"{kind}_proxy", f"{kind}_proxy".upper())
            if (value := environment.get(name, "").strip())
        }

    async def serve(self, client: SocketStream) -> None:
        """Serve one connection to its end; what goes wrong with it is its own affair."""
        async with client:
            # A client that hangs up, or speaks no HTTP, gets no answer.
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

    async def _connect(self, target: Target) -> tuple[ByteStream, SplitResult | None]:
        # Before it is looked up: a name that is not allowed could carry anything to its server.
        self._judge(target, None)
        addresses, proxy = await _resolve(target), self._proxy_for(target)
        if not addresses and proxy is None:
            raise Refusal(502, f"the name {target.host} was not found")
        self._judge(target, addresses)
        try:
            if proxy is not None:
                return await _through(proxy, target), proxy
            return await _first_of(addresses, target.port), None
        except (OSError, anyio.EndOfStream, anyio.BrokenResourceError) as error:
            raise Refusal(502, f"{target} does not answer: {error}") from error

    def _judge(self, target: Target, addresses: Sequence[str] | None) -> None:
        if (why := self._rule.refuse(target.host, target.port, addresses)) is not None:
            raise Refusal(403, f"{target} cannot be reached from here: {why}")

    def _proxy_for(self, target: Target) -> SplitResult | None:
        if proxy_bypass_environment(target.host, self._proxies):
            return None
        scheme = "https" if target.tunnel else "http"
        found = self._proxies.get(scheme) or self._proxies.get("all")
        if not found:
            return None
        proxy = urlsplit(found if "://" in found else f"http://{found}")
        return proxy if proxy.scheme in SCHEMES and proxy.hostname else None


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
        raise anyio.ClosedResourceError  # it asked for nothing
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
    """Connect to the first of them that answers."""
    failure: OSError | None = None
    for address in addresses:
        try:
            return await anyio.connect_tcp(address, port)
        except OSError as error:
            failure = failure or error
    raise failure or OSError("no address")


async def _through(proxy: SplitResult, target: Target) -> ByteStream:
    """Reach the target, or for a plain request its way, through the user's own proxy."""
    host, port = proxy.hostname or "", proxy.port or SCHEMES[proxy.scheme]
    stream: ByteStream
    if proxy.scheme == "https":
        stream = await anyio.connect_tcp(host, port, tls=True, tls_standard_compatible=False)
    else:
        stream = await anyio.connect_tcp(host, port)
    if not target.tunnel:
        return stream
    try:
        await stream.send(_head(f"CONNECT {target} HTTP/1.1", [_host(target), *_login(proxy)]))
        answer = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD)
        answer.send(h11.Request(method="CONNECT", target=str(target), headers=[_host(target)]))
        while (event := answer.next_event()) is h11.NEED_DATA:
            answer.receive_data(await stream.receive())
        status = event.status_code if isinstance(event, h11.Response) else 0
    except h11.RemoteProtocolError as error:
        await stream.aclose()
        raise OSError("your proxy gave no answer") from error
    if not 200 <= status < 300:  # noqa: PLR2004 (success)
        await stream.aclose()
        raise OSError(f"your proxy answered {status}")
    return stream


def _rewritten(request: h11.Request, proxy: SplitResult | None) -> bytes:
    """The request's head as its host, or the user's proxy, expects it: one for a connection."""
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


def _login(proxy: SplitResult) -> list[tuple[bytes, bytes]]:
    if proxy.username is None:
        return []
    said = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return [(b"proxy-authorization", b"Basic " + base64.b64encode(said.encode()))]


def _answer(status: int, words: str) -> bytes:
    body = f"windlass: {words}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    return _head(f"HTTP/1.1 {status} Refused by Windlass", headers) + body


async def relay(client: SocketStream, host: str, port: int) -> None:
    """Join a connection to a service of this machine, such as a database that was named."""
    async with client:
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with await anyio.connect_tcp(host, port) as service:
                await _both_ways(client, service)


async def _both_ways(one: ByteStream, other: ByteStream) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_pour, one, other, tasks.cancel_scope)
        tasks.start_soon(_pour, other, one, tasks.cancel_scope)


async def _pour(source: ByteStream, sink: ByteStream, both: anyio.CancelScope) -> None:
    """Pass on what comes, and then that no more comes; a broken end breaks both directions."""
    try:
        async for chunk in source:
            await sink.send(chunk)
        # A TLS connection to a proxy has no way to say this; its other end will hang up.
        with suppress(NotImplementedError):
            await sink.send_eof()
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        both.cancel()
