"""How the user's machine reaches the network: the proxies and certificates that variables name.

Law 1: they come from the environment that the user started Windlass with, given as a value. The
process itself has forgotten it, so no library may look there.
Law 2: as other programs do it. The lower-case name of a variable counts before the upper-case one,
`HTTPS_PROXY` before `ALL_PROXY`, and `NO_PROXY` before both. `SSL_CERT_FILE` and `SSL_CERT_DIR`
replace the system's certificates; the other variables add to what is trusted.
Law 3: a setting that cannot be used is refused. Nothing goes past a proxy that the user named.
"""

import ipaddress
import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from windlass.errors import ConfigError

SCHEMES: Final[Mapping[str, int]] = {"http": 80, "https": 443}
"""The usual port of each scheme that Windlass and its proxies speak."""

REPLACING: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
ADDING: Final = ("CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
"""Variables that name certificates to trust: instead of the system's, and next to them."""


class Proxy(Struct, frozen=True):
    """A proxy that the user named."""

    url: SplitResult
    variable: str

    @property
    def host(self) -> str:
        return self.url.hostname or ""

    @property
    def port(self) -> int:
        return self.url.port or SCHEMES[self.url.scheme]

    @property
    def login(self) -> tuple[str, str] | None:
        """The name and the password to log in with."""
        if self.url.username is None:
            return None
        return unquote(self.url.username), unquote(self.url.password or "")

    @property
    def address(self) -> str:
        """Its URL without the login."""
        return f"{self.url.scheme}://{place(self.host, self.port)}"

    def __str__(self) -> str:
        """For people: without the login."""
        return f"the proxy {place(self.host, self.port)} ({self.variable})"


class UserNetwork:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def proxy_for(self, scheme: str, host: str, port: int) -> Proxy | None:
        """The proxy to that host, None if it is reached directly; raises for an unusable one."""
        _, direct = self._named("no_proxy")
        if any(_covers(entry, host, port) for entry in re.split(r"[\s,]+", direct) if entry):
            return None
        for name in (f"{scheme}_proxy", "all_proxy"):
            variable, value = self._named(name)
            if value:
                return _proxy(variable, value)
        return None

    def tls(self) -> ssl.SSLContext:
        """Trusts what the user trusts; raises for certificates that cannot be read."""
        # Not `create_default_context`: its strict mode refuses the certificates of many companies.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        certificates = list(self._certificates())
        if not any(name in REPLACING for name, _ in certificates):
            # It takes a moment to import, and knows where each system keeps its certificates.
            import httpx2  # noqa: PLC0415

            context = httpx2.create_ssl_context(trust_env=False)
        for name, path in certificates:
            _trust(context, name, path)
        return context

    def refuse_unusable(self, url: str) -> None:
        """Raise for a proxy or certificates that cannot be used on the way to that address."""
        parts = urlsplit(url)
        port = parts.port or SCHEMES[parts.scheme]
        proxy = self.proxy_for(parts.scheme, parts.hostname or "", port)
        if "https" in {parts.scheme, proxy.url.scheme if proxy else ""}:
            for name, path in self._certificates():
                _trust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), name, path)

    def _certificates(self) -> Iterator[tuple[str, Path]]:
        for name in (*REPLACING, *ADDING):
            if value := self._environment.get(name):
                yield name, Path(value)

    def _named(self, name: str) -> tuple[str, str]:
        """The variable that counts, and its value; an empty one switches the setting off."""
        found = name if name in self._environment else name.upper()
        return found, self._environment.get(found, "").strip()


def place(host: str, port: int) -> str:
    """`host:port`, as in a request's first line."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _proxy(variable: str, value: str) -> Proxy:
    try:
        url = urlsplit(value if "://" in value else f"http://{value}")
        if url.scheme in SCHEMES and url.hostname and url.port != 0:
            return Proxy(url, variable)
    except ValueError:
        pass  # the port is not a number, or the IPv6 address is incomplete
    # The value may hold a password, so it is not shown.
    raise ConfigError(
        "it names no proxy that Windlass can use",
        where=variable,
        hint="set it to a URL that begins with http:// or https://, or unset it",
    )


def _covers(entry: str, host: str, port: int) -> bool:
    """Whether an entry of NO_PROXY covers the host: `*`, a network, or a name and all below it."""
    if entry == "*":
        return True
    host = host.lower().strip("[]").rstrip(".")
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass  # one of them is a name
    name, _, its_port = entry.lower().partition(":") if entry.count(":") == 1 else (entry, "", "")
    if its_port and its_port != str(port):
        return False
    name = name.lower().removeprefix("*").strip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _trust(context: ssl.SSLContext, variable: str, path: Path) -> None:
    try:
        if path.is_dir():
            context.load_verify_locations(capath=path)
        else:
            context.load_verify_locations(cafile=path)
    except OSError as error:  # also if the file holds no certificate
        why = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise ConfigError(
            f"{path} cannot be used: {why}",
            where=variable,
            hint="name a file with certificates in PEM form, or unset it",
        ) from error
