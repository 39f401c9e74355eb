"""The questions of a run to a person, and the rows in which a screen asks them.

Law: a pure function of the state. Every phase that waits for a person has its question here. Text
of an agent or a plan cannot control the terminal, and no row is wider than the screen.
"""

import shlex
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from msgspec import Struct

from windlass.core.scheduler import barriers, stages
from windlass.core.state import Phase, RunState, TaskState
from windlass.views.board import Row
from windlass.views.closing import asks
from windlass.views.columns import columns, cut, fitted, folded
from windlass.views.outcome import STALE_BECAUSE, check_lines
from windlass.views.steps import ways_to_help
from windlass.views.tree import stage_name
from windlass.views.words import harmless, one_line, plural

MOST_LINES = 6
"""Rows of a question's text; the rest is counted, with the command that shows all of it."""
_LONG = 20_000
_TITLE = 200

Command: TypeAlias = Literal["answer", "approve", "retry", "give", "accept_base"]
"""What an answer becomes; each is the use case of a command."""


class Question(Struct, frozen=True, kw_only=True):
    """What a person is asked, and what they can say."""

    subject: str
    """The task or stage; empty for the run as a whole."""
    head: str
    text: str
    words: tuple[tuple[str, Command], ...] = ()
    """The words to choose from, with what each does; empty: any text is the answer."""
    later: str
    """The command that answers it later."""
    whole: str
    """The command that shows all of the text."""
    times: int = 0
    """How often the task was asked before, so that the same question counts as another."""

    def command_for(self, typed: str) -> Command | None:
        """What the typed text does; None if it is no word of this question."""
        if not self.words:
            return "answer"
        word = typed.strip().casefold()
        for name, command in self.words:
            if word and name.startswith(word):
                return command
        return None

    def is_left(self, typed: str) -> bool:
        """Whether the typed text leaves the question for later."""
        return not typed or (bool(self.words) and typed.casefold() == "skip")

    @property
    def choice(self) -> str:
        """The words to choose from, or that any text will do."""
        return " or ".join(name for name, _ in self.words) or "your answer"


def questions(state: RunState) -> tuple[Question, ...]:
    """What the run asks now; none once it stops or has ended."""
    if state.ended is not None or state.stopping is not None:
        return ()
    of_tasks = (question for task in state.live for question in _of_task(state, task))
    return (*_of_base(state), *_of_stage(state), *of_tasks)


def _of_base(state: RunState) -> Iterator[Question]:
    if state.base_is_refused and state.awaiting:
        yield Question(
            subject="",
            head="The base does not pass its checks",
            text=f"{state.awaiting}\nAgents would start from work that is red already.",
            words=(("go", "accept_base"),),
            later=f"windlass resume {state.plan.id} --red-base go",
            whole=f"windlass log {state.plan.id}",
        )


def _of_stage(state: RunState) -> Iterator[Question]:
    stage, troubles = stages.unpassed(state), barriers.troubles(state)
    if stage is None or not troubles or not state.awaiting:
        return
    where = shlex.quote(f"{state.plan.id}:{stage}")
    yield Question(
        subject=stage,
        head=f"{stage_name(state, stage)} did not verify",
        text="\n".join(troubles),
        words=(("retry", "retry"), ("approve", "approve")),
        later=f"windlass retry {where} or windlass approve {where}",
        whole=f"windlass status {state.plan.id}",
        times=len(state.looks),
    )


_HEADS: Mapping[Phase, str] = MappingProxyType(
    {
        Phase.HELP_TO_START: "needs your approval to start",
        Phase.ASKED: "asks you",
        Phase.HELP_TO_PLAY: "is stuck and needs your advice",
        Phase.HELP_TO_CHECK: "cannot be checked",
        Phase.HELP_TO_REVIEW: "cannot be reviewed",
        Phase.HELP_TO_MERGE: "cannot be merged",
        Phase.STALE: "is stale",
        Phase.TAKEN: "is yours",
    }
)
"""For each phase that waits for a person, what its task needs."""

_WORDS: Mapping[Phase, tuple[tuple[str, Command], ...]] = MappingProxyType(
    {
        Phase.HELP_TO_START: (("approve", "approve"), ("yes", "approve")),
        Phase.STALE: (("retry", "retry"), ("approve", "approve")),
        Phase.TAKEN: (("give", "give"),),
    }
)
"""The words to choose from in these phases; in the others any text is the answer."""


def _of_task(state: RunState, task: TaskState) -> Iterator[Question]:
    if task.phase not in _HEADS:
        return
    ways = ways_to_help(task, state)
    where = shlex.quote(f"{state.plan.id}:{task.id}")
    yield Question(
        subject=task.id,
        head=f"{task.id} {one_line(state.specs[task.id].title, _TITLE)} {_HEADS[task.phase]}",
        text=_text(state, task),
        words=_WORDS.get(task.phase, ()),
        later=ways[0].command if ways else f'windlass answer {where} "…"',
        whole=f"windlass status {where}",
        times=len(task.attempts) + len(task.answers),
    )


def _text(state: RunState, task: TaskState) -> str:
    if task.phase is Phase.STALE:
        return "\n".join((STALE_BECAUSE, *check_lines(state, task.id)))
    return asks(task)


class Prompt(Struct, frozen=True, kw_only=True):
    """A question on the screen, with what is typed so far."""

    question: Question
    typed: str = ""
    note: str = ""
    """Why the last text was not taken."""
    more: int = 0
    """How many other questions wait."""
    alone: bool = False
    """Whether nothing else can continue."""


def prompt_rows(prompt: Prompt, *, width: int, height: int) -> list[Row]:
    """The rows of the prompt; empty if they do not fit."""
    asked = prompt.question
    waiting = f" (+{prompt.more} more)" if prompt.more else ""
    head = cut(f" ? {asked.head}", max(0, width - columns(waiting))) + waiting
    room = min(MOST_LINES, height - 3)
    if room < 1 or width < _NARROWEST:
        return []
    lines = _folded(asked.text, width - 3)
    if len(lines) > room:
        left = plural(len(lines) - room + 1, "more line")
        lines = [*lines[: room - 1], f"… {left}: {asked.whole}"]
    return [
        Row((("you", head),)),
        *(Row((("", f"   {cut(line, width - 3)}"),)) for line in lines),
        Row((("you", " > "), ("", _tail(prompt.typed, width - 4) + "_"))),
        Row((("dim", cut(f"   {_keys(prompt)}", width)),)),
    ]


_NARROWEST = 24


def _folded(text: str, width: int) -> list[str]:
    lines = (one_line(line, _LONG) for line in harmless(text, _LONG).splitlines())
    return [part for line in lines if line for part in folded(line, width)]


def _tail(typed: str, width: int) -> str:
    """The end of a long text, where the person types."""
    if columns(typed) <= width:
        return typed
    tail = typed[-max(0, width - 1) :]
    while columns(tail) > width - 1:
        tail = tail[1:]
    return f"…{tail}"


def _keys(prompt: Prompt) -> str:
    if prompt.note:
        return fitted(prompt.note, _TITLE)
    leaves = "leaves the run: exit 3" if prompt.alone else "leaves it for later"
    keys = "skip or Esc" if prompt.question.words else "Esc"
    return f"type {prompt.question.choice}, then Enter · {keys} {leaves}"
