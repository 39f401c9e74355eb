"""Spans and measures by OTLP over HTTP, to the address in the OTEL_* variables.

Law 1: the run never waits: spans and measures are queued, and sent by threads of the SDK. Law 2: if
a back end is down, slow or hangs, its data is lost and one line says so. Law 3: the end of a run
waits a few seconds for the queue, and drops the rest; no thread here keeps the process alive.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.metadata import entry_points
from typing import Any, Literal
from urllib.parse import unquote

import requests
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import (
    AlwaysOffExemplarFilter,
    AlwaysOnExemplarFilter,
    MeterProvider,
    TraceBasedExemplarFilter,
)
from opentelemetry.sdk.metrics import Counter as CounterOfSdk
from opentelemetry.sdk.metrics import Histogram as HistogramOfSdk
from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import (
    ExplicitBucketHistogramAggregation,
    ExponentialBucketHistogramAggregation,
)
from opentelemetry.sdk.resources import Resource, ResourceDetector, get_aggregated_resources
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.util.re import parse_env_headers

from windlass.ports import Instrument, Measured, Span

CLOSE_SECONDS = 3.0
"""How long the end of a run waits for the queue."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_NAME = "service.name"
_LOG = "opentelemetry"
_LOGGER = logging.getLogger(f"{_LOG}.windlass")
_EXEMPLARS = {
    "trace_based": TraceBasedExemplarFilter,
    "always_on": AlwaysOnExemplarFilter,
    "always_off": AlwaysOffExemplarFilter,
}
_LONG = 200


class Otlp:
    """Sends spans and measures."""

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
        """Take which of the two to send, and whom to notify when no back end takes it."""
        self._trouble = _Trouble(say, redact)
        self._scope = InstrumentationScope(resource[_NAME], resource.get("service.version"))
        self._processor: BatchSpanProcessor | None = None
        self._provider: MeterProvider | None = None
        self._counted: dict[str, Callable[[float, dict[str, Any]], None]] = {}
        variables = _Variables(environment)
        session = requests.Session()
        session.trust_env, session.proxies = False, _proxies(environment)
        self._resource = _resource(resource, variables, redact)
        if traces:
            exporter = OTLPSpanExporter(session=session, **variables.exporter("traces"))
            self._processor = BatchSpanProcessor(exporter, **variables.batches())
        if metrics:
            self._provider = _provider(session, variables, self._resource)
            self._counted = {each.name: self._instrument(each) for each in instruments}

    def tell(self, spans: Iterable[Span], measured: Iterable[Measured]) -> None:
        if self._processor is not None:
            for span in spans:
                self._processor.on_end(self._readable(span))
        for each in measured if self._counted else ():
            # A histogram cannot announce a set of attributes without a value.
            if each.times or each.instrument.kind != "histogram":
                self._counted[each.instrument.name](each.value, dict(each.attributes))

    def close(self) -> None:
        """Send the queue, within CLOSE_SECONDS."""
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

    def _instrument(self, what: Instrument) -> Callable[[float, dict[str, Any]], None]:
        assert self._provider is not None  # noqa: S101  for the type checker
        meter = self._provider.get_meter(self._scope.name, self._scope.version)
        if what.kind == "counter":
            return meter.create_counter(what.name, unit=what.unit, description=what.help).add
        if what.kind == "gauge":
            return meter.create_gauge(what.name, unit=what.unit, description=what.help).set
        return meter.create_histogram(
            what.name,
            unit=what.unit,
            description=what.help,
            explicit_bucket_boundaries_advisory=what.buckets,
        ).record

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
    """Receives the SDK's warnings, which would otherwise go to the terminal; reports the first.

    They come from threads that may outlive the run, so the handler stays to the end.
    """

    def __init__(self, say: Callable[[str], None], redact: Callable[[str], str]) -> None:
        super().__init__(logging.WARNING)
        self._say, self._redact, self._reported = say, redact, False
        logger = logging.getLogger(_LOG)
        logger.addHandler(self)
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self.tell(record.getMessage())

    def tell(self, why: str) -> None:
        """Report one line for everything that goes wrong."""
        if not self._reported:
            self._reported = True
            what = " ".join(self._redact(why).split())[:_LONG]
            self._say(f"telemetry does not get through; the run goes on without it: {what}")

    def close(self) -> None:
        """Keep receiving, and report nothing more."""
        self._reported = True


class _Variables:
    """The OTEL_* variables of a run, as arguments of the SDK's constructors.

    The SDK itself would read them from this process's environment, which is not the run's. So every
    value is passed, even a default.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._values = {k: v.strip() for k, v in environment.items() if k.startswith("OTEL_")}

    def get(self, *names: str, default: str = "") -> str:
        """The first of these variables that is set; names are without `OTEL_`."""
        return next(filter(None, (self._values.get(f"OTEL_{name}") for name in names)), default)

    def number(self, *names: str, default: float) -> float:
        """The same as a number; the default, with a warning, if it is not one."""
        try:
            return float(self.get(*names, default=str(default)))
        except ValueError:
            _LOGGER.warning("OTEL_%s is not a number; %g is used", names[0], default)
            return default

    def exporter(self, signal: Literal["traces", "metrics"]) -> dict[str, Any]:
        """The exporter's arguments for a signal."""

        def names(what: str) -> tuple[str, str]:
            return f"EXPORTER_OTLP_{signal.upper()}_{what}", f"EXPORTER_OTLP_{what}"

        base = self.get("EXPORTER_OTLP_ENDPOINT", default="http://localhost:4318")
        whole = f"{base.removesuffix('/')}/v1/{signal}"
        compression = self.get(*names("COMPRESSION"), default="none").lower()
        if compression not in {each.value for each in Compression}:
            _LOGGER.warning("compression %r is not known; none is used", compression)
            compression = "none"
        return {
            "endpoint": self.get(f"EXPORTER_OTLP_{signal.upper()}_ENDPOINT", default=whole),
            "certificate_file": self.get(*names("CERTIFICATE")) or None,
            "client_key_file": self.get(*names("CLIENT_KEY")) or None,
            "client_certificate_file": self.get(*names("CLIENT_CERTIFICATE")) or None,
            "headers": parse_env_headers(self.get(*names("HEADERS")), liberal=True),
            "timeout": self.number(*names("TIMEOUT"), default=10),
            "compression": Compression(compression),
        }

    def batches(self) -> dict[str, Any]:
        """The batch processor's arguments."""
        return {
            "max_queue_size": int(self.number("BSP_MAX_QUEUE_SIZE", default=2048)),
            "schedule_delay_millis": self.number("BSP_SCHEDULE_DELAY", default=5_000),
            "max_export_batch_size": int(self.number("BSP_MAX_EXPORT_BATCH_SIZE", default=512)),
            "export_timeout_millis": self.number("BSP_EXPORT_TIMEOUT", default=30_000),
        }

    def detectors(self) -> list[ResourceDetector]:
        """The resource detectors that the user asked for."""
        asked = set(self.get("EXPERIMENTAL_RESOURCE_DETECTORS").replace(" ", "").split(","))
        known = entry_points(group="opentelemetry_resource_detector") if asked != {""} else ()
        wanted = (each for each in known if each.name in asked or "*" in asked)
        return [each.load()() for each in wanted if each.name != "otel"]


def _provider(
    session: requests.Session, variables: _Variables, resource: Resource
) -> MeterProvider:
    preference = variables.get("EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE").upper()
    delta = preference in {"DELTA", "LOWMEMORY"}
    temporality = AggregationTemporality.DELTA if delta else AggregationTemporality.CUMULATIVE
    shape = variables.get("EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION")
    exponential = shape == "base2_exponential_bucket_histogram"
    exporter = OTLPMetricExporter(
        session=session,
        preferred_temporality={CounterOfSdk: temporality, HistogramOfSdk: temporality},
        preferred_aggregation={
            HistogramOfSdk: ExponentialBucketHistogramAggregation()
            if exponential
            else ExplicitBucketHistogramAggregation()
        },
        **variables.exporter("metrics"),
    )
    reader = PeriodicExportingMetricReader(
        exporter,
        export_interval_millis=variables.number("METRIC_EXPORT_INTERVAL", default=60_000),
        export_timeout_millis=variables.number("METRIC_EXPORT_TIMEOUT", default=30_000),
    )
    kept = variables.get("METRICS_EXEMPLAR_FILTER", default="trace_based")
    if kept not in _EXEMPLARS:
        raise ValueError(f"OTEL_METRICS_EXEMPLAR_FILTER is none of {', '.join(_EXEMPLARS)}")
    return MeterProvider(
        [reader], resource=resource, shutdown_on_exit=False, exemplar_filter=_EXEMPLARS[kept]()
    )


def _resource(
    given: Mapping[str, str], variables: _Variables, redact: Callable[[str], str]
) -> Resource:
    """Who sends: found by detectors, set by variables, and given by Windlass."""
    sdk = {k: v for k, v in Resource.create().attributes.items() if k.startswith("telemetry.")}
    found = get_aggregated_resources(variables.detectors(), Resource(sdk))
    pairs = (each.partition("=") for each in variables.get("RESOURCE_ATTRIBUTES").split(","))
    asked = {key.strip(): unquote(value.strip()) for key, equals, value in pairs if equals}
    name = variables.get("SERVICE_NAME") or asked.get(_NAME) or given[_NAME]
    attributes = {**found.attributes, **asked, **given, _NAME: name}
    clean = {k: redact(v) if isinstance(v, str) else v for k, v in attributes.items()}
    return Resource(clean, found.schema_url)


def _context(trace: int, span: int) -> SpanContext:
    return SpanContext(trace, span, is_remote=False, trace_flags=_SAMPLED)


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """The user's proxies; the SDK's session takes exceptions only by name."""
    lower = {name.lower(): value for name, value in environment.items()}
    found = {kind: lower.get(f"{kind}_proxy", "") for kind in ("http", "https")}
    never = [host.strip() for host in lower.get("no_proxy", "").split(",") if host.strip()]
    hosts = ("localhost", "127.0.0.1", *never)
    direct = {f"{kind}://{host}": "" for kind in found for host in hosts}
    return {**{kind: url for kind, url in found.items() if url}, **direct}


def _quietly(end: Callable[[], Any]) -> None:
    with suppress(Exception):
        end()
