"""The shape of a run's state: frozen values, nothing that another field already says."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct

from windlass.core.events.landing import Relation
from windlass.core.events.review import Review
from windlass.core.events.values import (
    Absence,
    Amount,
    CheckResult,
    Configured,
    Failure,
    Outcome,
    RunEnd,
    Usage,
)
from windlass.core.plan import Plan, Task
from windlass.core.settings import Level, Settings
from windlass.core.state.index import Index
from windlass.core.state.requests import Learnt, Request
from windlass.core.state.transitions import (
    COACH_FAILED,
    IN_TIP,
    PLAYER_FAILED,
    STATUS,
    Phase,
    RunPhase,
    Status,
)

__all__ = [
    "Acceptance",
    "Attempt",
    "Coaching",
    "Landing",
    "Pause",
    "Phase",
    "Reopening",
    "RunPhase",
    "RunState",
    "StageLook",
    "TaskState",
    "Wait",
    "stands_in_the_way",
]


def stands_in_the_way(result: CheckResult, *, needs_tests: bool = False) -> bool:
    """Whether a check keeps the run, or a task, from going on.

    A check that finds no test does so only for a task that must have tests, never on base or tip.
    """
    if result.absence is Absence.COLLECTED_NOTHING:
        return needs_tests
    return result.outcome is not Outcome.PASS


class Coaching(Struct, frozen=True, kw_only=True):
    """One start of a Coach, and what came of it."""

    k: int
    commit: str
    started_at: datetime
    finished_at: datetime | None = None
    review: Review | None = None
    usage: Usage = Usage()
    failure: Failure | None = None
    message: str = ""
    retry_at: datetime | None = None
    jitter: float = 0.0
    touched: tuple[str, ...] = ()
    unshown: tuple[str, ...] = ()


class Wait(Struct, frozen=True):
    """A time in which a task waited for a provider's usage limit to end."""

    since: datetime
    until: datetime | None = None
    """None while it waits."""


class Attempt(Struct, frozen=True, kw_only=True):
    """One start of a Player and all that came of it."""

    n: int
    turn: int
    start: str
    onto: str | None
    started_at: datetime
    by: str | None = None
    """The person who works in a Player's place."""
    finished_at: datetime | None = None
    summary: str = ""
    usage: Usage = Usage()
    failure: Failure | None = None
    message: str = ""
    retry_at: datetime | None = None
    jitter: float = 0.0
    kind: Literal["snapshot", "partial"] | None = None
    commit: str | None = None
    tree: str | None = None
    changed: bool = False
    files: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    refused: str = ""
    results: tuple[CheckResult, ...] = ()
    feedback: str | None = None
    question: str | None = None
    coachings: tuple[Coaching, ...] = ()

    @property
    def is_tip(self) -> bool:
        """Whether nobody played: the tip as it stands, on which a scenario is tried."""
        return self.turn == 0


class Acceptance(Struct, frozen=True, kw_only=True):
    """A person's word that what is merged will do for another text than it was merged for."""

    by: str
    at: datetime
    spec: Task


class TaskState(Struct, frozen=True, kw_only=True):
    """Where one task stands, and how it came there."""

    id: str
    phase: Phase = Phase.PENDING
    turn: int = 1
    """The turn that runs, or the one a next Player would begin."""
    rounds: int = 0
    """Rounds spent on conflicts and red merges; they use no turns."""
    attempts: tuple[Attempt, ...] = ()
    failures: Mapping[Failure, int] = {}
    """Failures in a row, by class; a finished Player ends the row."""
    check_runs: int = 0
    """How often checks ran on the tree that is judged now."""
    feedback: str | None = None
    """What the next Player is to answer."""
    merged_before: int = 0
    """How many tasks were merged when this one started."""
    wait_until: datetime | None = None
    limit_waits: tuple[Wait, ...] = ()
    """When it waited for a usage limit."""
    question: str | None = None
    released: bool = False
    """A person let it start, complex as it is."""
    spent: Usage = Usage()
    """What its agents have used up, by the meter or by their own account."""
    estimated_usd: float = 0.0
    """How much of that is an estimate."""
    helped_after: int = 0
    """How many attempts there were when a person last helped; older ones prove nothing stuck."""
    answers: tuple[str, ...] = ()
    """What people have said to this task, for every later Player to know."""
    candidate: int | None = None
    """The merge under way: its number, commit and tree."""
    candidate_commit: str | None = None
    candidate_tree: str | None = None
    candidate_onto: str | None = None
    """What that merge is made onto: the tip, or the merge before it in the batch."""
    clashes_with: str | None = None
    """A merge of the present batch that it cannot be merged onto unaided."""
    moving_as: Task | None = None
    """What it asked for when the tip was about to move to it; git may have moved it since."""
    conflict: str = ""
    merge_commit: str | None = None
    merge_before: str | None = None
    """The merge it had when it was to be done once more with its stage; it may stand."""
    merged_at: datetime | None = None
    abandoned_at: datetime | None = None
    merged_as: Task | None = None
    """What it asked for when it was last merged, even if it is to be done once more."""
    accepted: Acceptance | None = None
    """The last time that a person accepted its merge for a later text."""
    first_turn: int = 1
    """The turn its present allowance of turns began with: later ones where it was reopened."""
    begun_after: int = 0
    """How many attempts there were when it was begun anew, from the tip."""
    verdicts_before: int = 0
    """How many Coaches had looked at the last attempt when the task came to mean something else."""
    before_reset: "TaskState | None" = None
    """What it was when a person had it begin anew, for as long as nobody has."""

    @property
    def status(self) -> Status:
        """The word people see, but for `blocked`, which depends on others."""
        return STATUS[self.phase]

    @property
    def last(self) -> Attempt:
        """The newest attempt; there is one once a Player was started."""
        return self.attempts[-1]

    @property
    def failed(self) -> Attempt | Coaching | None:
        """The agent whose failure the task has yet to get over; none once the next may start."""
        if self.phase in PLAYER_FAILED:
            return self.last
        return self.last.coachings[-1] if self.phase in COACH_FAILED else None

    @property
    def head(self) -> str | None:
        """The newest commit that holds this task's work, partial work included."""
        present = self.attempts[self.begun_after :]
        for attempt in reversed(present):
            if attempt.commit is not None:
                return attempt.commit
        return present[0].start if present else None

    @property
    def may_be_in_tip(self) -> bool:
        """Whether its work is in the tip, or on its way there with nobody to say how far."""
        return self.phase in IN_TIP or self.moving_as is not None

    @property
    def settled_at(self) -> datetime | None:
        """When it was merged or given up, if it is."""
        if self.phase is Phase.ABANDONED:
            return self.abandoned_at
        return self.merged_at if self.phase in IN_TIP else None


class Phases(Mapping[str, Phase]):
    """Tasks seen by their phases alone."""

    def __init__(self, tasks: Mapping[str, TaskState]) -> None:
        self._tasks = tasks

    def __getitem__(self, id_: str) -> Phase:
        """The phase of that task."""
        return self._tasks[id_].phase

    def __iter__(self) -> Iterator[str]:
        """The ids."""
        return iter(self._tasks)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._tasks)


class StageLook(Struct, frozen=True, kw_only=True):
    """What was seen when a stage was done; it holds for what was merged of the stage then."""

    merged: tuple[str, ...]
    """The merge commits of its tasks."""
    problems: tuple[str, ...] = ()
    retried: bool = False
    """Whether it was done once more, because of them or at a person's word."""
    passed_by: str | None = None
    """Who let the run go on from here: its verification, a policy, or a person."""


class Landing(Struct, frozen=True, kw_only=True):
    """How far the base branch is on its way to what was merged."""

    then: RunEnd
    """How the run had ended when it was asked for; so it ends again."""
    reason: str = ""
    anyway: bool = False
    """Whether it is wanted whatever else a person would be asked about."""
    under_way: bool = False
    branch: str = ""
    base: str | None = None
    """Where the branch stood when it was last looked at."""
    relation: Relation | None = None
    rewound: bool = False
    """Whether the branch does not hold the run's base any more."""
    merge: str | None = None
    """The tip merged onto a branch that has moved, and its tree."""
    tree: str | None = None
    landed: str | None = None
    refused: str = ""

    @property
    def conflicted(self) -> bool:
        """Whether it was refused because branch and tip cannot be merged without a person."""
        tried = self.relation == "apart" and (self.anyway or not self.rewound)
        return tried and self.merge is None and bool(self.refused)


class Reopening(Struct, frozen=True, kw_only=True):
    """How a run had ended before something of it was to be done once more."""

    ended: RunEnd
    reason: str
    tasks: tuple[str, ...] = ()
    """What is to be done once more."""


class Pause(Struct, frozen=True, kw_only=True):
    """A time in which nobody hauled the run."""

    since: datetime
    until: datetime


class RunState(Struct, frozen=True, kw_only=True):
    """Everything that is true of a run."""

    run: str
    plan: Plan
    settings: Settings
    """In force until an option or a changed file says otherwise."""
    configured: tuple[Configured, ...] | None = None
    """What files and variables said when the last process began; None where it is not recorded."""
    passes_checkpoints: bool = False
    """Whether complex tasks start unasked in this stretch of the run."""
    only: tuple[str, ...] = ()
    """The tasks that a person wants in this stretch of the run; none: all of the plan."""
    sandbox: Level
    metered: bool = False
    coach_commands: bool = True
    base: str
    base_branch: str | None
    base_moved_to: str | None = None
    """Where the base branch stood when the run was last resumed, if not where it began."""
    started_at: datetime
    at: datetime
    """When the newest event happened: the only time the core knows."""
    tip: str
    tip_tree: str | None = None
    tip_trees: Mapping[str, str] = {}
    """The tree of every tip there was since the base."""
    tests_removed: bool = False
    """Whether something is merged whose task says that tests go away."""
    phase: RunPhase = RunPhase.NEW
    tasks: Mapping[str, TaskState]
    specs: Mapping[str, Task]
    """Tasks by id: the plan's, and those it had before."""
    estimates: Mapping[str, float] = {}
    urgency: Mapping[str, float] = {}
    """For each task the longest way from its start to the plan's end."""
    index: Index = Index()
    """Where to look among the tasks."""
    spent: Usage = Usage()
    """What all agents have used up, those of tasks included that the plan has no more."""
    estimated_usd: float = 0.0
    """How much of that is an estimate."""
    held: Mapping[str, Request] = {}
    """Requests in flight."""
    learnt: Learnt = Learnt()
    """What the answered requests came to."""
    short: Amount | None = None
    """The least that a request needed which too little of the budget was left for."""
    withdrawn: Mapping[str, TaskState] = {}
    """Tasks that were begun and that the plan has no more; what they cost stays spent."""
    queue: tuple[str, ...] = ()
    """Approved tasks in the order they were approved."""
    merged: tuple[str, ...] = ()
    merges: int = 0
    """How many merges the tip holds beyond the base, those of tasks included that were reopened."""
    candidates: int = 0
    evidence: Mapping[str, Mapping[str, CheckResult]] = {}
    """What each command last said of each tree."""
    baseline: tuple[CheckResult, ...] | None = None
    verification: tuple[CheckResult, ...] | None = None
    looks: Mapping[str, StageLook] = {}
    """What was seen at the end of each stage."""
    tip_runs: int = 0
    """How often checks ran on the tip as it stands, or on what the base would take."""
    landing: Landing | None = None
    stopping: str | None = None
    """Who asked the run to stop."""
    stop_as: Literal["stop", "pause", "pause_now", "abort"] = "stop"
    ended: RunEnd | None = None
    reason: str = ""
    ended_at: datetime | None = None
    reopening: Reopening | None = None
    """What it goes back to where a person takes back what they said to a run that had ended."""
    pauses: tuple[Pause, ...] = ()
    """When nobody hauled it; `state.stretches` counts without them."""
    resumes: int = 0
    notes: tuple[str, ...] = ()
    """What people should know at the end."""
    hosts_reached: tuple[str, ...] = ()
    """Public hosts that setup reached, beside those of the configuration."""
    hosts_refused: tuple[str, ...] = ()
    """Hosts that agents, setup or checks asked for and may not reach."""

    @property
    def given_up(self) -> bool:
        """Whether a person ended the run for good: nothing that is said to it can wake it."""
        return self.ended in {RunEnd.ABORTED, RunEnd.ABANDONED}

    @property
    def red_base(self) -> tuple[CheckResult, ...]:
        """Checks that the base itself does not pass; collecting nothing is said, not held."""
        return tuple(result for result in self.baseline or () if stands_in_the_way(result))

    @property
    def done(self) -> tuple[str, ...]:
        """The tasks that are merged, in the order they were last merged."""
        last = dict.fromkeys(reversed(self.merged))
        merged = (id_ for id_, task in self.tasks.items() if task.phase is Phase.MERGED)
        now = frozenset(merged)
        return tuple(id_ for id_ in reversed(last) if id_ in now)

    @property
    def in_tip(self) -> tuple[str, ...]:
        """The tasks whose work the tip holds, in the plan's order: stale ones too."""
        return tuple(id_ for id_, task in self.tasks.items() if task.phase in IN_TIP)

    @property
    def all_tasks(self) -> tuple[TaskState, ...]:
        """Every task that ever cost anything, those included that the plan has no more."""
        return (*self.tasks.values(), *self.withdrawn.values())

    def is_stale(self, task_id: str) -> bool:
        """Whether the task was merged for what it meant then, and means something else now."""
        return self.tasks[task_id].phase is Phase.STALE

    @property
    def stale(self) -> tuple[str, ...]:
        """The tasks that are stale, in the plan's order."""
        return tuple(task.id for task in self.live if task.phase is Phase.STALE)

    @property
    def live(self) -> tuple[TaskState, ...]:
        """The tasks that were begun, are not done and wait for no merge, in the plan's order."""
        tasks = self.tasks
        return tuple([tasks[id_] for id_ in self.index.live])

    @property
    def free(self) -> tuple[TaskState, ...]:
        """The tasks that wait for no other, and were not begun."""
        tasks = self.tasks
        return tuple([tasks[id_] for id_ in self.index.free])

    @property
    def spent_tokens(self) -> int:
        """What the run has read and written so far, over all restarts; what is cached counts."""
        return self.spent.tokens
