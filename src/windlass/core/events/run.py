"""Facts about a run as a whole: start, spending, verification, end."""

from typing import Literal

from windlass.core.events.fact import Fact
from windlass.core.events.values import CheckResult, Configured, Estimate, RunEnd, Usage
from windlass.core.plan import Plan
from windlass.core.settings import Level, Settings


class RunStarted(Fact, frozen=True, kw_only=True):
    """A run began, with these settings, on this plan and base commit."""

    run: str
    plan: Plan
    settings: Settings
    base: str
    base_branch: str | None
    sandbox: Level
    version: str
    metered: bool = False
    """Whether all agent requests pass the meter; then the agent's own cost report is ignored."""
    coach_commands: bool = True
    """Whether a Coach may run commands; not where a command could write its answer."""
    estimates: tuple[Estimate, ...] = ()
    """How long tasks should take, from past runs."""
    only: tuple[str, ...] = ()
    """The tasks a person selected; their dependencies run too. Empty: the whole plan."""
    configured: tuple[Configured, ...] | None = None
    """The settings from files and variables; None in journals from before 0.2."""
    passes_checkpoints: bool = False
    """Whether complex tasks start without approval while this process runs (`--yes`)."""
    attended: bool = False
    """Whether a person can answer while this process runs; then it waits instead of ending."""


class RunResumed(Fact, frozen=True, kw_only=True):
    """Another process took over the run; no effect is under way any more."""

    settings: Settings
    sandbox: Level
    metered: bool = False
    coach_commands: bool = True
    base_moved_to: str | None = None
    only: tuple[str, ...] = ()
    """As in RunStarted; tasks that had started continue."""
    configured: tuple[Configured, ...] | None = None
    passes_checkpoints: bool = False
    attended: bool = False
    found: tuple[str, ...] = ()
    """The merged tasks whose merge commits were found in the tip."""


class PlanRevised(Fact, frozen=True, kw_only=True):
    """The plan's files were edited; the run continues with the new plan."""

    plan: Plan


class RunRecovered(Fact, frozen=True, kw_only=True):
    """The journal was lost; all earlier facts of this run were rebuilt from git."""

    candidates: int
    """The highest number that a merge was pinned under."""
    told: int = 0
    """The highest number that something other than a commit was pinned under."""
    notes: tuple[str, ...] = ()
    """What could not be recovered, and what was assumed."""


class BaselineStarted(Fact, frozen=True, kw_only=True):
    """The project's checks began on the base, before any money is spent."""

    commit: str
    checks: tuple[str, ...]


class BaselineFinished(Fact, frozen=True, kw_only=True):
    """The results of the project's checks on the base."""

    commit: str
    results: tuple[CheckResult, ...]


class VerificationStarted(Fact, frozen=True, kw_only=True):
    """Verification of the tip began: at the end of a stage, of the run, or before landing."""

    commit: str
    tree: str
    checks: tuple[str, ...]
    """The checks of all merged tasks, without those this tree has already passed."""
    stage: str | None = None
    """The finished stage, whose commits and files are verified too."""


class VerificationFinished(Fact, frozen=True, kw_only=True):
    """The result of that verification."""

    commit: str
    tree: str
    results: tuple[CheckResult, ...]
    stage: str | None = None
    problems: tuple[str, ...] = ()
    """What the stage should have left and did not."""


class StagePassed(Fact, frozen=True, kw_only=True):
    """The next stage may begin: this one verified, or a person let it pass."""

    stage: str
    by: str


class StageRetried(Fact, frozen=True, kw_only=True):
    """All tasks of a stage are to be redone."""

    stage: str
    by: str


class SpendReserved(Fact, frozen=True, kw_only=True):
    """An agent's request is about to be sent; it counts at its maximum until it is settled."""

    id: str
    task: str
    role: str
    model: str
    usd: float
    """The most it can cost; the meter lowers `max_tokens` to fit the budget."""
    tokens: int = 0
    """The most tokens it can read and write; 0 in older journals."""


class SpendStreamed(Fact, frozen=True, kw_only=True):
    """The usage of a request in flight so far; it counts only if the request is never settled.

    Recorded at intervals while a long answer is streamed.
    """

    id: str
    task: str
    usage: Usage


class SpendSettled(Fact, frozen=True, kw_only=True):
    """The actual usage of that request."""

    id: str
    task: str
    usage: Usage
    broke_off: bool = False
    """Whether the answer was cut off; the usage is what was streamed until then."""


class SpendRefused(Fact, frozen=True, kw_only=True):
    """A request was not sent: too little of the budget is left, and nothing is in flight."""

    task: str
    role: str
    model: str
    usd: float
    """The least that the request needs."""
    tokens: int = 0


class HostsAsked(Fact, frozen=True, kw_only=True):
    """Hosts that a sandbox asked its proxy for and that people should know about."""

    role: str
    """What ran in the sandbox: setup, player, coach or check."""
    task: str = ""
    reached: tuple[str, ...] = ()
    """Public hosts that the setup of merged code reached; the run's agents may reach them too."""
    refused: tuple[str, ...] = ()


class StopRequested(Fact, frozen=True, kw_only=True):
    """A person or a signal asked the run to stop."""

    by: str
    how: Literal["stop", "pause", "pause_now", "abort"] = "stop"
    """`pause` lets running turns finish; the others stop agents at once."""


class RunEnded(Fact, frozen=True, kw_only=True):
    """The run ended, finally or until it is resumed."""

    status: RunEnd
    reason: str = ""
