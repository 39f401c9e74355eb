"""Looking on while a run goes on: its facts and what its agents say, as they are written.

Law: it only reads, beside the run's own process, and ends when that process does.
"""

from collections.abc import Callable

import anyio

from windlass.cli.wiring import Project
from windlass.events.model import Entry, RunStarted
from windlass.ports import Activity
from windlass.state import RunState, apply

SECONDS = 0.3
"""How often it looks."""


async def follow(
    project: Project,
    plan_id: str,
    *,
    show: Callable[[Entry, RunState], None],
    hear: Callable[[Activity], None] | None = None,
    ahead: int = 0,
    remember: Callable[[Entry, RunState], None] = lambda _entry, _state: None,
) -> RunState | None:
    """Show every entry there is, then each that comes, until nobody runs the plan any more.

    What is not after position `ahead` is the past: it is remembered, and not shown.
    """
    state: RunState | None = None
    seq = offset = 0
    with project.reading(plan_id) as journal:
        while True:
            # Asked before it is read: whoever is gone by now has written all there will be.
            live = project.live_pid(plan_id) is not None
            for entry in journal.read(seq):
                offset = 0 if isinstance(entry.event, RunStarted) else offset
                state, seq = apply(state, entry.event), entry.seq
                (show if seq > ahead else remember)(entry, state)
            if hear is not None and state is not None:
                heard, offset = project.heard_after(plan_id, state.run, offset)
                for each in heard:
                    hear(each)
            if not live:
                return state
            await anyio.sleep(SECONDS)
