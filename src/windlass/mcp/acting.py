"""Tools that act on a run on a person's behalf, if the person allowed it.

Law: each does exactly what the command of its name does. None starts, resumes or lands a run, or
deletes work.
"""

import msgspec

from windlass.app.acceptance import approve, is_stale
from windlass.app.recorded import recorded_plan, recorded_task
from windlass.app.rest import pause, stop
from windlass.app.say import Delivery, answer, retry
from windlass.app.wiring import Project
from windlass.errors import BadInput
from windlass.mcp.looking import Reply

MOST_CHARACTERS = 20_000
"""Of an answer; every later agent of the task reads all of it."""


class Acting:
    def __init__(self, project: Project) -> None:
        self._project = project

    def answer(self, task: str, text: str) -> Reply:
        if len(text) > MOST_CHARACTERS:
            raise BadInput(f"the answer is longer than {MOST_CHARACTERS} characters")
        return _reply(answer(self._project, self._name(task), text))

    def approve(self, task: str) -> Reply:
        state, subject = recorded_task(self._project, task, stages=True)
        where = f"{state.plan.id}:{subject}"
        if is_stale(self._project, state, subject):
            why = f"{subject} is stale, and only a person may accept it for the new text"
            raise BadInput(why, hint=f"ask them to run: windlass approve {where}")
        return _reply(approve(self._project, where))

    def retry(self, task: str, *, confirmed: bool) -> Reply:
        named = self._name(task, stages=True)
        return _reply(retry(self._project, named, confirmed=confirmed))

    def pause(self, plan: str | None, *, now: bool) -> Reply:
        return _reply(pause(self._project, recorded_plan(self._project, plan), now=now))

    def stop(self, plan: str | None) -> Reply:
        return _reply(stop(self._project, recorded_plan(self._project, plan)))

    def _name(self, typed: str, *, stages: bool = False) -> str:
        state, subject = recorded_task(self._project, typed, stages=stages)
        return f"{state.plan.id}:{subject}"


def _reply(delivery: Delivery) -> Reply:
    return msgspec.to_builtins(delivery)
