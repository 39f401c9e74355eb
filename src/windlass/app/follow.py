"""`follow`: the facts of a run and the activity of its agents, as they are written.

Law: it only reads, beside the run's own process, and ends when that process does.
"""

from collections.abc import AsyncGenerator

import anyio
import anyio.to_thread
from msgspec import Struct

from windlass.app.plans import only_plan
from windlass.app.wiring import Project
from windlass.core.engine import apply
from windlass.core.events.model import Entry, RunStarted
from windlass.core.state import RunState
from windlass.ports import Activity

SECONDS = 0.3
"""Seconds between two reads."""


class Fact(Struct, frozen=True):
    """A fact, and the state that it led to."""

    entry: Entry
    state: RunState


async def follow(
    project: Project, plan: str | None = None, *, activity: bool = True
) -> AsyncGenerator[Fact | Activity]:
    """Every fact of the plan's journal so far, then each new one while the run is live.

    With `activity`, also what the agents of the last run do and say.
    """
    plan_id = await anyio.to_thread.run_sync(only_plan, project, plan)
    state: RunState | None = None
    seq = offset = 0
    with project.journals.reading(plan_id) as journal:
        while True:
            # Asked before reading: a process that has ended by now has written everything.
            live = project.journals.live_pid(plan_id) is not None
            for entry in journal.read(seq):
                offset = 0 if isinstance(entry.event, RunStarted) else offset
                state, seq = apply(state, entry.event), entry.seq
                yield Fact(entry, state)
            if activity and state is not None:
                heard, offset = project.journals.activities_after(plan_id, state.run, offset)
                for each in heard:
                    yield each
            if not live:
                return
            await anyio.sleep(SECONDS)
