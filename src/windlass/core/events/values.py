"""The values of facts: check results, agent failures, usage, ends of a run."""

import enum

from msgspec import Struct

from windlass.errors import SetupFailed


class Outcome(enum.StrEnum):
    """The outcome of a check. Absent is neither pass nor fail: there was no result."""

    PASS = "pass"  # noqa: S105  no password
    FAIL = "fail"
    ABSENT = "absent"


class Absence(enum.StrEnum):
    """Why a check gave no result."""

    UNABLE_TO_START = "unable_to_start"
    TIMED_OUT = "timed_out"
    COLLECTED_NOTHING = "collected_nothing"


class Failure(enum.StrEnum):
    """Why an agent did not finish; classified by structured signals only, never by prose."""

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
    """How a run ended. All but the first and the last two can be resumed."""

    COMPLETED = "completed"
    FAILED = "failed"
    NEEDS_HUMAN = "needs_human"
    STOPPED = "stopped"
    PAUSED = "paused"
    LIMIT = "limit"
    ABORTED = "aborted"
    """A person gave up the run: it failed."""
    ABANDONED = "abandoned"
    """A new run of the plan replaced it."""


class Suite(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One summary of a test runner, as a check printed it."""

    name: str
    """The runner, and the package or file if it names one."""
    tests: int
    """How many tests ran, without skipped ones."""
    skipped: int = 0
    part: bool = False
    """Whether the runner prints many such summaries; some may have no tests."""


class SetupFailure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command of the project's setup that failed, so that nothing could run in a checkout."""

    command: str
    exit_code: int | None = None
    """None if it could not start, or did not end in time."""
    timed_out: bool = False
    seconds: float = 0.0
    output: str = ""
    """The part of its output that matters."""

    @property
    def sentence(self) -> str:
        """What happened, without the output."""
        if self.timed_out:
            how = f"did not end within {self.seconds:.0f} s"
        elif self.exit_code is None:
            how = "could not start"
        else:
            how = f"failed with exit code {self.exit_code}"
        return f"setup command `{self.command}` {how}"

    @classmethod
    def of(cls, error: SetupFailed) -> "SetupFailure":
        return cls(
            command=error.command,
            exit_code=error.exit_code,
            timed_out=error.timed_out,
            seconds=error.seconds,
            output=error.output,
        )


class CheckResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one command on one tree."""

    command: str
    outcome: Outcome
    absence: Absence | None = None
    exit_code: int | None = None
    seconds: float = 0.0
    output: str = ""
    """The part of its output that matters; all of it is in the run's logs."""
    setup: SetupFailure | None = None
    """The setup command because of which the check could not start."""
    tests: int | None = None
    """How many tests it reports as run, without skipped ones; None if it does not report any."""
    suites: tuple[Suite, ...] = ()
    """Each recognised summary in its output."""
    answers: tuple[Outcome, ...] = ()
    """All its results on this tree, without absent ones; kept in the state, in no fact."""

    @property
    def wavers(self) -> bool:
        """Whether it is flaky: it both passed and failed on one tree."""
        return len(set(self.answers)) > 1


class Estimate(Struct, frozen=True, kw_only=True):
    """How many seconds of work a task should take."""

    task: str
    seconds: float


class Amount(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Money and tokens."""

    usd: float = 0.0
    tokens: int = 0


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent used."""

    cost_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    known: bool = True
    """False if a part is an estimate: an agent was killed, or an answer was cut off."""

    def __add__(self, other: "Usage") -> "Usage":
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
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
        )


class Configured(Struct, frozen=True):
    """What a file or a variable said of a setting when a process of the run last saw it."""

    key: str
    value: str
    """As JSON."""
    source: str = ""
    """The file or the variable; empty in older journals, which recorded only the stronger value."""
