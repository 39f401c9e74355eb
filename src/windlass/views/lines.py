"""Lines for people, and what is said in them: tallies of checks, quotations, warnings, hosts."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.review import Issue
from windlass.core.plan.names import told
from windlass.core.state import RunState, TaskState
from windlass.views.words import one_line, plural

WIDTH = 100
UNCHECKED = "unchecked: no checks anywhere, so nothing but the agents' word says the work is right"
NO_COMMANDS = "the Coach runs no commands here: this sandbox cannot keep them from speaking for it"
_HOSTS = 8
"""How many hosts a line names."""


class Line(Struct, frozen=True):
    """A word that says what happened, the task it happened to, and details."""

    word: str
    text: str
    details: tuple[str, ...] = ()
    took: float | None = None
    """How many seconds it took, where something came to its end."""


def harmless_line(line: Line) -> Line:
    """The line with nothing in it that a terminal would obey."""
    return replace(line, text=told(line.text), details=tuple(map(told, line.details)))


def is_unchecked(state: RunState) -> bool:
    """Whether there is no check anywhere."""
    own = any(task.checks for task in state.plan.tasks)
    return not (state.settings.checks or state.plan.checks or own)


def unchecked(state: RunState) -> tuple[str, ...]:
    """The warning where there is none, for a line's details."""
    return (UNCHECKED,) if is_unchecked(state) else ()


def warnings(state: RunState) -> tuple[str, ...]:
    """What a run begins with that a person should know of, for a line's details."""
    return (*unchecked(state), *(() if state.coach_commands else (NO_COMMANDS,)))


def tally(results: tuple[e.CheckResult, ...]) -> str:
    """`3 pass 1 fail`."""
    counts = {o: sum(r.outcome is o for r in results) for o in e.Outcome}
    return " ".join(f"{count} {o}" for o, count in counts.items() if count)


def not_passed(results: tuple[e.CheckResult, ...]) -> tuple[str, ...]:
    """A detail for each that did not."""
    return tuple(
        f"`{one_line(r.command, 60)}` {(r.absence or r.outcome).replace('_', ' ')}"
        for r in results
        if r.outcome is not e.Outcome.PASS
    )


def must_fix(task: TaskState) -> tuple[Issue, ...]:
    """What the last Coach that looked at the last attempt would not let pass."""
    reviews = [each.review for each in task.last.coachings if each.review is not None]
    return tuple(i for review in reviews[-1:] for i in review.issues if i.severity == "must_fix")


def quoted(text: str) -> tuple[str, ...]:
    """The first lines of a text, without those that are only a rule."""
    lines = [one_line(line, WIDTH) for line in text.splitlines() if any(map(str.isalnum, line))]
    more = (f"… {plural(len(lines) - 4, 'more line')}",) if len(lines) > 5 else ()  # noqa: PLR2004
    return (*lines[: 4 if more else 5], *more)


def flaky(state: RunState, tree: str, results: tuple[e.CheckResult, ...]) -> tuple[str, ...]:
    """A detail for each check that said two things of one tree; it is never silently green."""
    said = state.evidence.get(tree, {})
    ones = (said[r.command] for r in results if r.command in said and said[r.command].wavers)
    return tuple(
        f"flaky: `{one_line(r.command, 60)}` said {', '.join(r.answers)} of the same files"
        for r in ones
    )


def network_advice(state: RunState) -> tuple[str, ...]:
    """What to add to `windlass.toml`, where hosts were refused or only setup named them."""
    lines: list[str] = []
    if refused := state.hosts_refused:
        hosts = plural(len(refused), "host")
        lines.append(f"network: {hosts} refused; to allow: {hosts_setting(refused)}")
    if reached := state.hosts_reached:
        keep = hosts_setting(reached)
        lines.append(f"network: setup reached {listed_hosts(reached)}; to keep: {keep}")
    return tuple(lines)


def hosts_setting(hosts: Iterable[str]) -> str:
    """The setting that allows these hosts."""
    named = ", ".join(f'"{host}"' for host in hosts)
    return f"[sandbox] hosts = [{named}]"


def listed_hosts(hosts: tuple[str, ...]) -> str:
    """Some of them by name, the rest by number."""
    more = f" and {len(hosts) - _HOSTS} more" if len(hosts) > _HOSTS else ""
    return ", ".join(hosts[:_HOSTS]) + more
