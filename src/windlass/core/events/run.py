"""Facts about a run as a whole: its beginning, its money, its end."""

from typing import Literal

from windlass.core.events.fact import Fact
from windlass.core.events.values import CheckResult, Configured, Estimate, RunEnd, Usage
from windlass.core.plan import Plan
from windlass.core.settings import Level, Settings


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
    coach_commands: bool = True
    """Whether a Coach may run commands: not where what it runs could speak for it."""
    estimates: tuple[Estimate, ...] = ()
    """How long tasks are thought to take, where past runs say."""
    only: tuple[str, ...] = ()
    """The tasks that a person wants, and what they need; all of the plan where it names none."""
    configured: tuple[Configured, ...] | None = None
    """What files and variables said then; None in journals of before 0.2."""
    passes_checkpoints: bool = False
    """Whether complex tasks start unasked for as long as this process runs: `--yes`."""


class RunResumed(Fact, frozen=True, kw_only=True):
    """Another process took the run over; whatever was under way is not any more."""

    settings: Settings
    sandbox: Level
    metered: bool = False
    coach_commands: bool = True
    base_moved_to: str | None = None
    only: tuple[str, ...] = ()
    """As where a run begins; what was begun before goes on."""
    configured: tuple[Configured, ...] | None = None
    passes_checkpoints: bool = False
    found: tuple[str, ...] = ()
    """The merged tasks whose commits were looked for in git, and whose merges the tip holds."""


class PlanRevised(Fact, frozen=True, kw_only=True):
    """The plan's files were edited; the run goes on with the plan as it is now."""

    plan: Plan


class RunRecovered(Fact, frozen=True, kw_only=True):
    """The journal was lost: the facts of this run up to here are what git alone shows of them."""

    candidates: int
    """The highest number that a merge was ever pinned under."""
    told: int = 0
    """The highest number that something no commit shows was ever pinned under."""
    notes: tuple[str, ...] = ()
    """What is not known any more, and what was assumed."""


class BaselineStarted(Fact, frozen=True, kw_only=True):
    """The project's own checks began on the base, before anything is spent."""

    commit: str
    checks: tuple[str, ...]


class BaselineFinished(Fact, frozen=True, kw_only=True):
    """What the project's checks say of the base itself."""

    commit: str
    results: tuple[CheckResult, ...]


class VerificationStarted(Fact, frozen=True, kw_only=True):
    """A look at the whole began: at the end of a stage, of the run, or before the base takes it."""

    commit: str
    tree: str
    checks: tuple[str, ...]
    """Every merged task's, but for what this tree has proven already."""
    stage: str | None = None
    """The stage that is done, whose commits and files are looked for as well."""


class VerificationFinished(Fact, frozen=True, kw_only=True):
    """What was seen."""

    commit: str
    tree: str
    results: tuple[CheckResult, ...]
    stage: str | None = None
    problems: tuple[str, ...] = ()
    """What is not as the stage should have left it."""


class StagePassed(Fact, frozen=True, kw_only=True):
    """The next stage may begin: this one verified, or somebody lets the run go on all the same."""

    stage: str
    by: str


class StageRetried(Fact, frozen=True, kw_only=True):
    """A stage is to be done once more, each of its tasks by itself."""

    stage: str
    by: str


class SpendReserved(Fact, frozen=True, kw_only=True):
    """A request of an agent is about to be sent; until it is settled it counts at its most."""

    id: str
    task: str
    role: str
    model: str
    usd: float
    """The most it can cost: the meter has lowered `max_tokens` where that was too much."""
    tokens: int = 0
    """The most tokens it can read and write; 0 in journals that do not say."""


class SpendStreamed(Fact, frozen=True, kw_only=True):
    """What a request in flight has come to so far; it counts only if the request is never settled.

    Recorded now and then while a long answer is streamed.
    """

    id: str
    task: str
    usage: Usage


class SpendSettled(Fact, frozen=True, kw_only=True):
    """What that request really came to."""

    id: str
    task: str
    usage: Usage
    broke_off: bool = False
    """Whether its answer was not seen to the end: the usage is what was streamed until then."""


class SpendRefused(Fact, frozen=True, kw_only=True):
    """A request was not sent: too little of the run's budget is left, and nothing is in flight."""

    task: str
    role: str
    model: str
    usd: float
    """The least it needs."""
    tokens: int = 0


class HostsAsked(Fact, frozen=True, kw_only=True):
    """What a box asked its proxy for that a person should know of."""

    role: str
    """Who worked in it: setup, player, coach or check."""
    task: str = ""
    reached: tuple[str, ...] = ()
    """Public hosts that setup of merged code reached; the run's agents may reach them too."""
    refused: tuple[str, ...] = ()


class StopRequested(Fact, frozen=True, kw_only=True):
    """A person or a signal asked the run to come to rest."""

    by: str
    how: Literal["stop", "pause", "pause_now", "abort"] = "stop"
    """A pause lets every turn that has begun come to its end; the others end agents at once."""


class RunEnded(Fact, frozen=True, kw_only=True):
    """The run, or its present stretch, is over."""

    status: RunEnd
    reason: str = ""
