"""Tools that say something to a run in a person's place: only where a person allowed it.

Law: each does what the command of its name does, in the same way, and nothing more. None of them
begins or resumes a run, lands anything, or lets go of work.
"""

from windlass.app.acceptance import is_stale
from windlass.app.rest import PAUSE, PAUSE_NOW, STOP, bring_to_rest
from windlass.app.say import passed_on
from windlass.core.exchange import Message
from windlass.errors import BadInput
from windlass.mcp.looking import Looking, Told

MOST_CHARACTERS = 20_000
"""Of an answer; every later agent of the task is told all of it."""


class Acting:
    """One project, and what may be said to its runs."""

    def __init__(self, looking: Looking) -> None:
        self._looking = looking

    def answer(self, task: str, text: str) -> Told:
        """Answer what a task asks."""
        if not text.strip():
            raise BadInput("the answer is empty")
        if len(text) > MOST_CHARACTERS:
            raise BadInput(f"the answer is longer than {MOST_CHARACTERS} characters")
        return self._say(task, "answer", text)

    def approve(self, task: str) -> Told:
        """Let a task start that is too complex to start unasked, or a stage pass."""
        state, subject = self._looking.task_of(task, stages=True)
        if is_stale(self._looking.project, state, subject):
            where = f"{state.plan.id}:{subject}"
            said = f"{subject} is stale, and only a person accepts what is merged for another text"
            raise BadInput(said, hint=f"ask them to run: windlass approve {where}")
        return self._say(task, "approve", stages=True)

    def retry(self, task: str) -> Told:
        """Have a task or a stage done once more."""
        return self._say(task, "retry", stages=True)

    def pause(self, plan: str | None, *, now: bool) -> Told:
        """Let a live run come to rest."""
        rest = PAUSE_NOW if now else PAUSE
        return _said(bring_to_rest(self._looking.project, self._looking.plan_of(plan), rest))

    def stop(self, plan: str | None) -> Told:
        """Stop a live run."""
        return _said(bring_to_rest(self._looking.project, self._looking.plan_of(plan), STOP))

    def _say(self, task: str, command: str, text: str = "", *, stages: bool = False) -> Told:
        state, subject = self._looking.task_of(task, stages=stages)
        message = Message(command=command, task=subject, text=text)
        return _said(passed_on(self._looking.project, state, message))


def _said(text: str) -> Told:
    return {"said": text}
