"""Lines for people, and their parts: tallies of checks, quotations, warnings, hosts."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.review import Issue
from windlass.core.plan.names import escaped
from windlass.core.state import RunState, TaskState
from windlass.views.words import one_line, plural

WIDTH = 100
UNCHECKED = "unchecked: there are no checks, so only agents have judged the work"
NO_COMMANDS = "the Coach runs no commands: this sandbox cannot keep them from forging its verdict"
_HOSTS = 8
"""Hosts that a line names."""


class Line(Struct, frozen=True):
    """A word that says what happened, the task it happened to, and details."""

    word: str
    text: str
    details: tuple[str, ...] = ()
    took: float | None = None
    """Seconds, if something ended."""


def harmless_line(line: Line) -> Line:
    """The line with control characters escaped."""
    return replace(line, text=escaped(line.text), details=tuple(map(escaped, line.details)))


def is_unchecked(state: RunState) -> bool:
    own = any(task.checks for task in state.plan.tasks)
    return not (state.settings.checks or state.plan.checks or own)


def unchecked(state: RunState) -> tuple[str, ...]:
    return (UNCHECKED,) if is_unchecked(state) else ()


def warnings(state: RunState) -> tuple[str, ...]:
    """What a person should know when a run starts, for a line's details."""
    return (*unchecked(state), *(() if state.coach_commands else (NO_COMMANDS,)))


def tally(results: tuple[e.CheckResult, ...]) -> str:
    """`3 pass 1 fail`."""
    counts = {o: sum(r.outcome is o for r in results) for o in e.Outcome}
    return " ".join(f"{count} {o}" for o, count in counts.items() if count)


def not_passed(results: tuple[e.CheckResult, ...]) -> tuple[str, ...]:
    """A detail for each check that did not pass."""
    return tuple(
        f"`{one_line(r.command, 60)}` {(r.absence or r.outcome).replace('_', ' ')}"
        for r in results
        if r.outcome is not e.Outcome.PASS
    )


def must_fix(task: TaskState) -> tuple[Issue, ...]:
    """The must_fix issues of the last review of the last attempt."""
    reviews = [each.review for each in task.last.coachings if each.review is not None]
    return tuple(i for review in reviews[-1:] for i in review.issues if i.severity == "must_fix")


def quoted(text: str) -> tuple[str, ...]:
    """The first lines of a text, without lines that have no letter or digit."""
    lines = [one_line(line, WIDTH) for line in text.splitlines() if any(map(str.isalnum, line))]
    more = (f"… {plural(len(lines) - 4, 'more line')}",) if len(lines) > 5 else ()  # noqa: PLR2004
    return (*lines[: 4 if more else 5], *more)


def flaky(state: RunState, tree: str, results: tuple[e.CheckResult, ...]) -> tuple[str, ...]:
    """A detail for each check with different results on one tree; it never passes silently."""
    seen = state.evidence.get(tree, {})
    ones = (seen[r.command] for r in results if r.command in seen and seen[r.command].wavers)
    return tuple(
        f"flaky: `{one_line(r.command, 60)}` gave {', '.join(r.answers)} for the same files"
        for r in ones
    )


def network_advice(state: RunState) -> tuple[str, ...]:
    """What to add to `windlass.toml` if hosts were refused, or only setup reached them."""
    lines: list[str] = []
    if refused := state.hosts_refused:
        hosts = plural(len(refused), "host")
        lines.append(f"network: {hosts} refused; to allow: {hosts_setting(refused)}")
    if reached := state.hosts_reached:
        keep = hosts_setting(reached)
        lines.append(f"network: setup reached {listed_hosts(reached)}; to keep: {keep}")
    return tuple(lines)


def hosts_setting(hosts: Iterable[str]) -> str:
    named = ", ".join(f'"{host}"' for host in hosts)
    return f"[sandbox] hosts = [{named}]"


def listed_hosts(hosts: tuple[str, ...]) -> str:
    """Some by name, the rest as a count."""
    more = f" and {len(hosts) - _HOSTS} more" if len(hosts) > _HOSTS else ""
    return ", ".join(hosts[:_HOSTS]) + more
