"""The provider's address, the way there, and why it cannot be reached.

Law: the reason comes from the type of an error and of its causes, never from its text; a text is
only quoted. What is said of a proxy names its variable and leaves out its login.
"""

import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import cast
from urllib.parse import urlsplit

import httpx2
from msgspec import Struct

from windlass.adapters.user_network import SCHEMES, UserNetwork, place

PROXY_LOGIN = 407
"""The status by which a proxy asks for a login; no provider sends it."""

CONNECT_SECONDS = 30.0

_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)
"""Failures before a provider can have seen the request; after any later one it may be charged."""

_NO_ISSUER = frozenset({18, 19, 20, 21})
"""OpenSSL's codes for a certificate whose issuer is not trusted."""

_FINAL = frozenset({"401", "403", "407"})
"""The answers of a proxy that a repeat does not change."""


class Unreached(Struct, frozen=True, kw_only=True):
    """Why a request got no answer from the provider."""

    why: str
    """In words, with the host."""
    never_sent: bool = True
    """Whether the provider cannot have seen it, so that it costs nothing."""
    is_lasting: bool = False
    """Whether it stays so until a person changes something."""


class Upstream:
    """Where requests go, through the proxies and with the certificates of the user."""

    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        """Raises for proxies and certificates that cannot be used."""
        self.url = url.rstrip("/")
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or SCHEMES[parts.scheme]
        self.host = host if port == SCHEMES[parts.scheme] else place(host, port)
        network = UserNetwork(environment)
        self._proxy = network.proxy_for(parts.scheme, host, port)
        schemes = {parts.scheme, self._proxy.url.scheme if self._proxy else ""}
        # Reading all certificates takes a moment.
        self._tls = network.tls() if "https" in schemes else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    def client(self) -> httpx2.AsyncClient:
        """A client without deadlines, except to connect."""
        return httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            verify=self._tls,
            proxy=self._through(),
            trust_env=False,
        )

    def probe(self, path: str, headers: Mapping[str, str], seconds: float) -> int | Unreached:
        """Ask for that path once, and return the status of the answer."""
        with httpx2.Client(
            timeout=seconds, verify=self._tls, proxy=self._through(), trust_env=False
        ) as client:
            try:
                with client.stream("GET", self.url + path, headers=dict(headers)) as answer:
                    return self.refused_by_proxy(answer.status_code) or answer.status_code
            except httpx2.RequestError as error:
                return self.explain(error)

    def explain(self, error: httpx2.RequestError) -> Unreached:
        """Why a request failed without an answer."""
        if not isinstance(error, _NEVER_SENT):
            late = isinstance(error, httpx2.TimeoutException)
            why = "timed out" if late else "the connection broke off before it answered"
            return Unreached(why=self._cannot(why), never_sent=False)
        if isinstance(error, httpx2.ProxyError):
            status = str(error).split(" ", 1)[0]
            return Unreached(
                why=self._cannot(f"{self._proxy} refused ({error})"), is_lasting=status in _FINAL
            )
        for cause in _causes(error):
            if isinstance(cause, ssl.SSLCertVerificationError):
                return Unreached(why=self._cannot(_untrusted(cause)), is_lasting=True)
            if isinstance(cause, ssl.SSLError):
                return Unreached(why=self._cannot("it speaks no TLS that works here"))
            if why := _why(cause):
                # Before a tunnel exists, it is the proxy that is not reached.
                by = f"{self._proxy}: " if self._proxy is not None else ""
                return Unreached(why=self._cannot(by + why))
        return Unreached(why=self._cannot(type(error).__name__))

    def refused_by_proxy(self, status: int) -> Unreached | None:
        """Why there is no answer of the provider, if a proxy gave this one."""
        if self._proxy is None or status != PROXY_LOGIN:
            return None
        words = f"{self._proxy} refused ({status} Proxy Authentication Required)"
        return Unreached(why=self._cannot(words), is_lasting=True)

    @property
    def way(self) -> str:
        """The host, and the proxy to it."""
        return self.host if self._proxy is None else f"{self.host}, through {self._proxy},"

    def _cannot(self, why: str) -> str:
        return f"cannot reach {self.host}: {why}"

    def _through(self) -> httpx2.Proxy | None:
        if self._proxy is None:
            return None
        tls = self._tls if self._proxy.url.scheme == "https" else None
        return httpx2.Proxy(self._proxy.address, auth=self._proxy.login, ssl_context=tls)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The causes of an error, the innermost first: an outer one may only repeat it."""
    if isinstance(error, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _causes(each)
    if (cause := error.__cause__ or error.__context__) is not None:
        yield from _causes(cause)
    yield error


def _untrusted(error: ssl.SSLCertVerificationError) -> str:
    cure = "; name the certificate of its authority in SSL_CERT_FILE"
    unknown = error.verify_code in _NO_ISSUER
    return f"certificate not trusted ({error.verify_message}){cure if unknown else ''}"


def _why(error: BaseException) -> str:
    if isinstance(error, socket.gaierror):
        again = error.errno == socket.EAI_AGAIN
        return "name not found (no name server answers)" if again else "name not found"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return "timed out"
    words = error.strerror if isinstance(error, OSError) else None
    return words[0].lower() + words[1:] if words else ""
