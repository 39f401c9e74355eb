"""The values that facts are made of: what a check can say, why an agent fails, how a run ends."""

import enum

from msgspec import Struct


class Outcome(enum.StrEnum):
    """What a check said. Absent is not a pass and not a fail: it said nothing."""

    PASS = "pass"  # noqa: S105  no password
    FAIL = "fail"
    ABSENT = "absent"


class Absence(enum.StrEnum):
    """Why a check said nothing."""

    UNABLE_TO_START = "unable_to_start"
    TIMED_OUT = "timed_out"
    COLLECTED_NOTHING = "collected_nothing"


class Failure(enum.StrEnum):
    """Why an agent did not finish; told from structured signals only, never from prose."""

    ENVIRONMENT = "environment"
    TRANSIENT = "transient"
    USAGE_LIMIT = "usage_limit"
    AUTH = "auth"
    BUDGET = "budget"
    STALLED = "stalled"
    CRASHED = "crashed"
    INTERRUPTED = "interrupted"
    INCONCLUSIVE = "inconclusive"


class RunEnd(enum.StrEnum):
    """How a run, or its present stretch, ended. All but the first and last two can be resumed."""

    COMPLETED = "completed"
    FAILED = "failed"
    NEEDS_HUMAN = "needs_human"
    STOPPED = "stopped"
    PAUSED = "paused"
    LIMIT = "limit"
    ABORTED = "aborted"
    """A person gave the run up: it failed."""
    ABANDONED = "abandoned"
    """A new run of the plan took its place."""


class Suite(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One summary of a test runner, as a check printed it."""

    name: str
    """The runner, and the package or file where it names one."""
    tests: int
    """How many tests ran, skipped ones not among them."""
    skipped: int = 0
    part: bool = False
    """Whether it is one of many that a runner prints, of which some have no test by nature."""


class CheckResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one command said about one tree."""

    command: str
    outcome: Outcome
    absence: Absence | None = None
    exit_code: int | None = None
    seconds: float = 0.0
    output: str = ""
    """The end of what it printed; the whole is in the run's logs."""
    tests: int | None = None
    """How many tests it says it ran, skipped ones not among them; None where it does not say."""
    suites: tuple[Suite, ...] = ()
    """Each summary by itself, where it printed any that are known."""
    answers: tuple[Outcome, ...] = ()
    """All it ever said of this tree, absences left out; the state's to know, in no fact."""

    @property
    def wavers(self) -> bool:
        """Whether it said two things of one tree: it is flaky, and what it says proves little."""
        return len(set(self.answers)) > 1


class Estimate(Struct, frozen=True, kw_only=True):
    """How many seconds of work a task is thought to need."""

    task: str
    seconds: float


class Amount(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Money and tokens."""

    usd: float = 0.0
    tokens: int = 0


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent used up."""

    cost_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    known: bool = True
    """False where some of it is an estimate: an agent was killed, an answer broke off."""

    def __add__(self, other: "Usage") -> "Usage":
        """Both together."""
        return Usage(
            cost_usd=self.cost_usd + other.cost_usd,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            known=self.known and other.known,
        )

    @property
    def tokens(self) -> int:
        """All of them."""
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
        )


class Configured(Struct, frozen=True):
    """A setting that a file or a variable had set when a process began."""

    key: str
    value: str
    """As JSON."""
