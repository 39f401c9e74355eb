"""An agent without a model: it does what it was told, in a real workspace, inside this process.

Rule 1: what it does follows from the task and the start, never from what it did before: every
call is a fresh context, as with any agent.
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
"""Path in the workspace to its new content; None removes the file."""


class Play(Struct, frozen=True, kw_only=True):
    """What an agent does in one call: its edits first, then how it ends."""

    edits: Edits = {}
    summary: str = "done"
    answer: Struct | None = None
    """What it says by schema."""
    usage: Usage = Usage(cost_usd=0.01, input_tokens=100, output_tokens=20)
    failure: Failure | None = None
    message: str = ""
    hangs: bool = False
    """Never ends by itself."""
    raises: Exception | None = None
    """Breaks the agent's promise to report its failures."""


Part: TypeAlias = Play | Edits | Callable[[Brief, Path], Play]
"""What to do: all of it, only the edits, or made up on the spot."""


def approval(brief: Brief) -> Review:
    """The answer of a Coach that finds every criterion met, and has looked at all it must name."""
    numbers = range(1, len(brief.criteria) + 1)
    return Review(
        decision="approve",
        summary="All of it is there.",
        test_results=TestResults(passed=True),
        evidence=tuple(CriterionEvidence(criterion=n, met=True, evidence="seen") for n in numbers),
        seen=tuple(Sighting(name=name, evidence="read") for name in brief.names),
    )


class ScriptedAgent:
    """Plays a part per task; a tuple has one for each start, and the last for all later ones.

    A Coach approves, unless there is a part under `coach <task>`.
    """

    def __init__(
        self, parts: Mapping[str, Part | tuple[Part, ...]], *, default: Part | None = None
    ) -> None:
        self._parts = parts
        self._default = default
        self.briefs: list[Brief] = []
        """What was asked so far, in order."""
        self.cancelled: list[Brief] = []
        """Which of it was cancelled."""
        self.busy = 0
        """How many calls are under way."""

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """Do the task's part in the workspace."""
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
            # As in a real agent, somebody else may run between one edit and the next.
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
            raise KeyError(f"nothing is scripted for task {brief.task!r}")
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
