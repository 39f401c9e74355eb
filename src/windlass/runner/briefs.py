"""What agents are told: who they are, from files a project may replace, and what it is about.

Law: what somebody else wrote or named (the plan, a diff, a file, feedback, what a check printed) is
quoted between marks that are made from the text itself, so that nothing inside can end its own
quotation and pose as instruction. What is too long loses its middle, and says so.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from windlass.events.model import CheckResult, CoachStarted, PlayerStarted
from windlass.plan import Task
from windlass.plan.judges import judges
from windlass.plan.names import told
from windlass.scheduler.evidence import criteria
from windlass.state import Attempt, RunState, TaskState
from windlass.state.demands import task_checks
from windlass.views.quotation import DATA, quoted

GUIDES = ("CLAUDE.md", "AGENTS.md")
"""Files of a repository that say how to work in it; the first that is there is quoted."""

CRITERIA = "acceptance criteria, by number"
"""What the block with the criteria is called."""

NO_COMMANDS = (
    "You cannot run commands here, so read instead: the change, the code around it, and what the "
    "checks said, which were run on this very commit. Leave `test_results.passed` null."
)
"""Told to a Coach where what it ran could speak for it."""

_NO_CHECKS = "There are none: run what tests there are, or say what cannot be shown."


def player_prompt(state: RunState, intent: PlayerStarted, said: Mapping[str, str]) -> str:
    """What the Player of this start is told; `said` holds what the project says instead of ours."""
    task, now = state.specs[intent.task], state.tasks[intent.task]
    return joined(
        f"Role: Player\nTask: {task.id}\nTurn: {intent.turn}\nStart: {intent.n}",
        _instructions("player.md", said),
        _guide(said),
        DATA,
        quoted(f"task {task.id}", f"{task.title}\n\n{task.text.strip()}"),
        quoted(CRITERIA, _numbered(criteria(state, task.id))),
        _listed("Checks that will be run on your files:", "checks", task_checks(state, task.id)),
        _answers(now),
        _situation(state, intent, said),
        _feedback(now.feedback),
        "When you are done, answer by the schema you were given: a short summary of what was "
        "implemented, files changed, key decisions and issues met; and a question only if nobody "
        "can go on before a person has decided something.",
    )


def coach_prompt(state: RunState, intent: CoachStarted, diff: str, said: Mapping[str, str]) -> str:
    """What the Coach of this commit is told."""
    task, attempt = state.specs[intent.task], state.tasks[intent.task].last
    results = state.evidence.get(attempt.tree or "", {})
    checks = (
        f"`{check}`: {results[check].outcome if check in results else 'not run'}"
        for check in task_checks(state, task.id)
    )
    role, instructions = ("E2E", "e2e.md") if task.scenario else ("Coach", "coach.md")
    return joined(
        f"Role: {role}\nTask: {task.id}\nTurn: {attempt.turn}\nReview: {intent.k}",
        _instructions(instructions, said),
        "" if state.coach_commands else NO_COMMANDS,
        _guide(said),
        DATA,
        quoted(f"task {task.id}", f"{task.title}\n\n{task.text.strip()}"),
        quoted(CRITERIA, _numbered(criteria(state, task.id))),
        quoted(f"change {intent.commit}", diff) if diff else "",
        _answers(state.tasks[task.id]),
        _flags(state, task),
        _fewer(state, results),
        quoted("checks run on this commit", "\n".join(checks) or _NO_CHECKS),
        "Answer by the schema you were given, and only by it.",
    )


def joined(*parts: str) -> str:
    """A prompt of those parts that say something."""
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _listed(title: str, name: str, items: tuple[str, ...]) -> str:
    return f"{title}\n{quoted(name, _numbered(items))}" if items else ""


def _numbered(items: tuple[str, ...]) -> str:
    return "\n".join(f"{i}. {item}" for i, item in enumerate(items, start=1))


def _guide(said: Mapping[str, str]) -> str:
    """How the repository itself wants to be worked in."""
    name = next((name for name in GUIDES if said.get(name)), None)
    return "" if name is None else quoted(f"{name} of the repository", said[name])


def _answers(task: TaskState) -> str:
    return quoted("what a person has said", "\n\n".join(task.answers)) if task.answers else ""


def review_base(task: TaskState) -> str:
    """The commit that the task's whole work is seen against, over all turns that made it.

    What was sent back is in the next turn's start already, and must be looked at again.
    """
    work = _of_one_work(task)
    onto = next((attempt.onto for attempt in work if attempt.onto is not None), None)
    return onto or work[-1].start


def _of_one_work(task: TaskState) -> list[Attempt]:
    """The newest start and those it stands upon, newest first."""
    work = [task.last]
    for attempt in reversed(task.attempts[:-1]):
        if attempt.commit != work[-1].start:
            break
        work.append(attempt)
    return work


def _flags(state: RunState, task: Task) -> str:
    """Changes to what judges the work, outside what the task is about."""
    work = _of_one_work(state.tasks[task.id])
    new = {path for attempt in work for path in attempt.created}
    changed = sorted({path for attempt in work for path in attempt.files} - set(task.files))
    kinds = {path: judges(path) or _about_the_plan(state, path) for path in changed}
    listed = tuple(
        f"{told(path)} ({kind}; {'new' if path in new else 'changed or removed'})"
        for path, kind in kinds.items()
        if kind
    )
    title = "Changed although they judge the work; look at each of them closely:"
    return _listed(title, "files that judge", listed)


def _about_the_plan(state: RunState, path: str) -> str:
    return "is the plan" if path in {state.plan.path, *(t.path for t in state.plan.tasks)} else ""


def _fewer(state: RunState, checks: Mapping[str, CheckResult]) -> str:
    """Checks that ran fewer tests than they did before anything was changed."""
    before = {result.command: result.tests for result in state.baseline or ()}
    listed = tuple(
        f"`{command}` ran {_tests(now)} of this commit, {_tests(then)} of the base"
        for command, result in checks.items()
        if (then := before.get(command)) and (now := result.tests or 0) < then
    )
    title = "Checks that prove less than before; find out which tests are gone:"
    return _listed(title, "numbers of tests", listed)


def _tests(number: int) -> str:
    return f"{number} test" if number == 1 else f"{number} tests"


def _situation(state: RunState, intent: PlayerStarted, said: Mapping[str, str]) -> str:
    if intent.onto is not None:
        return _instructions("conflict.md", said)
    before = state.tasks[intent.task].attempts[: intent.n - 1]
    interrupted = bool(before) and before[-1].failure is not None
    return _instructions("partial.md", said) if interrupted else ""


def _feedback(feedback: str | None) -> str:
    if not feedback:
        return ""
    asked = "Your predecessor's work is in this directory and was sent back. Answer this feedback:"
    return f"{asked}\n{quoted('feedback', feedback)}"


def _instructions(name: str, said: Mapping[str, str]) -> str:
    return said.get(name) or ours(name)


@cache
def ours(name: str) -> str:
    """A prompt of the package."""
    return (files("windlass") / "prompts" / name).read_text(encoding="utf-8")
