"""Projections: files for other programs, written whole, off the path of the run.

The newest state wins: what was not written before the next change came is not written at all.
Nothing here is ever read back as state.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import anyio.to_thread

from windlass.adapters.files import make_folder, remove_durably, write_durably
from windlass.state import RunState

Render = Callable[[RunState, int], Mapping[Path, str | None]]
"""Files with their text, for a state at a journal position; None for one that is to be gone."""


class Projections:
    """Keeps files in step with the state."""

    def __init__(self, render: Render) -> None:
        self._render = render
        self._newest: tuple[RunState, int] | None = None
        self._changed = anyio.Event()
        self._written: dict[Path, str | None] = {}

    def show(self, state: RunState, seq: int) -> None:
        """Take note; the writing happens elsewhere."""
        self._newest = (state, seq)
        self._changed.set()

    async def keep(self) -> None:
        """Write whenever there is something new, until cancelled."""
        while True:
            await self._changed.wait()
            await anyio.to_thread.run_sync(self.flush)

    def flush(self) -> None:
        """Write what is newest."""
        newest, self._newest, self._changed = self._newest, None, anyio.Event()
        if newest is None:
            return
        for path, text in self._render(*newest).items():
            if path in self._written and self._written[path] == text:
                continue
            if text is None:
                remove_durably(path)
            else:
                make_folder(path.parent)
                write_durably(path, text)
            self._written[path] = text
