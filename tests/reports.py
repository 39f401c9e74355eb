"""A run in memory with every kind of event, to test reports."""

from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.review import CriterionEvidence, Issue, Review, TestResults
from windlass.core.plan import Task
from windlass.core.settings import PolicySettings, Settings
from windlass.ports import Change, Report
from windlass.testing.memory import Crashed, MemoryChecks, MemoryInbox, VirtualClock
from windlass.views.report import compared, report_of
from windlass.views.report import model as m
from worlds import World, plan_of, writes

HOSTILE = (
    "</script></style></title><script>alert(1)</script><img src=x onerror=alert(1)>"
    '<a href="javascript:alert(1)">x</a>\' " & \x1b[31mred\x1b]0;owned\x07\x1b[2J\x9b2J'
    "\u202eeseht\u202c\u200b\u2066 \x00\r\n```\n# Heading\n| a | b |\n@somebody closes #12 GH-3 "
    "https://example.com/o/r/issues/3 <!-- --> ![x](http://x/) [y](z) `code` \ud800"
)
"""Text that an agent could write to break a page, a terminal or a forge."""

TASKS = (
    Task(
        id="T-01", title="Hash passwords with argon2", acceptance_criteria=("`verify()` is slow",)
    ),
    Task(id="T-02", title="Store sessions in Redis", depends_on=("T-01",)),
    Task(
        id="T-03",
        title="Rate-limit login",
        depends_on=("T-01",),
        acceptance_criteria=("429 after five tries", "the window resets", "a test proves it"),
    ),
    Task(id="T-04", title="Refresh tokens", depends_on=("T-02",)),
    Task(id="T-05", title="Export the audit log", depends_on=("T-02", "T-03")),
    Task(id="T-06", title="Audit dashboard", depends_on=("T-05",)),
    Task(id="T-07", title="Password reset by mail", depends_on=("T-02", "T-03")),
    Task(id="T-08", title="Migrate old hashes", complexity=9),
)


class SlowClock(VirtualClock):
    """Time that passes by seven seconds at each call."""

    def now(self) -> datetime:
        self.time += timedelta(seconds=7)
        return self.time


class PrintingChecks(MemoryChecks):
    """Checks with output."""

    def _result(self, command: str, commit: str) -> e.CheckResult:
        result = super()._result(command, commit)
        failed = result.outcome is e.Outcome.FAIL
        return replace(result, output=f"E  {command}: RED\n" if failed else "ok\n", tests=118)


def review(task: str, turn: int, _files: object) -> Review | Report | None:
    if (task, turn) == ("T-03", 1):
        return Review(
            decision="feedback",
            summary="Counts, but the window never resets.",
            test_results=TestResults(passed=False, failures=("test_window",)),
            evidence=(
                CriterionEvidence(criterion=1, met=True, evidence="tests/test_limit.py:12"),
                CriterionEvidence(criterion=2, met=False, evidence="src/limit.py:41"),
            ),
            issues=(
                Issue(
                    severity="must_fix",
                    category="logic",
                    description="window never resets",
                    file="src/limit.py:41",
                    suggestion="take the time of the first try",
                ),
                Issue(severity="nice_to_have", category="style", description="long line"),
            ),
            feedback="Mend the window.",
        )
    if (task, turn) == ("T-04", 1) and not review.seen:  # type: ignore[attr-defined]
        review.seen.append(task)  # type: ignore[attr-defined]
        return Report(failure=e.Failure.INCONCLUSIVE, message="it said nothing by schema")
    if task == "T-07":
        return Review(
            decision="feedback",
            summary="Which address does it come from?",
            test_results=TestResults(passed=None),
            evidence=(),
            question="Which sender address should the mails have?",
        )
    return None


review.seen = []  # type: ignore[attr-defined]


def story() -> World:
    """A run with turns sent back by checks and Coach, waits, a crash, an abandoned task, a blocked
    one, and two that wait for a person."""
    review.seen.clear()  # type: ignore[attr-defined]
    limited: list[int] = []
    crashed: list[int] = []

    def sessions(n: int, turn: int, files: dict[str, str]) -> None:
        if turn == 2 and not crashed:
            crashed.append(n)
            raise Crashed("in the middle of a Player")
        files["src/sessions.py"] = "RED" if turn < 2 else "x = 1\n" * 20

    def limit(_n: int, turn: int, files: dict[str, str]) -> None:
        files["src/limit.py"] = f"window = {turn}\n"

    def tokens(n: int, _turn: int, files: dict[str, str]) -> Report | None:
        files["src/token.py"] = f"y = {n}\n"
        if not limited:
            limited.append(n)
            until = world.clock.time + timedelta(minutes=31)
            return Report(failure=e.Failure.USAGE_LIMIT, message="limit reached", retry_at=until)
        return None

    world = World(
        plan_of(*TASKS, dialect="feature", checks=("pytest -q",)),
        {
            **{task.id: writes(f"src/{task.id}.py", "x\n") for task in TASKS},
            "T-02": sessions,
            "T-03": limit,
            "T-04": tokens,
            "T-05": writes("src/audit.py", "RED"),
        },
        rule=lambda _, files: "RED" not in files.values(),
        settings=Settings(
            checks=("ruff check",), agents=2, max_turns=2, policy=PolicySettings(absent="skip")
        ),
        coach=review,
        inbox=MemoryInbox(),
    )
    world.clock = SlowClock()
    world.checks = PrintingChecks(world.repository, world.checks.rule)
    world.go()
    world.clock.time += timedelta(hours=9)
    world.go()
    return world


def report_for(world: World, **more: object) -> m.Report:
    """The report of a world's run, with changes for each pair of commits."""
    entries = list(world.journal.read())
    changes = {
        pair: (
            Change(path="src/limit.py", added=12, deleted=3),
            Change(path="logo.png", added=None, deleted=None),
        )
        for pair in compared(world.state)
    }
    options = {
        "plan": "p",
        "workspaces": ".windlass/plans/p/workspaces",
        "changes": changes,
        **more,
    }
    report = report_of(entries, **options)  # pyright: ignore[reportArgumentType]
    assert report is not None
    return report


def hostile(entry: e.Entry, text: str = HOSTILE) -> e.Entry:
    """The same fact, with every text in it replaced."""
    texts = {"summary", "message", "feedback", "question", "title", "description", "suggestion",
             "evidence", "output", "reason", "file", "text", "by", "command", "category",
             "model", "version"}  # fmt: skip

    def walk(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {k: walk(v, k) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [walk(each, key) for each in value]
        return text if isinstance(value, str) and key in texts else value

    raw = msgspec.to_builtins(entry.event)
    fixed = walk(raw)
    assert isinstance(fixed, dict)
    return e.Entry(seq=entry.seq, event=msgspec.convert(fixed, e.Event))
