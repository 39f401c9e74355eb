"""Asks a provider once whether it can be reached; costs nothing, and takes a bounded time."""

import threading
from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from windlass.adapters.meter.wire import wire_of
from windlass.app.wiring.agents import refuse_without_credentials, vendor_of
from windlass.core.settings import AgentSettings
from windlass.errors import WindlassError

SECONDS = 10.0
"""All that a probe may take; looking up a name alone can take longer."""

Found: TypeAlias = Literal["answers", "refuses the key", "cannot be reached"]

_UNAUTHORIZED = 401


class Probe(Struct, frozen=True, kw_only=True):
    """What became of one request to the provider."""

    found: Found
    said: str


def probe_provider(
    settings: AgentSettings, environment: Mapping[str, str], seconds: float = SECONDS
) -> Probe | None:
    """Ask the agent's provider; None without a wire protocol that Windlass speaks, or credentials.

    A key is tried. A login is not: only the agent's program can use one.
    """
    vendor = vendor_of(settings)
    try:
        refuse_without_credentials(settings, environment)
    except WindlassError:  # doctor says so where it looks for the key
        return None
    if not vendor.wire:
        return None
    # A web client is slow to import.
    from windlass.adapters.meter.upstream import Unreached, Upstream

    credentials = vendor.credentials(environment)
    keys = {name: value for name, value in credentials.items() if name in vendor.keys}
    wire = wire_of(vendor.wire)
    upstream = Upstream(credentials.get(vendor.address) or vendor.url, environment)
    answers: list[int | Unreached] = []

    def ask() -> None:
        answers.append(upstream.probe(wire.probe_path, wire.probe_headers(keys), seconds))

    # A thread that is left behind: nothing can end the lookup of a name.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(seconds)
    late = Unreached(why=f"cannot reach {upstream.host}: timed out after {seconds:g} seconds")
    answer = answers[0] if answers else late
    if isinstance(answer, Unreached):
        return Probe(found="cannot be reached", said=answer.why)
    if answer == _UNAUTHORIZED and keys:
        named = " and ".join(keys)
        said = f"{upstream.host} refuses the credentials in {named} (HTTP {answer})"
        return Probe(found="refuses the key", said=said)
    return Probe(found="answers", said=f"{upstream.way} answers (HTTP {answer})")
