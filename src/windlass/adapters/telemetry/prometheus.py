"""The page that Prometheus reads: everything counted since this process began.

Law 1: it answers GET /metrics and nothing else, on loopback unless configured otherwise. Law 2: it
refuses requests for a host name that it was not given: otherwise any web page could read it by a
name that resolves to this address. Law 3: it runs in daemon threads; the run never waits for them.
"""

import bisect
import ipaddress
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from windlass.errors import BadInput
from windlass.ports import Instrument, Measured, Span

_SECONDS = 5.0
"""Timeout for a caller's request."""
_CALLERS = 16
"""Callers at once; more are turned away."""

_Key = tuple[tuple[str, str], ...]


class Page:
    """Counts measures, and serves the totals."""

    def __init__(self, instruments: Iterable[Instrument], host: str, port: int) -> None:
        """Bind the address; raises if another process has it."""
        self._totals = _Totals(instruments)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self._totals)
        self._server = _serving(host, port, registry)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        shown = f"[{host}]" if ":" in str(host) else host
        return f"http://{shown}:{port}/metrics"

    def serve(self, *hosts: str) -> None:
        """Start to answer, also to requests for these host names."""
        self._server.hosts = frozenset(host.lower() for host in hosts)
        self._thread.start()

    def tell(self, spans: Iterable[Span], measured: Iterable[Measured]) -> None:
        del spans
        self._totals.add(measured)

    def close(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _Totals(Collector):
    """The totals, by instrument and attributes."""

    def __init__(self, instruments: Iterable[Instrument]) -> None:
        self._instruments = tuple(instruments)
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, _Key], list[float]] = {}
        """The value of a counter or gauge; a histogram's buckets, the last open, and the sum."""

    def add(self, measured: Iterable[Measured]) -> None:
        with self._lock:
            for each in measured:
                what = each.instrument
                key = tuple((_plain(k), str(v)) for k, v in sorted(each.attributes.items()))
                empty = [0.0] * (len(what.buckets) + 2 if what.kind == "histogram" else 1)
                counts = self._counts.setdefault((what.name, key), empty)
                if what.kind == "histogram":
                    counts[bisect.bisect_left(what.buckets, each.value)] += each.times
                before = 0.0 if what.kind == "gauge" else counts[-1]
                counts[-1] = before + each.value

    def collect(
        self,
    ) -> Iterator[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]:
        with self._lock:
            counts = {key: list(values) for key, values in self._counts.items()}
        for what in self._instruments:
            own = {key: values for (name, key), values in counts.items() if name == what.name}
            labels = [name for name, _ in next(iter(own), ())]
            if what.kind == "histogram":
                yield _histogram(what, labels, own)
                continue
            name, kind = _plain(what.name), GaugeMetricFamily
            if what.kind == "counter":
                # The library adds the ending again.
                name, kind = name.removesuffix("_total"), CounterMetricFamily
            family = kind(name, what.help, labels=labels)
            for key, (total,) in own.items():
                family.add_metric([value for _, value in key], total)
            yield family


def _histogram(
    what: Instrument, labels: list[str], own: dict[_Key, list[float]]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(_plain(what.name), what.help, labels=labels)
    for key, (*buckets, total) in own.items():
        bounds = [*(f"{bound:g}" for bound in what.buckets), "+Inf"]
        sums = [sum(buckets[: i + 1]) for i in range(len(buckets))]
        steps = list(zip(bounds, sums, strict=True))
        family.add_metric([value for _, value in key], buckets=steps, sum_value=total)
    return family


def _plain(name: str) -> str:
    return name.replace(".", "_")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], registry: CollectorRegistry) -> None:
        self.registry = registry
        self.hosts: frozenset[str] = frozenset()
        self._slots = threading.BoundedSemaphore(_CALLERS)
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # The parent's would ask the name service for our name, and may wait for it.
        TCPServer.server_bind(self)
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), int(port)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a caller that hung up."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def _serving(host: str, port: int, registry: CollectorRegistry) -> _Server:
    kind = _Server6 if ":" in host else _Server
    try:
        return kind((host, port), registry)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadInput(
            f"metrics cannot be served at {host}:{port}: {why}",
            hint="name another: --metrics-port N",
        ) from None


class _Handler(BaseHTTPRequestHandler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]
    timeout = _SECONDS
    server_version, sys_version = "windlass", ""

    def do_GET(self) -> None:
        if not self._knows(self.headers.get("Host", "")):
            cure = "name it in [telemetry] hosts, or use a number"
            self._answer(HTTPStatus.FORBIDDEN, f"this name is not known here; {cure}\n")
        elif self.path.partition("?")[0] != "/metrics":
            self._answer(HTTPStatus.NOT_FOUND, "metrics are at /metrics\n")
        else:
            encode, kind = choose_encoder(self.headers.get("Accept", ""))
            self._answer(HTTPStatus.OK, encode(self.server.registry), kind)

    def _refuse(self) -> None:
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, "only GET\n")

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse  # noqa: N815

    def _knows(self, host: str) -> bool:
        """Whether it is an address, which no name service can redirect, or a known name."""
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        with suppress(ValueError):
            ipaddress.ip_address(name.strip("[]"))
            return True
        return name.lower() == "localhost" or name.lower() in self.server.hosts

    def _answer(
        self, status: HTTPStatus, body: str | bytes, kind: str = "text/plain; charset=utf-8"
    ) -> None:
        content = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Content-Type-Options", "nosniff")
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print nothing: the terminal is the run's."""
