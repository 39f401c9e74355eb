"""Which hosts a box may reach: the entries of `[sandbox] hosts`, and the rule that reads them.

Rule 1: a name alone (`example.org`, `*.example.org`) allows its public addresses and no others. A
name cannot lead to this machine, its network or a cloud's metadata service, however it resolves.
Rule 2: `host:port` allows exactly that, wherever it is. A local database is named this way.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

Reach: TypeAlias = Literal["listed", "public"]
"""listed: what the entries allow · public: any public address, and what the entries allow."""

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

LOOPBACK_NAMES = frozenset({"localhost", "ip6-localhost", "ip6-loopback"})
PORTS = 65_535

_LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_NAME = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class HostEntry(Struct, frozen=True):
    """One entry of the list."""

    host: str
    """A name in lower case, `*.name` for all below it, or an address."""
    port: int | None = None

    def __str__(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return shown if self.port is None else f"{shown}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether it names this machine."""
        address = read_address(self.host)
        return self.host in LOOPBACK_NAMES or (address is not None and address.is_loopback)


class BadHost(ValueError):
    """An entry that names no host."""


def parse(text: str) -> HostEntry:
    """Parse `name`, `*.name`, `name:port`, an address, `address:port` or `[address]:port`."""
    host, port = _split(text.strip().lower())
    address = read_address(host)
    if address is not None:
        host = str(address)
    elif len(host) > 253 or not _NAME.fullmatch(host):  # noqa: PLR2004 (as long as a name may be)
        message = (
            f"{text!r} is not a host name; write `example.org`, `*.example.org` or `host:port`"
        )
        raise BadHost(message)
    if port is not None and not 1 <= port <= PORTS:
        message = f"{text!r} has a port outside 1 to {PORTS}"
        raise BadHost(message)
    return HostEntry(host, port)


def _split(text: str) -> tuple[str, int | None]:
    """Split host and port; an IPv6 address with a port is in brackets."""
    if bracketed := re.fullmatch(r"\[([^\]]*)\](?::(\d{1,6}))?", text):
        return bracketed[1], int(bracketed[2]) if bracketed[2] else None
    if text.count(":") == 1 and (found := re.fullmatch(r"(.*):(\d{1,6})", text)):
        return found[1], int(found[2])
    return text, None


def read_address(host: str) -> Address | None:
    """Parse an address in its usual form; None for anything else, such as `127.1` or a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def why_refused(
    host: str, port: int, addresses: Sequence[str], entries: Iterable[HostEntry], reach: Reach
) -> str | None:
    """Why a box may not reach the host at these addresses; None if it may."""
    host = host.lower().rstrip(".")
    listed = [entry for entry in entries if _covers(entry, host)]
    if any(entry.port == port for entry in listed):
        return None
    if reach != "public" and not any(entry.port is None for entry in listed):
        return "it is not in [sandbox] hosts"
    if private := next((text for text in addresses if not is_public(text)), None):
        return f"{private} is not a public address"
    return None


def _covers(entry: HostEntry, host: str) -> bool:
    if entry.host.startswith("*."):
        return host.endswith(entry.host[1:])
    return entry.host == host


def is_public(text: str) -> bool:
    """Whether the address is in the public internet, also if it embeds another address."""
    address = read_address(text.partition("%")[0])
    if address is None:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if address.teredo is not None:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved
