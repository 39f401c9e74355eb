"""Which telemetry a run sends, from its settings and the standard variables (OTEL_*).

Law: an impossible request is refused here, in one line with its cure.
"""

import importlib.util
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from windlass.app.wiring.installation import how_to_add
from windlass.core.settings import TelemetrySettings
from windlass.errors import BadInput, ConfigError

LOOPBACK = "127.0.0.1"
_MOST_PORTS = 65_535
_PARTS = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http", "prometheus_client")


class TelemetryRequest(Struct, frozen=True, kw_only=True):
    """What to send, and the address of the Prometheus page."""

    traces: bool = False
    metrics: bool = False
    address: tuple[str, int] | None = None

    @property
    def anything(self) -> bool:
        """Whether telemetry is on at all."""
        return self.traces or self.metrics or self.address is not None


def telemetry_request(
    settings: TelemetrySettings, environment: Mapping[str, str]
) -> TelemetryRequest:
    """Read settings and variables; raises if they ask for something impossible."""
    asked = TelemetryRequest(
        traces=_wants(settings, environment, "TRACES"),
        metrics=_wants(settings, environment, "METRICS"),
        address=_address(settings.prometheus) if settings.prometheus is not None else None,
    )
    if asked.anything and not _is_installed():
        off = "OTEL_SDK_DISABLED=true" if asked.address is None else "no --metrics-port"
        raise BadInput(
            "telemetry is on, but its packages are not installed",
            hint=f"install them: {how_to_add('telemetry')}; or turn it off: {off}",
        )
    return asked


def _is_installed() -> bool:
    try:
        return all(importlib.util.find_spec(name) is not None for name in _PARTS)
    except ModuleNotFoundError:  # a parent package is missing
        return False


def _wants(settings: TelemetrySettings, environment: Mapping[str, str], signal: str) -> bool:
    def variable(name: str) -> tuple[str, str]:
        named = f"OTEL_EXPORTER_OTLP_{signal}_{name}", f"OTEL_EXPORTER_OTLP_{name}"
        found = next((each for each in named if environment.get(each, "").strip()), named[0])
        return found, environment.get(found, "").strip()

    exporter = environment.get(f"OTEL_{signal}_EXPORTER", "").strip().lower()
    disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    name, endpoint = variable("ENDPOINT")
    if settings.otlp == "off" or disabled or exporter == "none" or not (endpoint or exporter):
        return False
    if exporter and "otlp" not in exporter.split(","):
        raise ConfigError(
            f"Windlass has no exporter {exporter!r}",
            where=f"OTEL_{signal}_EXPORTER",
            hint="set it to otlp or none",
        )
    if endpoint and (urlsplit(endpoint).scheme not in {"http", "https"} or not endpoint[8:]):
        hint = "use one such as http://localhost:4318"
        raise ConfigError(f"{name} is not a URL", about=name, hint=hint)
    protocol_name, protocol = variable("PROTOCOL")
    if protocol not in {"", "http/protobuf"}:
        raise ConfigError(
            f"Windlass does not speak {protocol!r}",
            where=protocol_name,
            hint="set it to http/protobuf (usually port 4318), or OTEL_SDK_DISABLED=true",
        )
    return True


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > _MOST_PORTS:
        raise ConfigError(
            f"{text!r} is not an address",
            where="telemetry.prometheus",
            hint=f"use one such as {LOOPBACK}:9464, or a port alone",
        )
    return host.strip("[]") or LOOPBACK, int(port)
