"""Projections: files for other programs, written whole, off the path of the run.

Rule 1: the newest state wins; what was not written before the next change came is not written at
all. Rule 2: at most once a second, but at once when a status changes. Rule 3: nothing here is ever
read back as state. Rule 4: what somebody else wrote into such a file since is noticed and said; a
file that is all ours is put aside before it is written over, and in one that is the user's own only
Windlass's part is written. Rule 5: what cannot be written is said once, and the run goes on.

What was written is remembered by its hash, on disk, so that an edit is noticed over restarts too.
"""

import contextlib
import hashlib
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from windlass.adapters.files import make_folder, remove_durably, write_durably
from windlass.state import RunState

SECONDS = 1.0
"""The least time between two writings that tell of no new status."""


BREATH = 0.25
"""The least time between any two, so that a flood of changes does not keep the run from working."""


class Shown(Struct, frozen=True):
    """What a file is to hold."""

    text: str | None
    """None for a file that is to be gone."""
    shared: bool = False
    """The file is the user's own, and all but Windlass's part of it is as it was just now."""


Render = Callable[[RunState, int], Mapping[Path, Shown]]
"""Every file for a state at a journal position."""


class Projections:
    """Keeps files in step with the state."""

    def __init__(self, render: Render, *, memory: Path, notice: Callable[[str], None]) -> None:
        """Take what makes the files, where to remember them, and whom to tell of edits."""
        self._render = render
        self._memory = memory
        self._notice = notice
        self._hashes = _read(memory)
        self._unwritable: set[Path] = set()
        """Files that are left alone until the next process tries again."""
        self._newest: tuple[RunState, int] | None = None
        self._statuses: object = None
        self._changed = anyio.Event()
        self._hurry = anyio.Event()

    def show(self, state: RunState, seq: int) -> None:
        """Take note; the writing happens elsewhere."""
        self._newest = (state, seq)
        self._changed.set()
        statuses = state.ended, tuple(task.status for task in state.tasks.values())
        if statuses != self._statuses:
            self._statuses = statuses
            self._hurry.set()

    async def keep(self) -> None:
        """Write whenever there is something new, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed, self._hurry = anyio.Event(), anyio.Event()
            await anyio.to_thread.run_sync(self.flush)
            await anyio.sleep(BREATH)
            with anyio.move_on_after(SECONDS - BREATH):
                await self._hurry.wait()

    def flush(self) -> None:
        """Write what is newest."""
        newest, self._newest = self._newest, None
        if newest is None:
            return
        due: dict[Path, Shown] = {}
        for path, shown in self._render(*newest).items():
            there = _bytes(path)
            with self._going_on_without(path):
                self._look_for_edit(path, there, shared=shown.shared)
            if path not in self._unwritable and there != (
                None if shown.text is None else shown.text.encode()
            ):
                due[path] = shown
        self._remember(due)
        for path, shown in due.items():
            with self._going_on_without(path):
                if shown.text is None:
                    remove_durably(path)
                else:
                    make_folder(path.parent)
                    write_durably(path, shown.text)

    @contextlib.contextmanager
    def _going_on_without(self, path: Path) -> Generator[None]:
        """No run is lost for a file that only tells of it; what cannot be written is said."""
        try:
            yield
        except OSError as error:
            self._unwritable.add(path)
            self._notice(f"{path.name} cannot be written from here on: {error.strerror}")

    def _look_for_edit(self, path: Path, there: bytes | None, *, shared: bool) -> None:
        ours = self._hashes.get(str(path))
        if there is None or ours is None or _hash(there) in ours:
            return
        self._hashes[str(path)] = (*ours, _hash(there))  # said once
        if shared:
            self._notice(f"{path.name} was edited; only Windlass's own part of it is written")
            return
        aside = path.with_name(f"{path.name}.edited-{_hash(there)[:8]}")
        write_durably(aside, there)
        self._notice(f"{path.name} was edited; it is never read back: kept as {aside.name}")

    def _remember(self, due: Mapping[Path, Shown]) -> None:
        """Before they are written, or a kill in between would make ours look like an edit."""
        known = dict(self._hashes)
        for path, shown in due.items():
            before = known.get(str(path), ())[-1:]
            if shown.text is not None:
                known[str(path)] = (*before, _hash(shown.text.encode()))
        if known != self._hashes:
            self._hashes = known
            make_folder(self._memory.parent)
            write_durably(self._memory, msgspec.json.encode(known))


def _read(memory: Path) -> dict[str, tuple[str, ...]]:
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(memory.read_bytes(), type=dict[str, tuple[str, ...]])
    return {}


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
