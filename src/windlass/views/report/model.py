"""The data of a report, without its presentation."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct

from windlass.core.events.model import CheckResult, Usage
from windlass.core.events.review import CriterionEvidence
from windlass.core.plan import Plan
from windlass.core.state import Attempt
from windlass.core.state.model import Coaching
from windlass.ports import Change
from windlass.views.cost import Cost
from windlass.views.lines import Line
from windlass.views.progress import Metrics

Kind = Literal["player", "checks", "coach", "merge", "queue", "wait", "person"]


class Bar(Struct, frozen=True, kw_only=True):
    """A period of one activity."""

    kind: Kind
    start: datetime
    end: datetime
    what: str
    bad: bool = False
    """Whether the agent or a check failed."""
    anchor: str = ""

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()


class Gap(Struct, frozen=True):
    """A period in which no process ran the plan."""

    start: datetime
    end: datetime


class Checked(Struct, frozen=True, kw_only=True):
    """The results of one run of the checks."""

    results: tuple[CheckResult, ...]
    merged: bool = False
    """Whether they ran on the merge, and not on the task's own commit."""


class Round(Struct, frozen=True, kw_only=True):
    """One start of a Player, and its results."""

    anchor: str
    attempt: Attempt
    checks: tuple[Checked, ...] = ()
    usage: Usage = Usage()
    changes: tuple[Change, ...] | None = None
    """The files it changed, if git still has its commits."""
    cause: str = ""
    """Why it was sent back, if it was."""
    fate: str
    """Its outcome, in a few words."""
    calm: bool
    """Whether it succeeded so far."""

    @property
    def title(self) -> str:
        """`Turn 2`, or `Turn 2, again`."""
        title = "First look" if self.attempt.is_tip else f"Turn {self.attempt.turn}"
        if self.anchor.rpartition("-")[2] == str(self.attempt.turn):
            return title
        return f"{title}, {'again' if self.attempt.onto is None else 'settling a conflict'}"

    @property
    def own_checks(self) -> tuple[CheckResult, ...]:
        """The last results of the checks on the task's own commit."""
        own = [checked.results for checked in self.checks if not checked.merged]
        return own[-1] if own else ()

    @property
    def files(self) -> tuple[Change, ...]:
        """The files it changed; without git's data, the names in the journal."""
        names = (Change(path=path, added=None, deleted=None) for path in self.attempt.files)
        return self.changes or tuple(names)

    @property
    def most(self) -> int:
        """The number of changed lines in the file with the most."""
        return max((sum(lines_of([file])) for file in self.files), default=0) or 1


class Diff(Struct, frozen=True, kw_only=True):
    """What a task changed, as a patch."""

    text: str
    """The first lines of git's patch."""
    left: str = ""
    """What is left out, in words; empty if this is all of it."""
    command: str
    """Shows all of it."""


class TaskReport(Struct, frozen=True, kw_only=True):
    """One task."""

    id: str
    title: str
    status: str
    stage: str = ""
    needs: str = ""
    """The abandoned task that it depends on, if any."""
    criteria: tuple[str, ...]
    rounds: tuple[Round, ...] = ()
    turns: int = 0
    allowed: int
    bars: tuple[Bar, ...] = ()
    seconds: float = 0.0
    """From its first Player to its merge, its end, or now, without the gaps."""
    cost: Cost
    merged: str | None = None
    changes: tuple[Change, ...] | None = None
    """The files that the whole task changed."""
    diff: Diff | None = None
    """None if it has changed nothing, or git has lost its commits."""
    asks: str = ""
    """What it waits for, or why it was abandoned."""
    notes: tuple[str, ...] = ()

    @property
    def last_coaching(self) -> Coaching | None:
        """The last review with a verdict."""
        coachings = (c for r in reversed(self.rounds) for c in reversed(r.attempt.coachings))
        return next((c for c in coachings if c.review is not None), None)

    @property
    def evidence(self) -> tuple[CriterionEvidence, ...]:
        """The evidence of the last Coach that answered."""
        last = self.last_coaching
        return last.review.evidence if last is not None and last.review is not None else ()

    def seconds_of(self, each: Round) -> float:
        """How long a Player or a person worked in a round, from its bars.

        An agent that died with its process did not work until the next one started.
        """
        own = (bar for bar in self.bars if bar.anchor == each.anchor)
        return sum(bar.seconds for bar in own if bar.kind in {"player", "person"})


class Report(Struct, frozen=True, kw_only=True):
    """A run."""

    plan: Plan
    run: str
    status: str
    reason: str = ""
    version: str
    seq: int
    """The journal position it was made from."""
    at: datetime
    """The time that the report is for."""
    started_at: datetime
    elapsed: float
    """Seconds in which a process ran the plan."""
    live: bool
    metrics: Metrics
    checks: str
    """The sum of all results in words; where only the base was checked, of those."""
    statuses: Mapping[str, int]
    """How many tasks have each status word."""
    max_cost: float
    cost: Cost
    costs: Mapping[str, Mapping[str, Cost]]
    """By task, role and model; the highest first."""
    waited: float
    """Seconds in which tasks waited for a limit or for the provider, the same time counted once."""
    asked: float
    """The same for people."""
    gaps: tuple[Gap, ...]
    troubles: tuple[Line, ...]
    branch: Line
    next: tuple[str, ...]
    notes: tuple[str, ...] = ()
    whole: tuple[Bar, ...]
    """When the base or the tip was verified."""
    looks: tuple[tuple[str, tuple[CheckResult, ...], tuple[str, ...]], ...] = ()
    """What was verified, the results of the checks, and other problems."""
    critical: tuple[str, ...]
    tasks: tuple[TaskReport, ...]

    @property
    def critical_seconds(self) -> float:
        """The total time of the tasks of the critical path."""
        chain = set(self.critical)
        return sum(task.seconds for task in self.tasks if task.id in chain)

    @property
    def unattended(self) -> float:
        """Seconds in which no process ran the plan."""
        return sum((gap.end - gap.start).total_seconds() for gap in self.gaps)


def lines_of(changes: Iterable[Change]) -> tuple[int, int]:
    """Lines added, and lines deleted."""
    each = [(change.added or 0, change.deleted or 0) for change in changes]
    return sum(added for added, _ in each), sum(deleted for _, deleted in each)
