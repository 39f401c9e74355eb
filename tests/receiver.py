"""A loopback server that stores the telemetry and notices that tests send to it."""

import gzip
import json
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Got(NamedTuple):
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class Spanned(NamedTuple):
    """A span as it was received."""

    name: str
    trace: str
    id: str
    parent: str
    start: int
    end: int
    attributes: dict[str, Any]
    error: str | None
    resource: dict[str, Any]


class Receiver:
    """Stores every POST, answers with `status`, and decodes the bodies by the official schema."""

    def __init__(self) -> None:
        self.got: list[Got] = []
        self.status = 200
        self.hanging: threading.Event | None = None
        self.url = ""

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The JSON bodies."""
        found = [got for got in self.got if got.headers["content-type"] == "application/json"]
        return [json.loads(got.body) for got in found]

    @property
    def spans(self) -> list[Spanned]:
        """Every span, in the order of arrival."""
        found: list[Spanned] = []
        for got in self.got:
            if got.path == "/v1/traces":
                request = ExportTraceServiceRequest.FromString(got.body)
                for resource in request.resource_spans:
                    shared = _plain(resource.resource.attributes)
                    for scope in resource.scope_spans:
                        found += [_span(span, shared) for span in scope.spans]
        return found

    @property
    def metrics(self) -> dict[str, Any]:
        """The newest value of every metric."""
        found: dict[str, Any] = {}
        for got in self.got:
            if got.path == "/v1/metrics":
                request = ExportMetricsServiceRequest.FromString(got.body)
                for resource in request.resource_metrics:
                    for scope in resource.scope_metrics:
                        found.update({metric.name: metric for metric in scope.metrics})
        return found


def _span(span: Any, resource: dict[str, Any]) -> Spanned:
    return Spanned(
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        attributes=_plain(span.attributes),
        error=span.status.message if span.status.code == 2 else None,
        resource=resource,
    )


def _plain(attributes: Iterable[Any]) -> dict[str, Any]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in attributes}


@contextmanager
def receiving() -> Generator[Receiver]:
    """A receiver, until the block ends."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.got.append(Got(self.path, headers, body))
            if receiver.hanging is not None:
                receiver.hanging.wait(60)
            self.send_response(receiver.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *args: Any) -> None:
            """Clients may disconnect."""

    with Server(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            if receiver.hanging is not None:
                receiver.hanging.set()
            server.shutdown()
