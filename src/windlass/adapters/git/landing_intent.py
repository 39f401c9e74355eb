"""A landing on disk: what it is about to do, which locks are its own, and how it is completed.

Law: nothing that a killed landing leaves can block anything for ever. Git writes the user's files
from a git directory of the landing's own, so that every lock and half-written index of git is in a
folder that can be thrown away. The two locks that keep others out, on the user's index and on their
branch, are made by Windlass and hold a text that only this landing knows. Until `written` is on
disk a landing is rolled back; from then on it is completed.
"""

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from windlass.adapters.exclusive import patiently
from windlass.adapters.files import (
    fsync_dir,
    make_folder,
    read_plainly,
    remove_durably,
    write_durably,
)
from windlass.errors import RepositoryError

HOME = "windlass-land"
"""The folder of a landing, in the git directory of the checkout that it moves."""

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS})
"""How a file system says that it knows no second name for a file."""

_INDEX_PATIENCE = 1.0
"""Seconds to wait for a lock of another git on the index: an editor looks at it all the time."""
_REF_PATIENCE = 5.0
"""Seconds to wait for a lock of another git on the branch."""

_COPIED = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "config.worktree",
    "info/sparse-checkout",
)
"""What git looks at in the git directory of a checkout before it moves it, or while it does."""


class Intent(Struct, frozen=True, kw_only=True):
    """What a landing is about to do."""

    ref: str
    old: str
    new: str
    line: str
    """What the reflogs are to say."""
    logged: bool
    """Whether a reflog is begun where there is none."""
    files: bool
    """Whether a checkout follows."""
    written: bool = False
    """Whether all files of the checkout are in their place, for good."""


class Locked(RepositoryError):
    """Another git holds what the landing needs, or died with it."""

    def __init__(self, lock: Path) -> None:
        super().__init__(
            f"{lock} is there: another git is at work, or one that died has left it",
            hint="let it end, or remove that file if no git is running; then try again",
        )


class Home:
    """The folder of one landing; at most one landing at a time has it."""

    def __init__(self, own: Path, common: Path) -> None:
        """Take the git directory of the checkout, and the one that holds the branches."""
        self.own = own
        self.common = common
        self.folder = own / HOME
        self.at = self.folder / "at"
        """The git directory from which git writes the files."""
        self._token = self.folder / "token"
        self._intent = self.folder / "intent.json"
        self._lock = own / "index.lock"

    def is_there(self) -> bool:
        """Whether a landing goes on here, or has died here."""
        return self.folder.is_dir()

    # Before

    def lock_index(self) -> None:
        """Keep every other git from the index of the checkout."""
        make_folder(self.folder)
        write_durably(self._token, f"windlass land {secrets.token_hex(16)}\n")
        if not patiently(lambda: linked(self._token, self._lock), _INDEX_PATIENCE):
            raise Locked(self._lock)
        fsync_dir(self.own)

    def holds_index(self) -> bool:
        """Whether the lock on the index is there and this landing's own."""
        told = read_plainly(self._token)
        return bool(told) and told == read_plainly(self._lock)

    def furnish(self, old: str) -> None:
        """Make the git directory of the landing's own, as the checkout's is now."""
        make_folder(self.at / "info")
        (self.at / "commondir").write_text(f"{self.common}\n", encoding="utf-8")
        (self.at / "HEAD").write_text(f"{old}\n", encoding="utf-8")
        shared = [path.name for path in self.own.glob("sharedindex.*")]
        for name in (*_COPIED, *shared, "index"):
            # With its times: from them git tells files that were changed since.
            with contextlib.suppress(FileNotFoundError):
                shutil.copy2(self.own / name, self.at / name)

    def begin(self, intent: Intent, paths: Iterable[str] = (), made: Iterable[str] = ()) -> None:
        """Put on record what is about to be done, to which files, and which folders it makes."""
        make_folder(self.folder)
        self._write_list("paths", paths)
        self._write_list("made", made)
        write_durably(self._intent, msgspec.json.encode(intent))

    def read(self) -> Intent | None:
        """What a landing was about to do; None where it did nothing yet, or has done all."""
        try:
            return msgspec.json.decode(self._intent.read_bytes(), type=Intent)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def paths(self) -> list[str]:
        """The files that it may have written, none of them the user's to lose."""
        return self._read_list("paths")

    def made(self) -> list[str]:
        """The folders that were not there before it."""
        return self._read_list("made")

    def _write_list(self, name: str, items: Iterable[str]) -> None:
        write_durably(self.folder / name, b"".join(os.fsencode(item) + b"\0" for item in items))

    def _read_list(self, name: str) -> list[str]:
        data = (self.folder / name).read_bytes()
        return [os.fsdecode(item) for item in data.split(b"\0")[:-1]]

    # After

    def swap_index(self) -> None:
        """Let the checkout have the index that belongs to its files now."""
        if (self.at / "index").exists():
            (self.at / "index").replace(self.own / "index")
            fsync_dir(self.own)

    def is_swapped(self) -> bool:
        """Whether it has."""
        return not (self.at / "index").exists()

    def lock_ref(self, intent: Intent) -> None:
        """Keep every other git from the branch."""
        staged, lock = self.folder / "ref", self._ref_lock(intent)
        make_folder(lock.parent)
        write_durably(staged, f"{intent.new}\n")
        with contextlib.suppress(FileNotFoundError):
            staged.chmod((self.common / intent.ref).stat().st_mode & 0o777)
        taken = patiently(lambda: self._holds_ref(intent) or linked(staged, lock), _REF_PATIENCE)
        if not taken:
            raise Locked(lock)

    def move_ref(self, intent: Intent) -> None:
        """Move the branch, under its lock, to what the lock holds."""
        target = self.common / intent.ref
        if target.is_dir():  # git leaves empty folders where branches were
            for folder, _, _ in os.walk(target, topdown=False):
                Path(folder).rmdir()
        self._ref_lock(intent).replace(target)
        fsync_dir(target.parent)

    def unlock_ref(self, intent: Intent) -> None:
        """Let go of the branch, if this landing has it."""
        if self._holds_ref(intent):
            remove_durably(self._ref_lock(intent))

    def _ref_lock(self, intent: Intent) -> Path:
        path = self.common / intent.ref
        return path.with_name(f"{path.name}.lock")

    def _holds_ref(self, intent: Intent) -> bool:
        """Another process that puts the branch to this very commit loses nothing by it."""
        return read_plainly(self._ref_lock(intent)) == f"{intent.new}\n"

    def log(self, intent: Intent) -> None:
        """Write into the reflogs what happened, once, and where HEAD stood before."""
        logs = [self.common / "logs" / intent.ref]
        if intent.files:
            logs.append(self.own / "logs" / "HEAD")
            write_durably(self.own / "ORIG_HEAD", f"{intent.old}\n", by_way_of=self.folder)
        for log in logs:
            if intent.logged or log.exists():
                _append_once(log, intent.line)

    def leave(self) -> None:
        """Let go of everything; what is left of it without an intent means nothing."""
        remove_durably(self._intent)
        if self.holds_index():
            remove_durably(self._lock)
        shutil.rmtree(self.folder)
        fsync_dir(self.own)


def linked(held: Path, lock: Path) -> bool:
    """Make the lock, at once with what it holds; False where there is one."""
    try:
        os.link(held, lock)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        try:
            fd = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            return False
        with os.fdopen(fd, "wb") as file:
            file.write(held.read_bytes())
            file.flush()
            os.fsync(fd)
    return True


def _append_once(log: Path, line: str) -> None:
    """Append the line, or the rest of it where a killed landing has begun it."""
    make_folder(log.parent)
    data = f"{line}\n".encode(errors="surrogateescape")
    with log.open("ab+") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - len(data)))
        tail = file.read()
        if tail != data:
            begun = tail.rpartition(b"\n")[2]
            file.write(data[len(begun) :] if begun and data.startswith(begun) else data)
            file.flush()
            os.fsync(file.fileno())
    fsync_dir(log.parent)
