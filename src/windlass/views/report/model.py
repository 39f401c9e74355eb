"""What a report says, before anybody asks how it looks. Values only."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct

from windlass.events.model import CheckResult, Usage
from windlass.events.review import CriterionEvidence
from windlass.plan import Plan
from windlass.ports import Change
from windlass.state import Attempt
from windlass.views.bills import Total
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
    """A time in which nobody ran the plan."""

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
    """From its first Player to its merge, its end, or now; without the times nobody ran it."""
    cost: Total
    merged: str | None = None
    changes: tuple[Change, ...] | None = None
    """What all of it comes to."""
    asks: str = ""
    """What it waits for, or why it was given up."""
    notes: tuple[str, ...] = ()

    @property
    def evidence(self) -> tuple[CriterionEvidence, ...]:
        """What the last Coach who answered has seen."""
        coachings = (c for r in reversed(self.rounds) for c in reversed(r.attempt.coachings))
        reviews = (c.review for c in coachings if c.review is not None)
        return next((review.evidence for review in reviews), ())


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
    """Seconds in which somebody ran it."""
    live: bool
    metrics: Metrics
    statuses: Mapping[str, int]
    """How many tasks have each status word."""
    max_cost: float
    cost: Total
    costs: Mapping[str, Mapping[str, Total]]
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
    def unattended(self) -> float:
        """Seconds in which nobody ran it."""
        return sum((gap.end - gap.start).total_seconds() for gap in self.gaps)
