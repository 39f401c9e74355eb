"""Projections: files for other programs, written whole, off the path of the run.

Rule 1: the newest state wins; a state that is overtaken is not written. Rule 2: at most once a
second, but at once when a status changes. Rule 3: nothing here is read back as state. Rule 4: an
edit of such a file by someone else is noticed and reported; a file that is all Windlass's own is
copied aside first, and in a file of the user's only Windlass's part is written. Rule 5: a file that
cannot be written is reported once, and the run goes on.

What was written, and from which journal position, is kept on disk beside the run and not in the
files, because their readers refuse what they do not know. So edits are noticed across restarts, and
`clean` knows which files are Windlass's own.
"""

import contextlib
import hashlib
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from types import MappingProxyType

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from windlass.adapters.files import make_folder, open_to_read, remove_durably, write_durably
from windlass.core.state import RunState

SECONDS = 1.0
"""The least time between two writes without a new status."""

BREATH = 0.25
"""The least time between any two writes, so that a flood of changes does not slow the run."""


class Shown(Struct, frozen=True):
    """The content that a file is to have."""

    text: str | None
    """None for a file that is to be deleted."""
    shared: bool = False
    """The file is the user's own; `text` keeps all of it but Windlass's part."""
    gives_way: bool = False
    """What is there now belongs to another run, and is no edit."""
    trouble: OSError | None = None
    """Why the file cannot be read, and therefore not written."""


class Written(Struct, frozen=True):
    """What is remembered of a file."""

    hashes: tuple[str, ...]
    """The hashes of its last contents; of two if the second may not have been written."""
    seq: int = 0
    """The journal position that the newest was made from; 0 if not known."""


Memory = dict[str, Written]
"""By the path below the repository."""

Render = Callable[[RunState, int], Mapping[Path, Shown]]
"""Every file for a state at a journal position."""


class Projections:
    """Keeps files in step with the state."""

    def __init__(
        self,
        render: Render,
        *,
        inside: Path,
        memory: Path,
        notice: Callable[[str], None],
        earlier: Mapping[str, frozenset[str]] = MappingProxyType({}),
    ) -> None:
        """Take the renderer, where to keep the hashes, and whom to notify of edits.

        All files are `inside` the repository, and none is reached through a link. `earlier` are the
        hashes of what other runs wrote.
        """
        self._render = render
        self._inside = inside
        self._memory = memory
        self._notice = notice
        self._hashes = remembered(memory, inside)
        self._earlier = earlier
        self._unwritable: set[Path] = set()
        """Files that are left alone until `close` tries again."""
        self._reported: set[Path] = set()
        self._newest: tuple[RunState, int] | None = None
        self._last: tuple[RunState, int] | None = None
        """What the last flush wrote."""
        self._statuses: object = None
        self._changed = anyio.Event()
        self._hurry = anyio.Event()

    def show(self, state: RunState, seq: int) -> None:
        """Note the state; `keep` writes it."""
        self._newest = (state, seq)
        self._changed.set()
        # Called for every fact: tasks at rest have changed only if their number has.
        live = tuple((task.id, task.status) for task in state.live)
        resting = state.index.free, state.queue, state.index.abandoned, state.index.merged
        statuses = state.ended, live, resting
        if statuses != self._statuses:
            self._statuses = statuses
            self._hurry.set()

    def let_go(self, *paths: Path) -> None:
        """Treat the next content of these as no edit: Windlass itself landed it."""
        for path in paths:
            self._hashes.pop(self._name(path), None)

    async def keep(self) -> None:
        """Write each new state, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed, self._hurry = anyio.Event(), anyio.Event()
            await anyio.to_thread.run_sync(self.flush)
            await anyio.sleep(BREATH)
            with anyio.move_on_after(SECONDS - BREATH):
                await self._hurry.wait()

    def close(self) -> None:
        """Write the newest state, also to files that could not be written before."""
        if self._unwritable and self._newest is None:
            self._newest = self._last
        self._unwritable.clear()
        self.flush()

    def flush(self) -> None:
        """Write the newest state."""
        newest, self._newest = self._newest, None
        if newest is None:
            return
        self._last = newest
        rendered = self._render(*newest).items()
        due = {path: shown for path, shown in rendered if self._is_due(path, shown)}
        with self._going_on_without(self._memory):
            self._remember(due, newest[1])
        if self._memory in self._unwritable:
            return  # a file written and not remembered would look like an edit
        for path, shown in due.items():
            with self._going_on_without(path):
                if shown.text is None:
                    remove_durably(path, inside=self._inside)
                else:
                    make_folder(path.parent, inside=self._inside)
                    self._write(path, shown.text)

    def _is_due(self, path: Path, shown: Shown) -> bool:
        """Whether the file must be written: it differs, and nothing prevents it."""
        there = self._hash_of(path)
        with self._going_on_without(path):
            if shown.trouble is not None:
                raise shown.trouble
            if not shown.gives_way:
                self._look_for_edit(path, there, shared=shown.shared)
        return path not in self._unwritable and there != _hash(shown.text)

    def _write(self, path: Path, content: str | bytes) -> None:
        # A half-written file would be left among the user's own.
        write_durably(path, content, inside=self._inside, by_way_of=self._memory.parent)

    @contextlib.contextmanager
    def _going_on_without(self, path: Path) -> Generator[None]:
        """Report an OSError once and go on: no run ends over such a file."""
        try:
            yield
        except OSError as error:
            self._unwritable.add(path)
            if path not in self._reported:
                self._reported.add(path)
                name = path.relative_to(self._inside)
                self._notice(f"{name} cannot be written from here on: {error.strerror}")

    def _look_for_edit(self, path: Path, there: str | None, *, shared: bool) -> None:
        name, ours = self._name(path), self._hashes.get(self._name(path))
        if there is None or (ours is not None and there in ours.hashes):
            return
        if ours is None:
            if not shared and there not in self._earlier.get(name, ()):
                self._keep_copy(path)
            return
        seen = replace(ours, hashes=(*ours.hashes, there))
        if shared:
            self._hashes[name] = seen  # report it once
            self._notice(f"{path.name} was edited; only Windlass's own part of it is written")
            return
        aside = path.with_name(f"{path.name}.edited-{there[:8]}")
        make_folder(self._memory.parent, inside=self._inside)
        with open_to_read(path, inside=self._inside) as file:
            self._write(aside, file.read())
        self._hashes[name] = seen
        self._notice(f"{path.name} was edited; it is never read back: kept as {aside.name}")

    def _keep_copy(self, path: Path) -> None:
        """Keep what another tool wrote, before Windlass writes the file for the first time."""
        copy = self._memory.with_name(f"{path.name}.before")
        make_folder(copy.parent, inside=self._inside)
        with open_to_read(path, inside=self._inside) as file:
            self._write(copy, file.read())

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._inside))

    def _remember(self, due: Mapping[Path, Shown], seq: int) -> None:
        """Store the hashes before the files: a kill in between must not look like an edit."""
        known = dict(self._hashes)
        for path, shown in due.items():
            # Keep the present hash too: the write may fail.
            name, there = self._name(path), self._hash_of(path)
            before = known[name].hashes[-1:] if name in known else ()
            if before and there is not None:
                before = (there,)
            if (hashed := _hash(shown.text)) is not None:
                known[name] = Written(hashes=(*before, hashed), seq=seq)
        if known != self._hashes:
            make_folder(self._memory.parent, inside=self._inside)
            write_durably(self._memory, msgspec.json.encode(known), inside=self._inside)
            self._hashes = known

    def _hash_of(self, path: Path) -> str | None:
        return hash_of(path, inside=self._inside)


def hash_of(path: Path, *, inside: Path) -> str | None:
    """The hash of a plain file, if there is one."""
    with contextlib.suppress(OSError), open_to_read(path, inside=inside) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return None


def remembered(memory: Path, inside: Path) -> Memory:
    """What is remembered there; empty if nothing can be read."""
    errors = (OSError, msgspec.MsgspecError)
    with contextlib.suppress(*errors), open_to_read(memory, inside=inside) as file:
        found = msgspec.json.decode(file.read(), type=dict[str, Written | tuple[str, ...]])
        # Earlier versions kept whole paths, and no position.
        return {
            name.removeprefix(f"{inside}/"): each if isinstance(each, Written) else Written(each)
            for name, each in found.items()
        }
    return {}


def _hash(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()
