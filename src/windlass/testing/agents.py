"""An agent without a model: it follows a script, in a real workspace, inside this process.

Rule 1: what it does depends on the task and the start, never on earlier calls. Every call is a
fresh context, as with any agent.
"""

from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import TypeAlias, cast

import anyio
import anyio.lowlevel
from msgspec import Struct

from windlass.core.events.model import Failure, Usage
from windlass.core.events.review import CriterionEvidence, Review, Sighting, TestResults
from windlass.ports import Activity, Brief, Report, Watch

Edits: TypeAlias = Mapping[str, str | None]
"""The new content of files, by path in the workspace; None removes the file."""


class Play(Struct, frozen=True, kw_only=True):
    """What an agent does in one call: first its edits, then its end."""

    edits: Edits = {}
    summary: str = "done"
    answer: Struct | None = None
    """Its structured answer."""
    usage: Usage = Usage(cost_usd=0.01, input_tokens=100, output_tokens=20)
    failure: Failure | None = None
    message: str = ""
    hangs: bool = False
    """Never ends by itself."""
    raises: Exception | None = None
    """Breaks the agent's promise to report its failures."""


Part: TypeAlias = Play | Edits | Callable[[Brief, Path], Play]
"""What to do: a whole play, only the edits, or a function that returns a play."""


def approval(brief: Brief) -> Review:
    """The review of a Coach that finds every criterion met and names everything it must see."""
    numbers = range(1, len(brief.criteria) + 1)
    return Review(
        decision="approve",
        summary="All of it is there.",
        test_results=TestResults(passed=True),
        evidence=tuple(CriterionEvidence(criterion=n, met=True, evidence="seen") for n in numbers),
        seen=tuple(Sighting(name=name, evidence="read") for name in brief.names),
    )


class ScriptedAgent:
    """Plays the part of each task; a tuple has one part per start, the last for all later ones.

    A Coach approves, unless there is a part named `coach <task>`.
    """

    def __init__(
        self, parts: Mapping[str, Part | tuple[Part, ...]], *, default: Part | None = None
    ) -> None:
        self._parts = parts
        self._default = default
        self.briefs: list[Brief] = []
        """The briefs of all calls, in order."""
        self.cancelled: list[Brief] = []
        """The briefs of cancelled calls."""
        self.busy = 0
        """The number of calls under way."""

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """Play the task's part in the workspace."""
        self.briefs.append(brief)
        self.busy += 1
        try:
            return await self._perform(self._play(brief, Path(workspace)), brief, workspace, watch)
        except anyio.get_cancelled_exc_class():
            self.cancelled.append(brief)
            raise
        finally:
            self.busy -= 1

    async def _perform(self, play: Play, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        for name, content in play.edits.items():
            # As with a real agent, other tasks may run between two edits.
            await anyio.lowlevel.checkpoint()
            watch(Activity(task=brief.task, kind="tool", text=f"Writing {PurePath(name).name}"))
            _edit(Path(workspace, name), content)
        if play.hangs:
            await anyio.sleep_forever()
        if play.raises is not None:
            raise play.raises
        if play.failure is not None:
            return Report(failure=play.failure, message=play.message, usage=play.usage)
        watch(Activity(task=brief.task, kind="text", text=play.summary))
        return Report(summary=play.summary, answer=play.answer, usage=play.usage)

    def _play(self, brief: Brief, workspace: Path) -> Play:
        if brief.role == "coach" and f"coach {brief.task}" not in self._parts:
            return Play(answer=approval(brief))
        name = f"coach {brief.task}" if brief.role == "coach" else brief.task
        part = self._parts.get(name, self._default)
        if part is None:
            raise KeyError(f"no part is scripted for task {brief.task!r}")
        if isinstance(part, tuple):
            parts = cast("tuple[Part, ...]", part)
            part = parts[min(brief.n, len(parts)) - 1]
        if isinstance(part, Play):
            return part
        if isinstance(part, Mapping):
            return Play(edits=cast("Edits", part))
        return part(brief, workspace)


def _edit(path: Path, content: str | None) -> None:
    if content is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
