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

from windlass.adapters.files import make_folder, open_to_read, remove_durably, write_durably
from windlass.core.state import RunState

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
    gives_way: bool = False
    """What is there now is another run's, and nobody's edit."""
    trouble: OSError | None = None
    """Why the file cannot be read, and so not written either."""


Render = Callable[[RunState, int], Mapping[Path, Shown]]
"""Every file for a state at a journal position."""


class Projections:
    """Keeps files in step with the state."""

    def __init__(
        self, render: Render, *, inside: Path, memory: Path, notice: Callable[[str], None]
    ) -> None:
        """Take what makes the files, where to remember them, and whom to tell of edits.

        All of them lie `inside` the repository, and none is reached through a link.
        """
        self._render = render
        self._inside = inside
        self._memory = memory
        self._notice = notice
        self._hashes = _read(memory, inside)
        self._unwritable: set[Path] = set()
        """Files that are left alone until the last flush tries again."""
        self._said: set[Path] = set()
        self._newest: tuple[RunState, int] | None = None
        self._last: tuple[RunState, int] | None = None
        """What the last flush was to write."""
        self._statuses: object = None
        self._changed = anyio.Event()
        self._hurry = anyio.Event()

    def show(self, state: RunState, seq: int) -> None:
        """Take note; the writing happens elsewhere."""
        self._newest = (state, seq)
        self._changed.set()
        # Asked at every fact: what rests has changed only if there is more or less of it.
        live = tuple((task.id, task.status) for task in state.live)
        resting = state.index.free, state.queue, state.index.abandoned, state.index.merged
        statuses = state.ended, live, resting
        if statuses != self._statuses:
            self._statuses = statuses
            self._hurry.set()

    def let_go(self, *paths: Path) -> None:
        """Take no edit from what is written into these next: a landing is at our own word."""
        for path in paths:
            self._hashes.pop(str(path), None)

    async def keep(self) -> None:
        """Write whenever there is something new, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed, self._hurry = anyio.Event(), anyio.Event()
            await anyio.to_thread.run_sync(self.flush)
            await anyio.sleep(BREATH)
            with anyio.move_on_after(SECONDS - BREATH):
                await self._hurry.wait()

    def close(self) -> None:
        """Write what is newest, also where that could not be done before."""
        if self._unwritable and self._newest is None:
            self._newest = self._last
        self._unwritable.clear()
        self.flush()

    def flush(self) -> None:
        """Write what is newest."""
        newest, self._newest = self._newest, None
        if newest is None:
            return
        self._last = newest
        rendered = self._render(*newest).items()
        due = {path: shown for path, shown in rendered if self._is_due(path, shown)}
        with self._going_on_without(self._memory):
            self._remember(due)
        if self._memory in self._unwritable:
            return  # what is written and not remembered would look like an edit
        for path, shown in due.items():
            with self._going_on_without(path):
                if shown.text is None:
                    remove_durably(path, inside=self._inside)
                else:
                    make_folder(path.parent, inside=self._inside)
                    self._write(path, shown.text)

    def _is_due(self, path: Path, shown: Shown) -> bool:
        """Whether the file is to be written: it is not so yet, and nothing speaks against it."""
        there = self._hash_of(path)
        with self._going_on_without(path):
            if shown.trouble is not None:
                raise shown.trouble
            if not shown.gives_way:
                self._look_for_edit(path, there, shared=shown.shared)
        return path not in self._unwritable and there != _hash(shown.text)

    def _write(self, path: Path, content: str | bytes) -> None:
        # Half-written, it would lie about among the user's own files.
        write_durably(path, content, inside=self._inside, by_way_of=self._memory.parent)

    @contextlib.contextmanager
    def _going_on_without(self, path: Path) -> Generator[None]:
        """No run is lost for a file that only tells of it; what cannot be written is said."""
        try:
            yield
        except OSError as error:
            self._unwritable.add(path)
            if path not in self._said:
                self._said.add(path)
                name = path.relative_to(self._inside)
                self._notice(f"{name} cannot be written from here on: {error.strerror}")

    def _look_for_edit(self, path: Path, there: str | None, *, shared: bool) -> None:
        ours = self._hashes.get(str(path))
        if there is None or ours is None or there in ours:
            return
        seen = (*ours, there)
        if shared:
            self._hashes[str(path)] = seen  # said once
            self._notice(f"{path.name} was edited; only Windlass's own part of it is written")
            return
        aside = path.with_name(f"{path.name}.edited-{there[:8]}")
        make_folder(self._memory.parent, inside=self._inside)
        with open_to_read(path, inside=self._inside) as file:
            self._write(aside, file.read())
        self._hashes[str(path)] = seen
        self._notice(f"{path.name} was edited; it is never read back: kept as {aside.name}")

    def _remember(self, due: Mapping[Path, Shown]) -> None:
        """Before they are written, or a kill in between would make ours look like an edit."""
        known = dict(self._hashes)
        for path, shown in due.items():
            # What is there now stays known: the writing that is to come may fail.
            before, there = known.get(str(path), ())[-1:], self._hash_of(path)
            if before and there is not None:
                before = (there,)
            if (hashed := _hash(shown.text)) is not None:
                known[str(path)] = (*before, hashed)
        if known != self._hashes:
            make_folder(self._memory.parent, inside=self._inside)
            write_durably(self._memory, msgspec.json.encode(known), inside=self._inside)
            self._hashes = known

    def _hash_of(self, path: Path) -> str | None:
        """The hash of a plain file, if there is one."""
        with contextlib.suppress(OSError), open_to_read(path, inside=self._inside) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
        return None


def _read(memory: Path, inside: Path) -> dict[str, tuple[str, ...]]:
    errors = (OSError, msgspec.MsgspecError)
    with contextlib.suppress(*errors), open_to_read(memory, inside=inside) as file:
        return msgspec.json.decode(file.read(), type=dict[str, tuple[str, ...]])
    return {}


def _hash(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()
