"""A run that a test records fact by fact, to test how it is shown."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.review import CriterionEvidence, Issue, Review, TestResults
from windlass.core.plan import Stage, Task
from windlass.core.settings import Settings
from windlass.core.state import RunState, apply
from windlass.ports import Activity
from windlass.views.activity import TaskViews, after_activity, after_event
from windlass.views.board import Row, Screen, board
from worlds import NOON, named, plan_of

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


class RecordedRun:
    """The state and the views of a run, after each recorded fact."""

    def __init__(self, *tasks: Task, stages: tuple[str, ...] = (), **settings: object) -> None:
        plan = replace(plan_of(*tasks), stages=tuple(Stage(name=name) for name in stages))
        self.at = NOON
        self.state: RunState | None = None
        self.views: TaskViews = {}
        self.history: list[tuple[e.Event, RunState]] = []
        self.record(
            e.RunStarted(
                at=self.at,
                run="7f3a21bc",
                plan=plan,
                settings=named(Settings(checks=("pytest -q",), **settings)),  # pyright: ignore[reportArgumentType]
                base="b" * 40,
                base_branch="main",
                sandbox="none",
                version="0",
            )
        )

    @property
    def now(self) -> RunState:
        assert self.state is not None
        return self.state

    def record(self, *events: e.Event, after: timedelta = timedelta()) -> "RecordedRun":
        self.at += after
        for event in events:
            stamped = replace(event, at=self.at)
            self.state = apply(self.state, stamped)
            self.views = after_event(self.views, stamped, self.state)
            self.history.append((stamped, self.state))
        return self

    @property
    def events(self) -> list[e.Event]:
        return [event for event, _ in self.history]

    def resume(self, after: timedelta = timedelta()) -> "RecordedRun":
        settings, sandbox = self.now.settings, self.now.sandbox
        return self.record(e.RunResumed(at=NOON, settings=settings, sandbox=sandbox), after=after)

    def add_activity(
        self, task: str, text: str, kind: str = "tool", **whose: object
    ) -> "RecordedRun":
        activity = Activity(task=task, kind=kind, text=text, **whose)  # pyright: ignore[reportArgumentType]
        self.views = after_activity(self.views, activity)
        return self

    def opened(self) -> "RecordedRun":
        return self.record(
            e.BaselineStarted(at=NOON, commit="b", checks=()),
            e.BaselineFinished(at=NOON, commit="b", results=()),
        )

    def play(self, task: str, n: int = 1, turn: int | None = None) -> "RecordedRun":
        return self.record(e.PlayerStarted(at=NOON, task=task, n=n, turn=turn or n, start="b" * 40))

    def left(
        self, task: str, n: int = 1, failure: e.Failure = e.Failure.INTERRUPTED, why: str = ""
    ) -> "RecordedRun":
        usage = e.Usage(known=False)
        return self.record(
            e.PlayerFailed(at=NOON, task=task, n=n, failure=failure, message=why, usage=usage),
            e.SnapshotStarted(at=NOON, task=task, n=n, kind="partial"),
            e.SnapshotTaken(
                at=NOON, task=task, n=n, kind="partial", commit="c", tree="c", changed=False
            ),
        )

    def limited(self, task: str, until: datetime, n: int = 1) -> "RecordedRun":
        limit = e.Failure.USAGE_LIMIT
        self.left(task, n, limit)
        return self.record(e.WaitStarted(at=NOON, task=task, until=until, failure=limit))

    def back(self, task: str, feedback: str = "The tests are red.") -> "RecordedRun":
        return self.record(e.TurnReturned(at=NOON, task=task, cause="checks", feedback=feedback))

    def finish(self, task: str, n: int = 1, usd: float = 0.0) -> "RecordedRun":
        usage = e.Usage(cost_usd=usd, input_tokens=1200)
        commit = f"{task}{n}"
        return self.record(
            e.PlayerFinished(at=NOON, task=task, n=n, summary="s", usage=usage),
            e.SnapshotStarted(at=NOON, task=task, n=n, kind="snapshot"),
            e.SnapshotTaken(
                at=NOON, task=task, n=n, kind="snapshot", commit=commit, tree=commit, changed=True
            ),
        )

    def check(self, task: str, *checks: str, n: int = 1) -> "RecordedRun":
        commit = f"{task}{n}"
        return self.record(
            e.ChecksStarted(at=NOON, task=task, commit=commit, tree=commit, checks=checks)
        )

    def checked(self, task: str, n: int = 1) -> "RecordedRun":
        commit = f"{task}{n}"
        result = e.CheckResult(command="pytest -q", outcome=e.Outcome.PASS)
        return self.check(task, "pytest -q", n=n).record(
            e.ChecksFinished(at=NOON, task=task, commit=commit, tree=commit, results=(result,))
        )

    def coach(self, task: str, n: int = 1) -> "RecordedRun":
        return self.record(e.CoachStarted(at=NOON, task=task, n=n, k=1, commit=f"{task}{n}"))

    def answer(self, task: str, *issues: Issue, n: int = 1) -> "RecordedRun":
        review = Review(
            decision="feedback" if issues else "approve",
            summary="",
            test_results=TestResults(passed=True),
            evidence=(CriterionEvidence(criterion=1, met=True, evidence="seen"),),
            issues=issues,
        )
        usage, commit = e.Usage(), f"{task}{n}"
        return self.record(
            e.CoachAnswered(at=NOON, task=task, n=n, k=1, commit=commit, review=review, usage=usage)
        )

    def approve(self, task: str) -> "RecordedRun":
        return self.play(task).approved(task)

    def approved(self, task: str, n: int = 1) -> "RecordedRun":
        self.finish(task, n).checked(task, n).coach(task, n).answer(task, n=n)
        return self.record(e.TaskApproved(at=NOON, task=task, commit=f"{task}{n}", checked=True))

    def merge(self, task: str, number: int, n: int = 1) -> "RecordedRun":
        commit = f"{task}{n}"
        return self.record(
            e.MergeStarted(at=NOON, task=task, candidate=number, commit=commit, onto=self.now.tip)
        )

    def merged(self, task: str, number: int, n: int = 1) -> "RecordedRun":
        made = f"m{number}"
        return self.merge(task, number, n).record(
            e.MergeBuilt(at=NOON, task=task, candidate=number, commit=made, tree=made),
            e.TipMoveStarted(at=NOON, tasks=(task,), commit=made, tip=self.now.tip),
            e.TaskMerged(at=NOON, task=task, candidate=number, commit=made, tip=made),
        )

    def rows(self, width: int = 80, height: int = 24, *, plain: bool = False) -> list[Row]:
        screen = Screen(columns=width, rows=height, ascii=plain)
        return board(self.now, self.views, self.at, screen)

    def shown(self, width: int = 80, height: int = 24, *, plain: bool = False) -> str:
        rows = self.rows(width, height, plain=plain)
        return "\n".join(row.text.rstrip() for row in rows) + "\n"


def tasks(count: int, **more: object) -> tuple[Task, ...]:
    return tuple(
        Task(id=f"T-{n:02d}", title=f"Part {n} of the whole", **more)  # pyright: ignore[reportArgumentType]
        for n in range(1, count + 1)
    )
