"""What a report says, whatever it looks like: values only."""

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
    """A time in which one thing went on."""

    kind: Kind
    start: datetime
    end: datetime
    what: str
    bad: bool = False
    """Whether it came to nothing: the agent failed, or a check did."""
    anchor: str = ""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end - self.start).total_seconds()


class Gap(Struct, frozen=True):
    """A time in which no process ran the plan."""

    start: datetime
    end: datetime


class Checked(Struct, frozen=True, kw_only=True):
    """What checks said once."""

    results: tuple[CheckResult, ...]
    merged: bool = False
    """Whether it was said of the merge, not of the task's own commit."""


class Round(Struct, frozen=True, kw_only=True):
    """One start of a Player and all that came of it."""

    anchor: str
    attempt: Attempt
    checks: tuple[Checked, ...] = ()
    usage: Usage = Usage()
    changes: tuple[Change, ...] | None = None
    """What it changed, where git still knows."""
    cause: str = ""
    """Why it was sent back, if it was."""
    fate: str
    """What came of it, in a few words."""
    calm: bool
    """Whether it went as it should, so far."""

    @property
    def title(self) -> str:
        """`Turn 2`, and what is special about it."""
        title = "First look" if self.attempt.is_tip else f"Turn {self.attempt.turn}"
        if self.anchor.rpartition("-")[2] == str(self.attempt.turn):
            return title
        return f"{title}, {'once more' if self.attempt.onto is None else 'settling a conflict'}"

    @property
    def own_checks(self) -> tuple[CheckResult, ...]:
        """What the checks said last of the task's own commit."""
        own = [checked.results for checked in self.checks if not checked.merged]
        return own[-1] if own else ()

    @property
    def files(self) -> tuple[Change, ...]:
        """What it changed; where git knows no more, the names that the journal has."""
        names = (Change(path=path, added=None, deleted=None) for path in self.attempt.files)
        return self.changes or tuple(names)

    @property
    def most(self) -> int:
        """The most lines that changed in one of them."""
        return max((sum(lines_of([file])) for file in self.files), default=0) or 1


class TaskReport(Struct, frozen=True, kw_only=True):
    """One task."""

    id: str
    title: str
    status: str
    stage: str = ""
    needs: str = ""
    """The abandoned task that it can never begin without."""
    criteria: tuple[str, ...]
    rounds: tuple[Round, ...] = ()
    turns: int = 0
    allowed: int
    bars: tuple[Bar, ...] = ()
    seconds: float = 0.0
    """From its first Player to its merge, its end, or now; without the times no process ran it."""
    cost: Cost
    merged: str | None = None
    changes: tuple[Change, ...] | None = None
    """What all of it comes to."""
    asks: str = ""
    """What it waits for, or why it was given up."""
    notes: tuple[str, ...] = ()

    @property
    def last_coaching(self) -> Coaching | None:
        """The last one with a verdict."""
        coachings = (c for r in reversed(self.rounds) for c in reversed(r.attempt.coachings))
        return next((c for c in coachings if c.review is not None), None)

    @property
    def evidence(self) -> tuple[CriterionEvidence, ...]:
        """What the last Coach that answered has seen."""
        last = self.last_coaching
        return last.review.evidence if last is not None and last.review is not None else ()

    def seconds_of(self, each: Round) -> float:
        """How long a Player or a person worked in a round.

        By its bars: an agent that died with its process did not work until the next one began.
        """
        own = (bar for bar in self.bars if bar.anchor == each.anchor)
        return sum(bar.seconds for bar in own if bar.kind in {"player", "person"})


class Report(Struct, frozen=True, kw_only=True):
    """A run, all of it."""

    plan: Plan
    run: str
    status: str
    reason: str = ""
    version: str
    seq: int
    """The journal position it was made from."""
    at: datetime
    """The moment it speaks of."""
    started_at: datetime
    elapsed: float
    """Seconds in which a process ran it."""
    live: bool
    metrics: Metrics
    statuses: Mapping[str, int]
    """How many tasks have each status word."""
    max_cost: float
    cost: Cost
    costs: Mapping[str, Mapping[str, Cost]]
    """By task, role and model; the dearest first."""
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
    """When the base or the tip was looked at."""
    looks: tuple[tuple[str, tuple[CheckResult, ...], tuple[str, ...]], ...] = ()
    """What was seen then: of what, what the checks said, and what else was amiss."""
    critical: tuple[str, ...]
    tasks: tuple[TaskReport, ...]

    @property
    def critical_seconds(self) -> float:
        """How long the tasks of the critical path took, one after the other."""
        chain = set(self.critical)
        return sum(task.seconds for task in self.tasks if task.id in chain)

    @property
    def unattended(self) -> float:
        """Seconds in which no process ran it."""
        return sum((gap.end - gap.start).total_seconds() for gap in self.gaps)


def lines_of(changes: Iterable[Change]) -> tuple[int, int]:
    """Lines added, and lines deleted."""
    each = [(change.added or 0, change.deleted or 0) for change in changes]
    return sum(added for added, _ in each), sum(deleted for _, deleted in each)
