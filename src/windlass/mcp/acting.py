"""Tools that act on a run on a person's behalf, if the person allowed it.

Law: each does exactly what the command of its name does. None starts, resumes or lands a run, or
deletes work.
"""

from windlass.app.acceptance import is_stale
from windlass.app.rest import PAUSE, PAUSE_NOW, STOP, bring_to_rest
from windlass.app.say import passed_on
from windlass.core.exchange import Message
from windlass.errors import BadInput
from windlass.mcp.looking import Looking, Told

MOST_CHARACTERS = 20_000
"""Of an answer; every later agent of the task reads all of it."""


class Acting:
    def __init__(self, looking: Looking) -> None:
        self._looking = looking

    def answer(self, task: str, text: str) -> Told:
        if not text.strip():
            raise BadInput("the answer is empty")
        if len(text) > MOST_CHARACTERS:
            raise BadInput(f"the answer is longer than {MOST_CHARACTERS} characters")
        return self._say(task, "answer", text)

    def approve(self, task: str) -> Told:
        state, subject = self._looking.task_of(task, stages=True)
        if is_stale(self._looking.project, state, subject):
            where = f"{state.plan.id}:{subject}"
            why = f"{subject} is stale, and only a person may accept it for the new text"
            raise BadInput(why, hint=f"ask them to run: windlass approve {where}")
        return self._say(task, "approve", stages=True)

    def retry(self, task: str) -> Told:
        return self._say(task, "retry", stages=True)

    def pause(self, plan: str | None, *, now: bool) -> Told:
        rest = PAUSE_NOW if now else PAUSE
        return _said(bring_to_rest(self._looking.project, self._looking.plan_of(plan), rest))

    def stop(self, plan: str | None) -> Told:
        return _said(bring_to_rest(self._looking.project, self._looking.plan_of(plan), STOP))

    def _say(self, task: str, command: str, text: str = "", *, stages: bool = False) -> Told:
        state, subject = self._looking.task_of(task, stages=stages)
        message = Message(command=command, task=subject, text=text)
        return _said(passed_on(self._looking.project, state, message))


def _said(text: str) -> Told:
    return {"said": text}
