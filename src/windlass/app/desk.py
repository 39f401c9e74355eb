"""The answers of a person who is present at a live run.

Law: an answer is the command of its name, through the same use case as from any other face. The run
records it with the person and the time.
"""

from typing import assert_never

from windlass.app.acceptance import approve
from windlass.app.rest import stop
from windlass.app.say import accept_base, answer, give, retry
from windlass.app.wiring import Project
from windlass.views.questions import Command


class Desk:
    """Takes the answers to one plan's run."""

    def __init__(self, project: Project, plan_id: str) -> None:
        self._project = project
        self._plan = plan_id

    def reply(self, command: Command, subject: str, text: str) -> None:
        """Send an answer to the run; raises if it does not fit any more."""
        named = f"{self._plan}:{subject}"
        match command:
            case "answer":
                answer(self._project, named, text)
            case "approve":
                approve(self._project, named)
            case "retry":
                # The person was asked about exactly this task.
                retry(self._project, named, confirmed=True)
            case "give":
                give(self._project, named)
            case "accept_base":
                accept_base(self._project, self._plan)
            case _:
                assert_never(command)

    def leave(self) -> None:
        """End a run that only waits: it needs a person, and can be resumed."""
        stop(self._project, self._plan)
