"""What is asked of telemetry and notices and cannot be: one line, the cure, nothing changed."""

import shutil

import pytest

from desk import Desk
from windlass.app.wiring import Observers, Project
from windlass.app.wiring.installation import how_to_add
from windlass.core.settings import NotifySettings, Settings

OTLP = "http://127.0.0.1:9"
HIDES = """\
import sys


class Hider:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("opentelemetry.sdk", "prometheus_client")):
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, Hider())
"""


@pytest.mark.parametrize(
    ("args", "variables", "said"),
    [
        (
            (),
            {"OTEL_EXPORTER_OTLP_ENDPOINT": OTLP, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL: Windlass does not speak 'grpc'; set it to http/protobuf",
        ),
        (
            (),
            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "localhost:4317"},
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not a URL; use one such as http://localhost:4318",
        ),
        (
            (),
            {"OTEL_TRACES_EXPORTER": "console"},
            "OTEL_TRACES_EXPORTER: Windlass has no exporter 'console'; set it to otlp or none",
        ),
        (
            (),
            {"OTEL_EXPORTER_OTLP_ENDPOINT": OTLP, "OTEL_BSP_SCHEDULE_DELAY": "-5"},
            "OpenTelemetry cannot use its variables (OTEL_*): schedule_delay_millis must be",
        ),
        (
            (),
            {"WINDLASS_TELEMETRY_PROMETHEUS": "everywhere"},
            "telemetry.prometheus: 'everywhere' is not an address; use one such as 127.0.0.1:9464",
        ),
        (
            (),
            {"WINDLASS_TELEMETRY_PROMETHEUS": "127.0.0.1:70000"},
            "telemetry.prometheus: '127.0.0.1:70000' is not an address",
        ),
        (("--metrics-port", "70000"), {}, "70000 is not in the range"),
        (
            (),
            {"WINDLASS_NOTIFY_WEBHOOK": "NO_SUCH_VARIABLE"},
            "notify.webhook is no URL, and no variable that holds one",
        ),
        (
            (),
            {"WINDLASS_NOTIFY_DESKTOP": "loud"},
            "WINDLASS_NOTIFY_DESKTOP: notify.desktop: invalid enum value",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(desk: Desk, args, variables, said):  # K9 K10
    answer = desk.call("run", "plan.md", *args, **variables)
    assert answer.code == 2, answer.err
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert not list(desk.repo.glob(".windlass/plans/*/runs")), "nothing was begun"


@pytest.mark.parametrize(
    ("args", "variables"),
    [((), {"OTEL_EXPORTER_OTLP_ENDPOINT": OTLP}), (("--metrics-port", "0"), {})],
)
def test_an_extra_that_is_not_installed_is_named_with_its_cure(desk: Desk, args, variables):  # K9
    (desk.home / "sitecustomize.py").write_text(HIDES)
    before = desk.everything()
    missing = {"PYTHONPATH": str(desk.home), "PYTHONDONTWRITEBYTECODE": "1"}
    answer = desk.call("run", "plan.md", *args, **variables, **missing)
    assert answer.code == 2
    assert answer.err.startswith(
        "windlass: telemetry is on, but its packages are not installed; "
        f"install them: {how_to_add('telemetry')}; or turn it off: "
    )
    assert answer.err.count("\n") == 1
    assert desk.everything() == before


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_EXPORTER_OTLP_ENDPOINT": OTLP, "OTEL_SDK_DISABLED": "TRUE"},
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": OTLP,
            "OTEL_TRACES_EXPORTER": "none",
            "OTEL_METRICS_EXPORTER": "none",
        },
        {"OTEL_EXPORTER_OTLP_ENDPOINT": OTLP, "WINDLASS_TELEMETRY_OTLP": "off"},
        {"OTEL_SERVICE_NAME": "alone"},
    ],
)
def test_what_is_switched_off_needs_no_extra(desk: Desk, variables):  # K9
    (desk.home / "sitecustomize.py").write_text(HIDES)
    missing = {"PYTHONPATH": str(desk.home)}
    answer = desk.call("run", "plan.md", "--resume", **variables, **missing)
    assert "was never run here" in answer.err, "refused for another reason, which comes later"


@pytest.mark.parametrize(("desktop", "lines"), [("on", 1), ("auto", 0), ("off", 0)])
def test_where_there_is_no_desktop_it_is_said_only_to_who_insists(
    desk: Desk, desktop, lines
):  # K10
    folder = desk.root / "bin"
    folder.mkdir()
    (folder / "git").symlink_to(shutil.which("git") or "")
    said: list[str] = []
    project = Project(desk.repo, {**desk.environment, "PATH": str(folder)})
    settings = Settings(notify=NotifySettings(desktop=desktop))
    Observers(project, "plan", settings, notify=None, report=said.append).close()
    assert len([line for line in said if "neither osascript nor notify-send" in line]) == lines


def test_doctor_shows_no_webhook(desk: Desk):  # S13 K10
    hook = "https://hooks.example/services/T00/B00/secret"
    answer = desk.call("doctor", WINDLASS_NOTIFY_WEBHOOK=hook)
    assert "[redacted WINDLASS_NOTIFY_WEBHOOK]" in answer.out
    assert "B00" not in answer.out + answer.err
