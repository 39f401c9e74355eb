"""What a person should know of the network: what setup reached, what was refused, what to add."""

from collections.abc import Iterable

from windlass.events.run import HostsAsked
from windlass.state import RunState
from windlass.views.lines import Line
from windlass.views.words import plural

_SOME = 8


def told(event: HostsAsked) -> Line:
    """Say what one box asked for, and the line that would allow it."""
    who = " ".join(part for part in (event.task, event.role) if part)
    if event.refused:
        text = f"{who} was refused {_listed(event.refused)}"
        return Line("NETWORK", text, (f"to allow: {entry(event.refused)}",))
    return Line("NETWORK", f"{who} reached {_listed(event.reached)}; this run's agents may too")


def advice(state: RunState) -> tuple[str, ...]:
    """Say what to add to `windlass.toml`, where hosts were refused or only setup named them."""
    lines: list[str] = []
    if refused := state.hosts_refused:
        hosts = plural(len(refused), "host")
        lines.append(f"network: {hosts} refused; to allow: {entry(refused)}")
    if reached := state.hosts_reached:
        lines.append(f"network: setup reached {_listed(reached)}; to keep: {entry(reached)}")
    return tuple(lines)


def entry(hosts: Iterable[str]) -> str:
    """Write the setting that names these."""
    named = ", ".join(f'"{host}"' for host in hosts)
    return f"[sandbox] hosts = [{named}]"


def _listed(hosts: tuple[str, ...]) -> str:
    more = f" and {len(hosts) - _SOME} more" if len(hosts) > _SOME else ""
    return ", ".join(hosts[:_SOME]) + more
