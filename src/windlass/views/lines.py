"""Lines for people, and their parts: tallies of checks, long texts, warnings, hosts.

Law: a long text is either whole, or it ends with the command that shows all of it.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.review import Issue
from windlass.core.excerpts import gist
from windlass.core.plan.names import escaped
from windlass.core.state import RunState, TaskState
from windlass.core.state.model import stands_in_the_way
from windlass.views.words import duration, one_line, plural

FEW = 6
"""Lines of a long text on a screen."""
_WIDE = 300
"""Characters of such a line."""
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
    """Whether no check was ever asked for: by settings, plan, stage or task, now or before."""
    asked = (*state.plan.stages, *state.plan.tasks)
    if state.settings.checks or state.plan.checks or any(each.checks for each in asked):
        return False
    return not (state.baseline or any(state.evidence.values()))


def unchecked(state: RunState) -> tuple[str, ...]:
    return (UNCHECKED,) if is_unchecked(state) else ()


def warnings(state: RunState) -> tuple[str, ...]:
    """What a person should know when a run starts, for a line's details."""
    return (*unchecked(state), *(() if state.coach_commands else (NO_COMMANDS,)))


def tally(results: tuple[e.CheckResult, ...]) -> str:
    """`3 pass 1 fail`."""
    counts = {o: sum(r.outcome is o for r in results) for o in e.Outcome}
    return " ".join(f"{count} {o}" for o, count in counts.items() if count)


class Room(Struct, frozen=True):
    """How many lines of a long text are shown, and the command that shows all of them."""

    command: str = ""
    most: int | None = None
    """None: all."""

    def prose(self, text: str) -> tuple[str, ...]:
        """A text of an agent or a person, from its beginning."""
        if self.most is None:
            return tuple(line.rstrip() for line in text.expandtabs(4).strip("\n").splitlines())
        telling = _telling(text)
        shown = telling[: self.most] if self.folds(text) else telling
        left = len(telling) - len(shown)
        more = f"… {plural(left, 'more line')}" if left else "… all of it"
        rest = (f"{more}: {self.command}",) if self.folds(text) else ()
        return (*(one_line(line, _WIDE) for line in shown), *rest)

    def folds(self, text: str) -> bool:
        """Whether it leaves out a part of the text."""
        telling = _telling(text)
        # One more line takes no more room than saying that there is one.
        few = self.most is None or len(telling) <= self.most + 1
        return not few or any(len(line) > _WIDE for line in telling)

    def output(self, text: str) -> tuple[str, ...]:
        """A program's output, from where it matters."""
        if self.most is None:
            return tuple(f"  {line}".rstrip() for line in text.expandtabs(4).splitlines())
        found = gist(text, self.most)
        lines = (f"  {line[:_WIDE].expandtabs(4)}" for line in found.lines)
        more = f"… {plural(found.left, 'more line')}: {self.command}"
        return (*lines, *((f"  {more}",) if found.left else ()))


def _telling(text: str) -> list[str]:
    """The lines with a letter or a digit."""
    return [line for line in text.splitlines() if any(map(str.isalnum, line))]


ALL = Room()


def room_for(state: RunState, task_id: str = "") -> Room:
    """A few lines of each text, with the command that shows what happened to the task."""
    about = f"{state.plan.id}:{task_id}" if task_id else state.plan.id
    return Room(f"windlass log {about}", FEW)


def not_passed(
    results: tuple[e.CheckResult, ...], room: Room = ALL, *, outputs: bool = True
) -> tuple[str, ...]:
    """The checks that did not pass: the command, its exit code, and what it printed."""

    def printed(text: str) -> tuple[str, ...]:
        return room.output(text) if outputs else ()

    red = [result for result in results if result.outcome is not e.Outcome.PASS]
    lines: list[str] = []
    for setup in dict.fromkeys(result.setup for result in red if result.setup is not None):
        lines += (one_line(setup.sentence, _WIDE), *printed(setup.output))
    for result in red:
        if result.setup is not None:
            lines.append(f"`{one_line(result.command, 60)}` did not run")
        else:
            headline = f"`{one_line(result.command, 60)}` {_how(result)}"
            lines += (headline, *printed(result.output))
    return tuple(lines)


def _how(result: e.CheckResult) -> str:
    """`fail · exit code 1`."""
    word = (result.absence or result.outcome).replace("_", " ")
    if result.absence is e.Absence.TIMED_OUT:
        return f"{word} after {duration(result.seconds)}"
    return f"{word} · exit code {result.exit_code}" if result.exit_code else word


def failure_lines(message: str, setup: e.SetupFailure | None, room: Room) -> tuple[str, ...]:
    """Why an agent failed; where that was the setup, with what it printed."""
    if setup is None:
        return room.prose(message)
    return (one_line(message, _WIDE), *room.output(setup.output))


def red_lines(state: RunState, room: Room = ALL) -> tuple[str, ...]:
    """The checks that the base or the tip did not pass, if the run ended because of them."""
    if state.ended not in {e.RunEnd.NEEDS_HUMAN, e.RunEnd.FAILED}:
        return ()
    if not state.merged:
        return not_passed(state.red_base if state.settings.policy.red_base != "go" else (), room)
    red = (each for each in state.verification or () if stands_in_the_way(each))
    return not_passed(tuple(red), room)


def must_fix(task: TaskState) -> tuple[Issue, ...]:
    """The must_fix issues of the last review of the last attempt."""
    reviews = [each.review for each in task.last.coachings if each.review is not None]
    return tuple(i for review in reviews[-1:] for i in review.issues if i.severity == "must_fix")


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
