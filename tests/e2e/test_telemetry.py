"""Whole runs, and who follows them from outside: a real Prometheus, a receiver of OTLP."""  # K9

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import plans
from receiver import Receiver, Spanned, receiving
from scripted_run import plan, scripted_run
from waiting import eventually
from windlass.testing.sample import playing, write
from windlass.testing.stage import Stage

pytestmark = pytest.mark.e2e

DASHBOARD = Path(__file__).parents[2] / "docs/telemetry/grafana-dashboard.json"
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def place(tmp_path: Path) -> Stage:
    """A repository with three tasks, and a model that is not there."""
    made = Stage(tmp_path, "http://127.0.0.1:9")
    made.build({"plan.md": plan("First", "Second", "Third"), "README.md": "hello\n"})
    return made


def metrics_url(process: subprocess.Popen[str]) -> str:
    for line in process.stderr or ():
        if "metrics are at" in line:
            return line.split()[-1]
    raise AssertionError("it never said where")


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as page:  # noqa: S310  loopback
        return page.read().decode()


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[Callable[[str], list[Any]]]:
    """Debian's Prometheus, which reads that page; gives what asks it."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("needs prometheus")
    config = folder / "prometheus.yml"
    scrape = {"job_name": "windlass", "static_configs": [{"targets": [target]}]}
    # A look that takes too long counts as one that found nothing.
    often = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    config.write_text(json.dumps({"global": often, "scrape_configs": [scrape]}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        program,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address={address}",
    ]
    with (folder / "prometheus.log").open("w") as log, subprocess.Popen(command, stderr=log) as it:

        def ask(query: str) -> list[Any]:
            words = urllib.parse.urlencode({"query": query})
            try:
                answer = json.loads(fetched(f"http://{address}/api/v1/query?{words}"))
            except (urllib.error.URLError, ConnectionError):
                assert it.poll() is None, (folder / "prometheus.log").read_text()
                return []
            assert answer["status"] == "success", answer
            return answer["data"]["result"]

        try:
            yield ask
        finally:
            it.terminate()


def value(result: list[Any]) -> float | None:
    return float(result[0]["value"][1]) if result else None


def test_a_real_prometheus_reads_a_run_and_knows_its_quantiles(place: Stage, tmp_path: Path):
    hold = tmp_path / "hold"
    hold.mkdir()
    with scripted_run(place, "plan.md", "--metrics-port", "0", HOLD=str(hold)) as process:
        url = metrics_url(process)
        with prometheus(tmp_path, urllib.parse.urlsplit(url).netloc) as ask:
            done = 'orchestrator_tasks_total{milestone="plan",status="completed"}'
            eventually(lambda: value(ask(done)) == 0, timeout=60)
            # One after the other, each seen before the next: a rate needs a count that grew
            # between two looks, and looks may be rare on a busy machine.
            for count, task in enumerate(("1.1", "1.2"), 1):
                (hold / task).touch()
                eventually(lambda count=count: value(ask(done)) == count, timeout=60)
            buckets = "sum by (le) (orchestrator_task_duration_seconds_bucket)"
            for share in (0.5, 0.95, 0.99):
                answer = value(ask(f"histogram_quantile({share}, {buckets})"))
                assert answer == pytest.approx(30 * share), "all of them in the first bucket"
            assert value(ask("sum(orchestrator_task_duration_seconds_count)")) == 2
            assert value(ask("sum(orchestrator_cost_usd_total)")) == 1.0, "two Players, two Coaches"
            assert value(ask("sum(orchestrator_tokens_total)")) == 4 * 4200
            assert value(ask("sum(gen_ai_client_token_usage_sum)")) == 4 * 4200
            assert_the_dashboard_shows_something(ask)
            (hold / "1.3").touch()
            _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err


def assert_the_dashboard_shows_something(ask: Callable[[str], list[Any]]) -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    variables = {"$milestone": ".*", "$__range": "5m", "$__rate_interval": "1m"}
    for panel in panels:
        for target in panel["targets"]:
            query = target["expr"]
            for name, given in variables.items():
                query = query.replace(name, given)
            assert "$" not in query
            found = ask(query)
            assert found, f"{panel['title']}: {query}"
            assert all(each["value"][1] != "NaN" for each in found), f"{panel['title']}: {query}"


def test_the_page_answers_only_what_it_should(place: Stage, tmp_path: Path):
    """GET of one path, by a name that no web page can turn on it."""
    with scripted_run(place, "plan.md", "--metrics-port", "0", HOLD=str(tmp_path)) as process:
        url = urllib.parse.urlsplit(metrics_url(process))
        assert url.hostname == "127.0.0.1"

        def status(method: str, path: str, host: str) -> int:
            connection = HTTPConnection("127.0.0.1", url.port or 0, timeout=20)
            connection.request(method, path, headers={"Host": host})
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer.status

        assert status("GET", "/metrics", f"127.0.0.1:{url.port}") == 200
        assert status("GET", "/metrics", f"localhost:{url.port}") == 200
        assert status("GET", "/metrics", "[::1]") == 200
        assert status("GET", "/metrics", "rebound.example") == 403
        assert status("GET", "/metrics", "127.0.0.1.example:80") == 403
        assert status("GET", "/metrics", "") == 403
        assert status("GET", "/etc/passwd", "localhost") == 404
        for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS"):
            assert status(method, "/metrics", "localhost") == 405
        # A caller that says nothing keeps nobody.
        with socket.create_connection(("127.0.0.1", url.port or 0)):
            for task in ("1.1", "1.2", "1.3"):
                (tmp_path / task).touch()
            process.communicate(timeout=60)
    assert process.returncode == 0


def test_an_address_that_is_taken_is_refused_before_anything_is_recorded(place: Stage):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with scripted_run(place, "plan.md", "--metrics-port", port) as process:
            _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert f"metrics cannot be served at 127.0.0.1:{port}: Address already in use" in err
    assert err.count("\n") == 1
    assert "never run here" in place.windlass("resume", "plan.md").communicate()[1]


def test_a_receiver_of_otlp_gets_the_whole_of_a_run_of_the_real_agent(stage):
    """Milestone ⊃ task ⊃ turn ⊃ agents; and the agent's own tools know the span they work in."""
    one = {"1.1": ()}
    told = write("1.1.txt", "by 1.1\n")
    told.input["command"] += '\nprintf %s "$TRACEPARENT" > traceparent'
    book = plans.book(one, **{"1.1": playing(told, summary="Wrote it.")})
    with receiving() as receiver:
        play = stage(plans.files(one), book)
        code, _, err = play.run(
            "run",
            "plan.md",
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
            OTEL_EXPORTER_OTLP_HEADERS="x-tenant=ours",
            OTEL_RESOURCE_ATTRIBUTES="deployment.environment=test",
            TRACEPARENT=TRACEPARENT,
        )
        assert code == 0, err
        spans = receiver.spans
        assert {got.headers["x-tenant"] for got in receiver.got} == {"ours"}
    milestone, task = named(spans, "orchestrator.milestone"), named(spans, "orchestrator.task")
    turn = named(spans, "orchestrator.turn")
    assert (milestone.trace, milestone.parent) == tuple(TRACEPARENT.split("-")[1:3])
    assert (task.parent, turn.parent) == (milestone.id, task.id)
    player, coach = named(spans, "invoke_agent Player"), named(spans, "invoke_agent Coach")
    assert player.parent == coach.parent == turn.id
    assert milestone.start <= task.start <= player.start < player.end <= coach.start
    assert coach.end <= turn.end <= task.end <= milestone.end
    assert milestone.attributes["milestone.id"] == "plan"
    assert milestone.attributes["milestone.total_tasks"] == 1
    assert milestone.attributes["milestone.resume"] is False
    assert milestone.attributes["milestone.tasks_completed"] == 1
    assert milestone.attributes["milestone.total_tokens"] == task.attributes["claude.tokens"] > 0
    assert milestone.attributes["milestone.total_cost_usd"] == pytest.approx(play.spent())
    assert task.attributes["task.id"] == "1.1"
    assert task.attributes["task.status"] == "completed"
    assert player.attributes["gen_ai.request.model"] == "claude-sonnet-4-5"
    assert player.attributes["gen_ai.usage.input_tokens"] > 0
    assert player.resource["service.name"] == "windlass"
    assert player.resource["deployment.environment"] == "test"
    there = play.git("show", "windlass/plan/integration:traceparent")
    assert there == f"00-{player.trace}-{player.id}-01", "the agent's tools were told"
    assert play.none_left()


def named(spans: list[Spanned], name: str) -> Spanned:
    (found,) = [span for span in spans if span.name == name]
    return found


def totals(receiver: Receiver) -> dict[str, float]:
    return {
        name: sum(point.as_int or point.as_double for point in metric.sum.data_points)
        for name, metric in receiver.metrics.items()
        if metric.HasField("sum")
    }


def test_a_run_that_was_killed_goes_on_in_the_same_trace_and_counts_nothing_twice(
    place: Stage, tmp_path: Path
):  # B4
    (tmp_path / "1.1").touch()
    variables = {
        "HOLD": str(tmp_path),
        "OTEL_BSP_SCHEDULE_DELAY": "50",
        "OTEL_METRIC_EXPORT_INTERVAL": "50",
        "OTEL_SERVICE_NAME": "ours",
    }
    with receiving() as receiver:
        variables["OTEL_EXPORTER_OTLP_ENDPOINT"] = receiver.url
        with scripted_run(place, "plan.md", **variables) as process:
            eventually(lambda: "orchestrator.task" in {s.name for s in receiver.spans}, timeout=60)
            eventually(lambda: totals(receiver).get("orchestrator_tasks_total") == 1, timeout=60)
            os.killpg(process.pid, signal.SIGKILL)
        before = len(receiver.spans)
        receiver.got = [got for got in receiver.got if got.path == "/v1/traces"]
        (tmp_path / "1.2").touch()
        (tmp_path / "1.3").touch()
        with scripted_run(place, "plan.md", "--resume", **variables) as process:
            _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        spans, counts = receiver.spans, totals(receiver)
    assert before >= 4, "the first task, its turn and its agents"
    assert len({span.id for span in spans}) == len(spans), "none twice"
    assert len({span.trace for span in spans}) == 1
    ids = {span.id for span in spans}
    assert {span.parent for span in spans} - ids == {""}, "no parent is missing"
    milestones = [s.attributes for s in spans if s.name == "orchestrator.milestone"]
    assert [m["milestone.resume"] for m in milestones] == [False, True]
    assert milestones[0]["error.type"] == "crashed"
    assert [m["milestone.tasks_completed"] for m in milestones] == [1, 2]
    assert counts["orchestrator_tasks_total"] == 2, "of three, one was told by the one that died"
    assert {span.resource["service.name"] for span in spans} == {"ours"}


def test_a_back_end_that_hangs_or_is_down_neither_holds_a_run_up_nor_ends_it(place: Stage):
    with receiving() as receiver:
        receiver.hanging = threading.Event()
        quick = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_METRIC_EXPORT_INTERVAL": "50"}
        with scripted_run(
            place, "plan.md", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, **quick
        ) as process:
            _, err = process.communicate(timeout=60)
        assert receiver.got, "it was asked"
        assert not receiver.hanging.is_set(), "and has not answered yet"
    assert process.returncode == 0, err
    assert err.count("telemetry does not get through") == 1
    assert "3 tasks: 3 completed" in err
    nobody = "http://127.0.0.1:9"
    with scripted_run(
        place, "plan.md", "--restart", OTEL_EXPORTER_OTLP_ENDPOINT=nobody, **quick
    ) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert err.count("telemetry") == 1, "one line, and none of the library's own"


def test_what_nobody_asked_for_is_not_loaded(place: Stage):
    unwanted = {"opentelemetry.sdk", "opentelemetry.exporter", "prometheus_client", "requests"}
    with scripted_run(place, "plan.md") as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert not unwanted & set(out.split())
    assert "windlass.adapters.notices" not in out
    with receiving() as receiver:
        off = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_SDK_DISABLED": "true"}
        with scripted_run(place, "plan.md", "--restart", **off) as process:
            out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert not unwanted & set(out.split())
        assert receiver.got == []


def test_the_example_files_are_what_they_say():
    folder = DASHBOARD.parent
    services = YAML(typ="safe").load(folder / "compose.yaml")["services"]
    mounted = [
        volume.split(":")[0] for each in services.values() for volume in each.get("volumes", ())
    ]
    assert len(mounted) == 4
    assert all((folder / name).is_file() for name in mounted)
    ports = [port for each in services.values() for port in each.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in ports), "nothing is opened to others"
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs prometheus")
    config = str(folder / "prometheus.yml")
    done = subprocess.run([promtool, "check", "config", config], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
