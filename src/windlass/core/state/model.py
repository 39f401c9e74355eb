"""The state of a run as frozen values; no field repeats another."""

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
    SetupFailure,
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
    """Whether a result keeps the run or a task from continuing.

    A check that finds no test does so only for a task that must have tests, never on base or tip.
    """
    if result.absence is Absence.COLLECTED_NOTHING:
        return needs_tests
    return result.outcome is not Outcome.PASS


class Coaching(Struct, frozen=True, kw_only=True):
    """One start of a Coach, and its result."""

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
    setup: SetupFailure | None = None
    unreached: bool = False
    lasting: bool = False
    touched: tuple[str, ...] = ()
    unshown: tuple[str, ...] = ()


class Wait(Struct, frozen=True):
    """A time in which a task waited for a provider's usage limit."""

    since: datetime
    until: datetime | None = None
    """None while it waits."""


class Attempt(Struct, frozen=True, kw_only=True):
    """One start of a Player, and its result."""

    n: int
    turn: int
    start: str
    onto: str | None
    started_at: datetime
    by: str | None = None
    """The person who works instead of a Player."""
    finished_at: datetime | None = None
    summary: str = ""
    usage: Usage = Usage()
    failure: Failure | None = None
    message: str = ""
    retry_at: datetime | None = None
    jitter: float = 0.0
    setup: SetupFailure | None = None
    """The setup command that failed in its workspace."""
    unreached: bool = False
    lasting: bool = False
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
        """Whether this is the tip itself, on which a scenario is tried without a Player."""
        return self.turn == 0


class Acceptance(Struct, frozen=True, kw_only=True):
    """A person's decision that a merge is good for a text it was not made for."""

    by: str
    at: datetime
    spec: Task


class Merge(Struct, frozen=True, kw_only=True):
    """The merge that a task had before it was reopened."""

    commit: str | None
    """None if the task was adopted, and the other tool named no commit."""
    at: datetime | None
    begun_after: int
    attempts: int
    """How many attempts had led to it; later ones are the redo's."""


class TaskState(Struct, frozen=True, kw_only=True):
    """The state of one task, with its history."""

    id: str
    phase: Phase = Phase.PENDING
    turn: int = 1
    """The running turn, or the one that the next Player would begin."""
    rounds: int = 0
    """Rounds spent on conflicts and red merges; they use no turns."""
    attempts: tuple[Attempt, ...] = ()
    failures: Mapping[Failure, int] = {}
    """Failures in a row, by class; a finished Player resets them."""
    check_runs: int = 0
    """How often checks ran on the current tree."""
    feedback: str | None = None
    """The feedback for the next Player."""
    merged_before: int = 0
    """How many tasks were merged when this one started."""
    wait_until: datetime | None = None
    limit_waits: tuple[Wait, ...] = ()
    question: str | None = None
    released: bool = False
    """Whether a person let it start although it is complex."""
    spent: Usage = Usage()
    """What its agents used, by the meter or by their own report."""
    estimated_usd: float = 0.0
    """How much of that is an estimate."""
    helped_after: int = 0
    """How many attempts there were when a person last helped; older ones do not count as stuck."""
    answers: tuple[str, ...] = ()
    """People's answers, for every later Player."""
    candidate: int | None = None
    """The number of the merge under way; its commit and tree follow."""
    candidate_commit: str | None = None
    candidate_tree: str | None = None
    candidate_onto: str | None = None
    """The commit it is merged onto: the tip, or the merge before it in the batch."""
    clashes_with: str | None = None
    """A merge of the current batch that it conflicts with."""
    moving_as: Task | None = None
    """Its text when the tip was about to move to it; git may have moved the tip since."""
    conflict: str = ""
    merge_commit: str | None = None
    merge_before: str | None = None
    """The merge it had when it was reopened; that merge may stand."""
    merged_at: datetime | None = None
    abandoned_at: datetime | None = None
    merged_as: Task | None = None
    """Its text when it was last merged, even if it was reopened since."""
    accepted: Acceptance | None = None
    """The last acceptance of its merge for a later text."""
    first_turn: int = 1
    """The first turn of its current allowance; reopening the task starts a new allowance."""
    begun_after: int = 0
    """How many attempts there were when it last started over from the tip."""
    undone: int = 0
    """How many of its newest attempts belong to a redo that a person took back."""
    verdicts_before: int = 0
    """How many reviews the last attempt had when the task's text changed."""
    before_reset: "TaskState | None" = None
    """The task before a person reset it, until its next start."""
    redoes: "Merge | None" = None
    """The merge that a redo is to replace; the redo can be undone until it is merged."""

    @property
    def status(self) -> Status:
        """The status word, without `blocked`, which depends on other tasks."""
        return STATUS[self.phase]

    @property
    def counted(self) -> tuple[Attempt, ...]:
        """Its attempts, without those of a redo that a person took back."""
        return self.attempts[: len(self.attempts) - self.undone]

    @property
    def last(self) -> Attempt:
        """The newest attempt that counts; there is one once a Player has started."""
        return (self.counted or self.attempts)[-1]

    @property
    def failed(self) -> Attempt | Coaching | None:
        """The failed agent, until the next one may start."""
        if self.phase in PLAYER_FAILED:
            return self.last
        return self.last.coachings[-1] if self.phase in COACH_FAILED else None

    @property
    def head(self) -> str | None:
        """The newest commit with this task's work, including partial work."""
        present = self.counted[self.begun_after :]
        for attempt in reversed(present):
            if attempt.commit is not None:
                return attempt.commit
        return present[0].start if present else None

    @property
    def may_be_in_tip(self) -> bool:
        """Whether its work is in the tip, or may be because the tip was about to move."""
        return self.phase in IN_TIP or self.moving_as is not None

    @property
    def settled_at(self) -> datetime | None:
        """When it was merged or abandoned."""
        if self.phase is Phase.ABANDONED:
            return self.abandoned_at
        return self.merged_at if self.phase in IN_TIP else None


class Phases(Mapping[str, Phase]):
    """A view of tasks as their phases."""

    def __init__(self, tasks: Mapping[str, TaskState]) -> None:
        self._tasks = tasks

    def __getitem__(self, id_: str) -> Phase:
        return self._tasks[id_].phase

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)


class StageLook(Struct, frozen=True, kw_only=True):
    """The verification of a finished stage; it holds until another of its tasks is merged."""

    merged: tuple[str, ...]
    """The merge commits of its tasks."""
    problems: tuple[str, ...] = ()
    retried: bool = False
    """Whether the stage was redone, because of the problems or at a person's request."""
    passed_by: str | None = None
    """What passed the stage: its verification, a policy, or a person."""


class Landing(Struct, frozen=True, kw_only=True):
    """The progress of a landing."""

    then: RunEnd
    """How the run had ended before; it ends the same way again."""
    reason: str = ""
    anyway: bool = False
    """Whether to land without asking anything else."""
    squash: bool = False
    """Whether the branch gets one commit for each task."""
    signed: bool = False
    """Whether a signed merge is made even if the branch could just move forward."""
    under_way: bool = False
    branch: str = ""
    base: str | None = None
    """The branch's commit when it was last read."""
    relation: Relation | None = None
    rewound: bool = False
    """Whether the branch no longer holds the run's base."""
    merge: str | None = None
    """The tip merged or squashed onto the branch; its tree follows."""
    tree: str | None = None
    landed: str | None = None
    refused: str = ""

    @property
    def conflicted(self) -> bool:
        """Whether it was refused because of a merge conflict between branch and tip."""
        tried = self.relation == "apart" and (self.anyway or not self.rewound)
        return tried and self.merge is None and bool(self.refused)


class Reopening(Struct, frozen=True, kw_only=True):
    """How a run had ended before some of its tasks were reopened."""

    ended: RunEnd
    reason: str
    tasks: tuple[str, ...] = ()
    """The reopened tasks."""


class Pause(Struct, frozen=True, kw_only=True):
    """A time in which no process worked on the run."""

    since: datetime
    until: datetime


class RunState(Struct, frozen=True, kw_only=True):
    """The whole state of a run."""

    run: str
    plan: Plan
    settings: Settings
    """In force until an option or a changed file overrides them."""
    configured: tuple[Configured, ...] | None = None
    """Settings from files and variables when the last process began; None if not recorded."""
    passes_checkpoints: bool = False
    """Whether complex tasks start without approval in this stretch of the run."""
    attended: bool = False
    """Whether a person can answer in this stretch of the run."""
    awaiting: str = ""
    """Why nothing can continue without that person; empty while something can."""
    only: tuple[str, ...] = ()
    """The tasks selected for this stretch of the run; empty: the whole plan."""
    sandbox: Level
    metered: bool = False
    coach_commands: bool = True
    base: str
    base_branch: str | None
    base_moved_to: str | None = None
    """The base branch's commit at the last resume, if it had moved."""
    started_at: datetime
    at: datetime
    """When the newest event happened; the only clock of the core."""
    tip: str
    tip_tree: str | None = None
    tip_trees: Mapping[str, str] = {}
    """The tree of every tip since the base."""
    tests_removed: bool = False
    """Whether a merged task removed tests on purpose."""
    phase: RunPhase = RunPhase.NEW
    tasks: Mapping[str, TaskState]
    specs: Mapping[str, Task]
    """Tasks by id: the plan's, and those of earlier versions of the plan."""
    estimates: Mapping[str, float] = {}
    urgency: Mapping[str, float] = {}
    """For each task, the longest path from its start to the end of the plan."""
    index: Index = Index()
    spent: Usage = Usage()
    """What all agents used, including those of tasks no longer in the plan."""
    estimated_usd: float = 0.0
    """How much of that is an estimate."""
    held: Mapping[str, Request] = {}
    """Requests in flight."""
    learnt: Learnt = Learnt()
    """The usage of answered requests."""
    short: Amount | None = None
    """The minimum of a request that the rest of the budget could not pay."""
    withdrawn: Mapping[str, TaskState] = {}
    """Started tasks that are no longer in the plan; their cost stays spent."""
    queue: tuple[str, ...] = ()
    """Approved tasks, in the order of approval."""
    merged: tuple[str, ...] = ()
    merges: int = 0
    """How many merges the tip holds beyond the base, including those of reopened tasks."""
    candidates: int = 0
    evidence: Mapping[str, Mapping[str, CheckResult]] = {}
    """The last result of each command on each tree."""
    baseline: tuple[CheckResult, ...] | None = None
    base_accepted: bool = False
    """Whether a person let the run continue on a base that does not pass."""
    verification: tuple[CheckResult, ...] | None = None
    looks: Mapping[str, StageLook] = {}
    """The verification of each finished stage."""
    tip_runs: int = 0
    """How often checks ran on the current tip, or on the merge to land."""
    landing: Landing | None = None
    stopping: str | None = None
    """Who asked the run to stop."""
    stop_as: Literal["stop", "pause", "pause_now", "abort"] = "stop"
    ended: RunEnd | None = None
    reason: str = ""
    ended_at: datetime | None = None
    reopening: Reopening | None = None
    """The end to restore if a person undoes a reset in a run that had ended."""
    pauses: tuple[Pause, ...] = ()
    """When no process worked on it; `state.stretches` leaves them out."""
    resumes: int = 0
    notes: tuple[str, ...] = ()
    """Notes for people at the end."""
    recovered: bool = False
    """Whether a part was read from pins in git, which do not show what it cost."""
    hosts_reached: tuple[str, ...] = ()
    """Public hosts that setup reached, next to the configured ones."""
    hosts_refused: tuple[str, ...] = ()
    """Hosts that agents, setup or checks asked for and were refused."""

    @property
    def given_up(self) -> bool:
        """Whether the run has ended for good and cannot be resumed."""
        return self.ended in {RunEnd.ABORTED, RunEnd.ABANDONED}

    @property
    def red_base(self) -> tuple[CheckResult, ...]:
        """Checks that the base itself does not pass; finding no tests does not count."""
        return tuple(result for result in self.baseline or () if stands_in_the_way(result))

    @property
    def base_is_refused(self) -> bool:
        """Whether the base is red, and neither the policy nor a person accepts that."""
        accepted = self.base_accepted or self.settings.policy.red_base == "go"
        return bool(self.red_base) and not accepted

    @property
    def done(self) -> tuple[str, ...]:
        """The merged tasks, in the order of their last merge."""
        last = dict.fromkeys(reversed(self.merged))
        merged = (id_ for id_, task in self.tasks.items() if task.phase is Phase.MERGED)
        now = frozenset(merged)
        return tuple(id_ for id_ in reversed(last) if id_ in now)

    @property
    def in_tip(self) -> tuple[str, ...]:
        """The tasks whose work the tip holds, stale ones included, in the plan's order."""
        return tuple(id_ for id_, task in self.tasks.items() if task.phase in IN_TIP)

    @property
    def all_tasks(self) -> tuple[TaskState, ...]:
        """All tasks, including those no longer in the plan."""
        return (*self.tasks.values(), *self.withdrawn.values())

    def is_stale(self, task_id: str) -> bool:
        return self.tasks[task_id].phase is Phase.STALE

    @property
    def stale(self) -> tuple[str, ...]:
        """The stale tasks, in the plan's order."""
        return tuple(task.id for task in self.live if task.phase is Phase.STALE)

    @property
    def live(self) -> tuple[TaskState, ...]:
        """Started tasks that are not done and not waiting for a merge, in the plan's order."""
        tasks = self.tasks
        return tuple([tasks[id_] for id_ in self.index.live])

    @property
    def free(self) -> tuple[TaskState, ...]:
        """Tasks that have not started and wait for no other."""
        tasks = self.tasks
        return tuple([tasks[id_] for id_ in self.index.free])

    @property
    def spent_tokens(self) -> int:
        """Tokens read and written over all restarts, including cached ones."""
        return self.spent.tokens
