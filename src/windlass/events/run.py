"""Facts about a run as a whole: its beginning, its money, its end."""

from windlass.events.fact import Fact
from windlass.events.values import CheckResult, Estimate, RunEnd, Usage
from windlass.plan import Plan
from windlass.settings import Level, Settings


class RunStarted(Fact, frozen=True, kw_only=True):
    """A run began: everything it was told, and the commit it works from."""

    run: str
    plan: Plan
    settings: Settings
    base: str
    base_branch: str | None
    sandbox: Level
    version: str
    metered: bool = False
    """Whether every request of an agent passes the meter; then its own account counts nothing."""
    estimates: tuple[Estimate, ...] = ()
    """How long tasks are thought to take, where past runs say."""


class RunResumed(Fact, frozen=True, kw_only=True):
    """Another process took the run over; whatever was under way is not any more."""

    settings: Settings
    sandbox: Level
    metered: bool = False
    base_moved_to: str | None = None


class PlanRevised(Fact, frozen=True, kw_only=True):
    """The plan's files were edited; the run goes on with the plan as it is now."""

    plan: Plan


class BaselineStarted(Fact, frozen=True, kw_only=True):
    """The project's own checks began on the base, before anything is spent."""

    commit: str
    checks: tuple[str, ...]


class BaselineFinished(Fact, frozen=True, kw_only=True):
    """What the project's checks say of the base itself."""

    commit: str
    results: tuple[CheckResult, ...]


class VerificationStarted(Fact, frozen=True, kw_only=True):
    """All is merged: every merged task's checks began once more on the tip."""

    commit: str
    tree: str
    checks: tuple[str, ...]


class VerificationFinished(Fact, frozen=True, kw_only=True):
    """What those checks say of the tip."""

    commit: str
    tree: str
    results: tuple[CheckResult, ...]


class SpendReserved(Fact, frozen=True, kw_only=True):
    """A request of an agent is about to be sent; until it is settled it counts at its worst."""

    id: str
    task: str
    role: str
    model: str
    usd: float


class SpendSettled(Fact, frozen=True, kw_only=True):
    """What that request really came to."""

    id: str
    task: str
    usage: Usage


class StopRequested(Fact, frozen=True, kw_only=True):
    """A person or a signal asked the run to stop."""

    by: str


class RunEnded(Fact, frozen=True, kw_only=True):
    """The run, or its present stretch, is over."""

    status: RunEnd
    reason: str = ""
