"""What agents are told: who they are, from files a project may replace, and what it is about.

Law: what somebody else wrote or named (the plan, a diff, a file, feedback, what a check printed) is
quoted between marks that are made from the text itself, so that nothing inside can end its own
quotation and pose as instruction. What is too long loses its middle, and says so; a change is cut
file by file, and what is left out is asked about by name.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from windlass.core import intents as i
from windlass.core.other_tools import GUIDES
from windlass.runner.changes import Part, View
from windlass.views.quotation import DATA, quoted

CRITERIA = "acceptance criteria, by number"
"""What the block with the criteria is called."""

NO_COMMANDS = (
    "You cannot run commands here, so read instead: the change, the code around it, and what the "
    "checks said, which were run on this very commit. Leave `test_results.passed` null."
)
"""Told to a Coach where what it ran could speak for it."""

FILES_TO_NAME = "files to name"
CHECKS_TO_NAME = "numbers of tests"
"""What the blocks are called whose entries an approval must name."""

_BY_NAME = (
    "An approval counts only with an entry in `seen` for each {0}, by the name given here, that "
    "says what you read or ran there:"
)
"""How the Coach is asked for evidence about something by its name."""

_JUDGING = "Changed although they judge the work; look at each of them closely:"
_FEWER = (
    "Checks that prove less than before. Find out which tests are gone, and whether the task "
    f"wants that. {_BY_NAME.format('check')}"
)
_NO_CHECKS = "There are none: run what tests there are, or say what cannot be shown."


def player_prompt(intent: i.Play, said: Mapping[str, str]) -> str:
    """What the Player of this start is told; `said` holds what the project says instead of ours."""
    task = intent.spec
    return joined(
        f"Role: Player\nTask: {task.id}\nTurn: {intent.turn}\nStart: {intent.n}",
        _instructions("player.md", said),
        _guide(said),
        DATA,
        quoted(f"task {task.id}", f"{task.title}\n\n{task.text.strip()}"),
        quoted(CRITERIA, _numbered(intent.criteria)),
        _listed("Checks that will be run on your files:", "checks", intent.checks),
        _answers(intent.answers),
        _situation(intent, said),
        _feedback(intent.feedback),
        "When you are done, answer by the schema you were given: a short summary of what was "
        "implemented, files changed, key decisions and issues met; and a question only if nobody "
        "can go on before a person has decided something.",
    )


def coach_prompt(intent: i.Review, view: View, said: Mapping[str, str]) -> str:
    """What the Coach of this commit is told."""
    task = intent.spec
    checks = (f"`{check}`: {outcome}" for check, outcome in intent.checks)
    role, instructions = ("E2E", "e2e.md") if task.scenario else ("Coach", "coach.md")
    return joined(
        f"Role: {role}\nTask: {task.id}\nTurn: {intent.turn}\nReview: {intent.k}",
        *_about(intent, instructions, said),
        quoted(f"change {intent.commit}", view.text) if view.text else "",
        _left_out(view),
        _answers(intent.answers),
        _listed(_JUDGING, "files that judge", intent.judging),
        _listed(_FEWER, CHECKS_TO_NAME, intent.fewer),
        _uncounted(intent.uncounted),
        quoted("checks run on this commit", "\n".join(checks) or _NO_CHECKS),
        "Answer by the schema you were given, and only by it.",
    )


def part_prompt(intent: i.Review, part: Part, place: str, said: Mapping[str, str]) -> str:
    """What a Coach is told who looks at a part of the change that the first one was not shown."""
    task = intent.spec
    return joined(
        f"Role: Coach\nTask: {task.id}\nTurn: {intent.turn}\nReview: {intent.k}\nPart: {place}",
        *_about(intent, "coach.md", said),
        "The change is too large for one Coach. Another one looks at it as a whole, runs the tests "
        "and says whether the criteria are met. You look at the part below, which it is not shown: "
        "read all of it, and the code around it in this directory, and say what is wrong in it. "
        "For `evidence` name only criteria that something in this part speaks against.",
        quoted(f"part of change {intent.commit}", part.text),
        _to_name(part.files),
        "Answer by the schema you were given, and only by it.",
    )


def _about(intent: i.Review, instructions: str, said: Mapping[str, str]) -> tuple[str, ...]:
    """What every Coach is told first: who it is, how to work here, and what was asked for."""
    task = intent.spec
    return (
        _instructions(instructions, said),
        "" if intent.may_run else NO_COMMANDS,
        _guide(said),
        DATA,
        quoted(f"task {task.id}", f"{task.title}\n\n{task.text.strip()}"),
        quoted(CRITERIA, _numbered(intent.criteria)),
    )


def _left_out(view: View) -> str:
    """What of the change is not shown, and what is asked about it."""
    if not view.left_out:
        return ""
    lines = quoted("files not shown in full", "\n".join(view.left_out))
    others = "Other Coaches are shown most of what is left out." if view.parts else ""
    return joined(f"Not all of the change is shown above:\n{lines}", others, _to_name(view.unread))


def _to_name(names: tuple[str, ...]) -> str:
    title = f"Read these in this directory, all of what changed. {_BY_NAME.format('of them')}"
    return _listed(title, FILES_TO_NAME, names)


def _uncounted(why: str) -> str:
    """Why the answer of the Coach before did not count."""
    if not why:
        return ""
    reason = quoted("why it did not count", why)
    return f"The answer of another Coach about this commit did not count:\n{reason}"


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


def _answers(answers: tuple[str, ...]) -> str:
    return quoted("what a person has said", "\n\n".join(answers)) if answers else ""


def _situation(intent: i.Play, said: Mapping[str, str]) -> str:
    if intent.onto is not None:
        return _instructions("conflict.md", said)
    return _instructions("partial.md", said) if intent.interrupted else ""


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
