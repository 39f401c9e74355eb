"""What is sent by OTLP follows the OTEL_* variables that it is given, and no other."""  # K9

import os
from collections.abc import Mapping
from datetime import timedelta

import pytest

from receiver import Receiver, receiving
from windlass.adapters.telemetry.otlp import Otlp
from windlass.ports import Measured, Span
from windlass.views.telemetry_names import INSTRUMENTS, TASK_DURATION, TASKS_TOTAL
from worlds import NOON


def sent(receiver: Receiver, said: list[str], more: Mapping[str, str]) -> None:
    """One span and two measures, with these variables."""
    otlp = Otlp(
        INSTRUMENTS,
        environment={"OTEL_EXPORTER_OTLP_ENDPOINT": f"{receiver.url}/", **more},
        resource={"service.name": "windlass", "service.version": "1", "service.instance.id": "i"},
        redact=lambda text: text.replace("hunter2", "***"),
        say=said.append,
        traces=True,
        metrics=True,
    )
    span = Span(
        name="s",
        trace="1" * 32,
        id="2" * 16,
        parent=None,
        start=NOON,
        end=NOON + timedelta(seconds=3),
        attributes={"a": 1},
    )
    measured = [
        Measured(instrument=TASKS_TOTAL, value=1, attributes={"status": "completed"}),
        Measured(instrument=TASK_DURATION, value=40, attributes={"status": "completed"}),
    ]
    otlp.tell([span], measured)
    otlp.close()


def test_every_variable_reaches_the_sdk_and_the_process_stays_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "process=own")
    before, said = dict(os.environ), list[str]()
    variables = {
        "OTEL_EXPORTER_OTLP_HEADERS": "x-all=1",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-own=a%20b",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
        "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta",
        "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION": (
            "base2_exponential_bucket_histogram"
        ),
        "OTEL_METRICS_EXEMPLAR_FILTER": "always_on",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test%2C1, password=hunter2,broken",
        "OTEL_EXPERIMENTAL_RESOURCE_DETECTORS": "process",
        "OTEL_BSP_MAX_QUEUE_SIZE": "600",
    }
    with receiving() as receiver:
        sent(receiver, said, variables)
        headers = {got.path: got.headers for got in receiver.got}
        (span,) = receiver.spans
        metrics = receiver.metrics
    assert said == []
    assert dict(os.environ) == before
    assert headers["/v1/traces"]["x-own"] == "a b"
    assert "x-all" not in headers["/v1/traces"]
    assert headers["/v1/metrics"]["x-all"] == "1"
    assert {each["content-encoding"] for each in headers.values()} == {"gzip"}
    assert span.resource["deployment.environment"] == "test,1"
    assert span.resource["password"] == "***"
    assert span.resource["service.name"] == "windlass"
    assert span.resource["telemetry.sdk.language"] == "python"
    assert span.resource["process.pid"] == os.getpid()
    assert "process" not in span.resource
    assert metrics["orchestrator_tasks_total"].sum.aggregation_temporality == 1, "delta"
    (point,) = metrics["orchestrator_task_duration_seconds"].exponential_histogram.data_points
    assert point.count == 1
    assert len(point.exemplars) == 1


def test_without_them_the_defaults_hold():
    said: list[str] = []
    with receiving() as receiver:
        sent(receiver, said, {"OTEL_RESOURCE_ATTRIBUTES": "service.name=ours"})
        (span,) = receiver.spans
        metrics = receiver.metrics
        headers = [got.headers for got in receiver.got]
    assert said == []
    assert span.resource["service.name"] == "ours"
    assert not any("content-encoding" in each for each in headers)
    assert metrics["orchestrator_tasks_total"].sum.aggregation_temporality == 2, "cumulative"
    (point,) = metrics["orchestrator_task_duration_seconds"].histogram.data_points
    assert list(point.explicit_bounds) == list(TASK_DURATION.buckets)
    assert list(point.bucket_counts)[1] == 1


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_EXPORTER_OTLP_TIMEOUT": "soon"},
        {"OTEL_EXPORTER_OTLP_COMPRESSION": "brotli"},
        {"OTEL_METRIC_EXPORT_INTERVAL": "often"},
    ],
)
def test_a_value_that_means_nothing_is_named_and_the_default_holds(variables: Mapping[str, str]):
    said: list[str] = []
    with receiving() as receiver:
        sent(receiver, said, variables)
        assert len(receiver.spans) == 1
    assert len(said) == 1


def test_an_unknown_exemplar_filter_is_refused():
    with receiving() as receiver, pytest.raises(ValueError, match="OTEL_METRICS_EXEMPLAR_FILTER"):
        sent(receiver, [], {"OTEL_METRICS_EXEMPLAR_FILTER": "some"})
