"""The prompts of Players and Coaches: their role, from files a project may replace, and the task.

Law: text and names from others (the plan, a diff, a file, feedback, a check's output) are quoted
between marks that are derived from the text itself, so nothing inside can end its quotation and
pose as an instruction. A text that is too long loses its middle, and the prompt says so. A change
is cut file by file, and the Coach is asked about each file that was cut, by name.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from windlass.core import intents as i
from windlass.core.other_tools import GUIDES
from windlass.runner.changes import Part, View
from windlass.views.quotation import DATA, quoted

CRITERIA = "acceptance criteria, by number"
"""The name of the block with the criteria."""

NO_COMMANDS = (
    "You cannot run commands here, so read instead: the change, the code around it, and the "
    "results of the checks, which were run on this very commit. Leave `test_results.passed` null."
)
"""For a Coach in a sandbox where a command that it runs could forge its verdict."""

FILES_TO_NAME = "files to name"
CHECKS_TO_NAME = "numbers of tests"
"""The names of the blocks whose entries an approval must name."""

_BY_NAME = (
    "An approval counts only with an entry in `seen` for each {0}, by the name given here, that "
    "says what you read or ran there:"
)

_JUDGING = "Changed files that judge the work; check each of them closely:"
_FEWER = (
    "Checks that prove less than before. Find out which tests are gone, and whether the task "
    f"wants that. {_BY_NAME.format('check')}"
)
_NO_CHECKS = "There are none: run the tests that exist, or say what cannot be shown."


def player_prompt(intent: i.Play, own: Mapping[str, str]) -> str:
    """`own` holds the project's own instructions, which replace those of the package."""
    task = intent.spec
    return joined(
        f"Role: Player\nTask: {task.id}\nTurn: {intent.turn}\nStart: {intent.n}",
        _instructions("player.md", own),
        _guide(own),
        DATA,
        quoted(f"task {task.id}", f"{task.title}\n\n{task.text.strip()}"),
        quoted(CRITERIA, _numbered(intent.criteria)),
        _listed("Checks that will be run on your files:", "checks", intent.checks),
        _answers(intent.answers),
        _situation(intent, own),
        _feedback(intent.feedback),
        "When you are done, answer by the schema you were given: a short summary of what was "
        "implemented, files changed, key decisions and issues met; and a question only if the work "
        "cannot continue before a person has decided something.",
    )


def coach_prompt(intent: i.Review, view: View, own: Mapping[str, str]) -> str:
    task = intent.spec
    checks = (f"`{check}`: {outcome}" for check, outcome in intent.checks)
    role, file = ("E2E", "e2e.md") if task.scenario else ("Coach", "coach.md")
    return joined(
        f"Role: {role}\nTask: {task.id}\nTurn: {intent.turn}\nReview: {intent.k}",
        *_introduction(intent, file, own),
        quoted(f"change {intent.commit}", view.text) if view.text else "",
        _left_out(view),
        _answers(intent.answers),
        _listed(_JUDGING, "files that judge", intent.judging),
        _listed(_FEWER, CHECKS_TO_NAME, intent.fewer),
        _uncounted(intent.uncounted),
        quoted("checks run on this commit", "\n".join(checks) or _NO_CHECKS),
        "Answer by the schema you were given, and only by it.",
    )


def part_prompt(intent: i.Review, part: Part, place: str, own: Mapping[str, str]) -> str:
    """The prompt of a Coach that reviews a part of the change that the first one was not shown."""
    task = intent.spec
    return joined(
        f"Role: Coach\nTask: {task.id}\nTurn: {intent.turn}\nReview: {intent.k}\nPart: {place}",
        *_introduction(intent, "coach.md", own),
        "The change is too large for one Coach. Another one reviews it as a whole, runs the tests "
        "and says whether the criteria are met. You review the part below, which it is not shown: "
        "read all of it, and the code around it in this directory, and say what is wrong in it. "
        "In `evidence` name only criteria that this part shows are not met.",
        quoted(f"part of change {intent.commit}", part.text),
        _to_name(part.files),
        "Answer by the schema you were given, and only by it.",
    )


def _introduction(intent: i.Review, file: str, own: Mapping[str, str]) -> tuple[str, ...]:
    """The start of every Coach's prompt: its role, the repository's conventions, the task."""
    task = intent.spec
    return (
        _instructions(file, own),
        "" if intent.may_run else NO_COMMANDS,
        _guide(own),
        DATA,
        quoted(f"task {task.id}", f"{task.title}\n\n{task.text.strip()}"),
        quoted(CRITERIA, _numbered(intent.criteria)),
    )


def _left_out(view: View) -> str:
    """What the prompt does not show of the change, and what an approval must say about it."""
    if not view.left_out:
        return ""
    lines = quoted("files not shown in full", "\n".join(view.left_out))
    others = "Other Coaches are shown most of what is left out." if view.parts else ""
    return joined(f"Not all of the change is shown above:\n{lines}", others, _to_name(view.unread))


def _to_name(names: tuple[str, ...]) -> str:
    title = f"Read these in this directory, all of what changed. {_BY_NAME.format('of them')}"
    return _listed(title, FILES_TO_NAME, names)


def _uncounted(why: str) -> str:
    if not why:
        return ""
    reason = quoted("why it did not count", why)
    return f"The answer of another Coach about this commit did not count:\n{reason}"


def joined(*parts: str) -> str:
    """A prompt of the parts that are not empty."""
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _listed(title: str, name: str, items: tuple[str, ...]) -> str:
    return f"{title}\n{quoted(name, _numbered(items))}" if items else ""


def _numbered(items: tuple[str, ...]) -> str:
    return "\n".join(f"{i}. {item}" for i, item in enumerate(items, start=1))


def _guide(own: Mapping[str, str]) -> str:
    """The repository's own conventions for agents."""
    name = next((name for name in GUIDES if own.get(name)), None)
    return "" if name is None else quoted(f"{name} of the repository", own[name])


def _answers(answers: tuple[str, ...]) -> str:
    return quoted("what a person has said", "\n\n".join(answers)) if answers else ""


def _situation(intent: i.Play, own: Mapping[str, str]) -> str:
    if intent.onto is not None:
        return _instructions("conflict.md", own)
    return _instructions("partial.md", own) if intent.interrupted else ""


def _feedback(feedback: str | None) -> str:
    if not feedback:
        return ""
    asked = "Your predecessor's work is in this directory and was sent back. Answer this feedback:"
    return f"{asked}\n{quoted('feedback', feedback)}"


def _instructions(name: str, own: Mapping[str, str]) -> str:
    return own.get(name) or packaged(name)


@cache
def packaged(name: str) -> str:
    """A prompt file of the package."""
    return (files("windlass") / "prompts" / name).read_text(encoding="utf-8")
