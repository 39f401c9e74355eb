"""Spans and measures by OTLP, over HTTP, to wherever the OTEL_* variables say.

Law 1: whoever tells something never waits: it is queued, and sent by threads of the SDK's own. Law
2: a back end that is down, slow or hangs loses what it was to get, and one line says so. Law 3: the
end waits a few seconds for what is queued, and leaves the rest; no thread here keeps the process.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Counter, Histogram
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from windlass.ports import Instrument, Measured, Span

CLOSE_SECONDS = 3.0
"""How long the end of a run waits for what is still to be sent."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_NAME = "service.name"
_LOG = "opentelemetry"
_LONG = 200


class Otlp:
    """Sends what it is told."""

    def __init__(
        self,
        instruments: Iterable[Instrument],
        *,
        environment: Mapping[str, str],
        resource: Mapping[str, str],
        redact: Callable[[str], str],
        say: Callable[[str], None],
        traces: bool,
        metrics: bool,
    ) -> None:
        """Take which of the two to send, and whom to tell that nobody takes it."""
        self._trouble = _Trouble(say, redact)
        self._scope = InstrumentationScope(resource[_NAME], resource.get("service.version"))
        self._processor: BatchSpanProcessor | None = None
        self._provider: MeterProvider | None = None
        self._counted: dict[str, Counter | Histogram] = {}
        with _variables(environment):
            session = requests.Session()
            # Later, when requests are made, this process's environment is bare.
            session.trust_env, session.proxies = False, _proxies(environment)
            self._resource = _resource(resource, redact)
            if traces:
                self._processor = BatchSpanProcessor(OTLPSpanExporter(session=session))
            if metrics:
                reader = PeriodicExportingMetricReader(OTLPMetricExporter(session=session))
                self._provider = MeterProvider(
                    [reader], resource=self._resource, shutdown_on_exit=False
                )
                self._counted = {each.name: self._instrument(each) for each in instruments}

    def tell(self, spans: Iterable[Span], measured: Iterable[Measured]) -> None:
        """Queue it."""
        if self._processor is not None:
            for span in spans:
                self._processor.on_end(self._readable(span))
        for each in measured if self._counted else ():
            counted = self._counted[each.instrument.name]
            if isinstance(counted, Counter):
                counted.add(each.value, dict(each.attributes))
            elif each.times:
                counted.record(each.value, dict(each.attributes))

    def close(self) -> None:
        """Send what is queued, as far as that takes no longer than it may."""
        ends = [each.shutdown for each in (self._processor, self._provider) if each is not None]
        threads = [threading.Thread(target=_quietly, args=(end,), daemon=True) for end in ends]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + CLOSE_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            self._trouble.tell(f"the last of it was not taken within {CLOSE_SECONDS:.0f} s")
        self._trouble.close()

    def _instrument(self, what: Instrument) -> Counter | Histogram:
        assert self._provider is not None  # noqa: S101  for the type checker
        meter = self._provider.get_meter(self._scope.name, self._scope.version)
        if what.kind == "counter":
            return meter.create_counter(what.name, unit=what.unit, description=what.help)
        return meter.create_histogram(
            what.name,
            unit=what.unit,
            description=what.help,
            explicit_bucket_boundaries_advisory=what.buckets,
        )

    def _readable(self, span: Span) -> ReadableSpan:
        trace = int(span.trace, 16)
        outer = _context(trace, int(span.parent, 16)) if span.parent is not None else None
        return ReadableSpan(
            span.name,
            context=_context(trace, int(span.id, 16)),
            parent=outer,
            resource=self._resource,
            attributes=dict(span.attributes),
            kind=SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, span.error) if span.error is not None else Status(),
            start_time=_nanoseconds(span.start),
            end_time=_nanoseconds(span.end),
            instrumentation_scope=self._scope,
        )


class _Trouble(logging.Handler):
    """Hears what the SDK complains of, which would else go to the terminal; says the first of it.

    It complains from threads that may outlive the run, so it is listened to until the end.
    """

    def __init__(self, say: Callable[[str], None], redact: Callable[[str], str]) -> None:
        super().__init__(logging.WARNING)
        self._say, self._redact, self._said = say, redact, False
        logger = logging.getLogger(_LOG)
        logger.addHandler(self)
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, unless something was said already."""
        self.tell(record.getMessage())

    def tell(self, why: str) -> None:
        """One line for all that goes wrong."""
        if not self._said:
            self._said = True
            what = " ".join(self._redact(why).split())[:_LONG]
            self._say(f"telemetry does not get through; the run goes on without it: {what}")

    def close(self) -> None:
        """Hear on, and say nothing any more."""
        self._said = True


def _resource(told: Mapping[str, str], redact: Callable[[str], str]) -> Resource:
    found = Resource.create({k: v for k, v in told.items() if k != _NAME})
    attributes = dict(found.attributes)
    # So it is called where nobody gave the service a name.
    if str(attributes.get(_NAME, "unknown_service")).startswith("unknown_service"):
        attributes[_NAME] = told[_NAME]
    clean = {k: redact(v) if isinstance(v, str) else v for k, v in attributes.items()}
    return Resource(clean, found.schema_url)


def _context(trace: int, span: int) -> SpanContext:
    return SpanContext(trace, span, is_remote=False, trace_flags=_SAMPLED)


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """What leads to other machines; the SDK's session knows no exceptions but by name."""
    lower = {name.lower(): value for name, value in environment.items()}
    found = {kind: lower.get(f"{kind}_proxy", "") for kind in ("http", "https")}
    never = [host.strip() for host in lower.get("no_proxy", "").split(",") if host.strip()]
    hosts = ("localhost", "127.0.0.1", *never)
    direct = {f"{kind}://{host}": "" for kind in found for host in hosts}
    return {**{kind: url for kind, url in found.items() if url}, **direct}


@contextmanager
def _variables(environment: Mapping[str, str]) -> Generator[None]:
    """Let the SDK see its own variables, and nobody else: it takes them from nowhere else."""
    before = dict(os.environ)
    os.environ.update({k: v for k, v in environment.items() if k.startswith("OTEL_")})
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


def _quietly(end: Callable[[], Any]) -> None:
    with suppress(Exception):
        end()
