"""The record of a landing on disk, and how one that was cut short is undone.

Law: nothing that a killed landing leaves can block anything for ever. Git writes the user's files
from a git directory of the landing's own, so every lock and half-written index of git is in a
folder that can be deleted. Windlass itself makes the two locks that keep others out, on the user's
index and on their branch, and each holds a text that only this landing knows. Until `written` is on
disk a landing is undone; from then on it is completed.

Undoing touches only files that were clean when the landing began, and of these only content that
git can have written: nothing, or content of the old or the new commit, or the beginning of it.
After a power loss there may be zeros in place of what had not reached the disk. A file that holds
anything else is a person's edit, and stays.
"""

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import anyio.to_thread
import msgspec
from msgspec import Struct

from windlass.adapters.files import (
    fsync_dir,
    make_folder,
    read_plainly,
    remove_durably,
    sync_all,
    write_durably,
)
from windlass.adapters.git.git import SUBMODULE, Output, run_user_git
from windlass.adapters.git.store import Store
from windlass.adapters.locks import wait_until
from windlass.errors import GitFailed, RepositoryError

HOME = "windlass-land"
"""The folder of a landing, in the git directory of the checkout that it moves."""

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS})
"""How a file system says that it has no hard links."""

_INDEX_PATIENCE = 1.0
"""Seconds to wait for another git's lock on the index: an editor reads it all the time."""
_REF_PATIENCE = 5.0
"""Seconds to wait for another git's lock on the branch."""

_COPIED = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "config.worktree",
    "info/sparse-checkout",
)
"""What git reads in the git directory of a checkout before and while it moves it."""


class Intent(Struct, frozen=True, kw_only=True):
    """What a landing is about to do."""

    ref: str
    old: str
    new: str
    line: str
    """The new line of the reflogs."""
    logged: bool
    """Whether a reflog is created where there is none."""
    files: bool
    """Whether a checkout follows."""
    written: bool = False
    """Whether all files of the checkout are in place, durably."""


class Locked(RepositoryError):
    """Another git holds a lock that Windlass needs, or died with it."""

    def __init__(self, lock: Path) -> None:
        super().__init__(
            f"{lock} is there: another git is running, or one that died left it",
            hint="wait until it ends, or remove that file if no git is running; then try again",
        )


class LandingFolder:
    """The folder of one landing; at most one landing at a time has it."""

    def __init__(self, own: Path, common: Path) -> None:
        """`own` is the git directory of the checkout, `common` the one with the branches."""
        self.own = own
        self.common = common
        self.folder = own / HOME
        self.at = self.folder / "at"
        """The git directory from which git writes the files."""
        self._token = self.folder / "token"
        self._intent = self.folder / "intent.json"
        self._lock = own / "index.lock"

    def is_there(self) -> bool:
        """Whether a landing is running here, or died here."""
        return self.folder.is_dir()

    # Before

    def lock_index(self) -> None:
        """Keep every other git from the index of the checkout."""
        make_folder(self.folder)
        write_durably(self._token, f"windlass land {secrets.token_hex(16)}\n")
        take_lock(self._token, self._lock, _INDEX_PATIENCE)
        fsync_dir(self.own)

    def holds_index(self) -> bool:
        """Whether the lock on the index is there and is this landing's."""
        token = read_plainly(self._token)
        return bool(token) and token == read_plainly(self._lock)

    def make_git_dir(self, old: str) -> None:
        """Make the landing's own git directory, a copy of the checkout's."""
        make_folder(self.at / "info")
        (self.at / "commondir").write_text(f"{self.common}\n", encoding="utf-8")
        (self.at / "HEAD").write_text(f"{old}\n", encoding="utf-8")
        shared = [path.name for path in self.own.glob("sharedindex.*")]
        for name in (*_COPIED, *shared, "index"):
            # With its times: git compares them to find files that were changed since.
            with contextlib.suppress(FileNotFoundError):
                shutil.copy2(self.own / name, self.at / name)

    def begin(self, intent: Intent, paths: Iterable[str] = (), made: Iterable[str] = ()) -> None:
        """Record what is about to be done, which files may be written, which folders made."""
        make_folder(self.folder)
        self._write_list("paths", paths)
        self._write_list("made", made)
        write_durably(self._intent, msgspec.json.encode(intent))

    def read(self) -> Intent | None:
        """What a landing was about to do; None where it had not begun, or is done."""
        try:
            return msgspec.json.decode(self._intent.read_bytes(), type=Intent)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def paths(self) -> list[str]:
        """The files that it may have written; all were clean before."""
        return self._read_list("paths")

    def made(self) -> list[str]:
        """The folders that did not exist before it."""
        return self._read_list("made")

    def _write_list(self, name: str, items: Iterable[str]) -> None:
        write_durably(self.folder / name, b"".join(os.fsencode(item) + b"\0" for item in items))

    def _read_list(self, name: str) -> list[str]:
        data = (self.folder / name).read_bytes()
        return [os.fsdecode(item) for item in data.split(b"\0")[:-1]]

    # After

    def swap_index(self) -> None:
        """Give the checkout the index that belongs to its new files."""
        if (self.at / "index").exists():
            (self.at / "index").replace(self.own / "index")
            fsync_dir(self.own)

    def is_swapped(self) -> bool:
        return not (self.at / "index").exists()

    def lock_ref(self, intent: Intent) -> None:
        """Keep every other git from the branch."""
        staged, lock = self.folder / "ref", self._ref_lock(intent)
        make_folder(lock.parent)
        write_durably(staged, f"{intent.new}\n")
        with contextlib.suppress(FileNotFoundError):
            staged.chmod((self.common / intent.ref).stat().st_mode & 0o777)
        take_lock(staged, lock, _REF_PATIENCE, is_held=lambda: self._holds_ref(intent))

    def move_ref(self, intent: Intent) -> None:
        """Move the branch by renaming its lock, which holds the new commit."""
        target = self.common / intent.ref
        if target.is_dir():  # git leaves empty folders where branches were
            for folder, _, _ in os.walk(target, topdown=False):
                Path(folder).rmdir()
        self._ref_lock(intent).replace(target)
        fsync_dir(target.parent)

    def unlock_ref(self, intent: Intent) -> None:
        """Release the branch, if this landing locked it."""
        if self._holds_ref(intent):
            remove_durably(self._ref_lock(intent))

    def _ref_lock(self, intent: Intent) -> Path:
        path = self.common / intent.ref
        return path.with_name(f"{path.name}.lock")

    def _holds_ref(self, intent: Intent) -> bool:
        # The same as that of another process that moves it to this very commit, which is fine.
        return read_plainly(self._ref_lock(intent)) == f"{intent.new}\n"

    def log(self, intent: Intent) -> None:
        """Append to the reflogs, once, and write ORIG_HEAD."""
        logs = [self.common / "logs" / intent.ref]
        if intent.files:
            logs.append(self.own / "logs" / "HEAD")
            write_durably(self.own / "ORIG_HEAD", f"{intent.old}\n", by_way_of=self.folder)
        for log in logs:
            if intent.logged or log.exists():
                _append_once(log, intent.line)

    def leave(self) -> None:
        """Release everything. Without an intent, a rest of the folder means nothing."""
        remove_durably(self._intent)
        if self.holds_index():
            remove_durably(self._lock)
        shutil.rmtree(self.folder)
        fsync_dir(self.own)


def take_lock(
    token: Path, lock: Path, patience: float, *, is_held: Callable[[], bool] = lambda: False
) -> None:
    """Create the lock with the token's content; raises Locked where another one stays."""
    if not wait_until(lambda: is_held() or _create_lock(token, lock), patience):
        raise Locked(lock)


def _create_lock(token: Path, lock: Path) -> bool:
    """Create the lock and its content in one step; False where there is one."""
    try:
        os.link(token, lock)
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
            file.write(token.read_bytes())
            file.flush()
            os.fsync(fd)
    return True


def _append_once(log: Path, line: str) -> None:
    """Append the line, or the rest of it where a killed landing wrote the beginning."""
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


_ATTRIBUTES = ".gitattributes"


class LandingTarget(Struct, frozen=True):
    """The checkout that a landing moves, and the user's git there."""

    store: Store
    environment: Mapping[str, str]
    home: LandingFolder
    place: Path
    held: int
    """The open lock file, which git keeps open too."""

    async def git(
        self,
        *args: str,
        within: Mapping[str, str],
        stdin: str = "",
        ok: Sequence[int] = (0,),
    ) -> Output:
        """Run the user's own git in the work tree that `within` names."""
        return await run_user_git(
            *args,
            cwd=Path(within.get("GIT_WORK_TREE", self.place)),
            environment=self.environment,
            within=within,
            stdin=stdin,
            held=(self.held,),
            ok=ok,
        )


class _Found(Struct, frozen=True):
    """A file or a link, as it is on the disk."""

    kind: int
    content: bytes
    executable: bool = False


class Rollback:
    """Undoes one landing."""

    def __init__(self, target: LandingTarget) -> None:
        self._target = target
        self._home = target.home
        self._place = target.place

    async def run(self, intent: Intent) -> None:
        """Put back what the landing wrote, and sync it."""
        mine = set(self._home.paths())
        if not self._home.holds_index():
            # The lock was removed by hand: what has been staged since is a person's decision.
            asked = ("diff-index", "--cached", "--name-only", "-z", intent.old)
            mine -= set((await self._target.git(*asked, within={"GIT_OPTIONAL_LOCKS": "0"})).fields)
        old, new = await self._listed(intent.old), await self._listed(intent.new)
        before = await self._stage("old", old, mine)
        after = await self._stage("new", new, mine)
        for path in sorted(mine - old.keys()):
            if self._is_written(path, after.get(path)):
                (self._place / path).unlink()
        for folder in sorted(self._home.made(), reverse=True):
            with contextlib.suppress(OSError):  # the user has put something there, or it is gone
                (self._place / folder).rmdir()
        lost = [path for path in sorted(mine & old.keys()) if self._is_lost(path, before, after)]
        within = self._within("old", self._place)
        await self._write([path for path in lost if _is_attributes(path)], within)
        await self._write([path for path in lost if not _is_attributes(path)], within)
        await anyio.to_thread.run_sync(sync_all, self._place, self._home.own)

    async def _listed(self, commit: str) -> dict[str, str]:
        """Mode and object of every file of a commit, by path."""
        listed = await self._target.store.trees("ls-tree", "-r", "-z", commit)
        entries = (line.partition("\t") for line in listed.fields)
        found = {path: entry.split() for entry, _, path in entries}
        return {p: f"{mode} {name}" for p, (mode, _, name) in found.items() if mode != SUBMODULE}

    async def _stage(
        self, name: str, listed: Mapping[str, str], mine: set[str]
    ) -> dict[str, _Found]:
        """What git writes for these files of a commit, written into the landing's own folder.

        The attributes come first, because they say how the others are written.
        """
        folder = self._home.folder / f"tree-{name}"
        within = self._within(name, folder)
        index = Path(within["GIT_INDEX_FILE"])
        folder.mkdir(exist_ok=True)
        for left in (index, index.with_name(f"{index.name}.lock")):
            left.unlink(missing_ok=True)
        attributes = [path for path in listed if _is_attributes(path)]
        wanted = sorted(mine & listed.keys())
        entries = "".join(f"{listed[path]}\t{path}\0" for path in {*attributes, *wanted})
        if entries:
            add = ("update-index", "-z", "--index-info")
            await self._target.git(*add, within=within, stdin=entries)
        for paths in (attributes, wanted):
            with contextlib.suppress(GitFailed):  # a filter that fails: those files stay as found
                await self._write(paths, within)
        staged = {path: _found(folder, path) for path in wanted}
        return {path: found for path, found in staged.items() if found is not None}

    def _within(self, index: str, work_tree: Path) -> dict[str, str]:
        return {
            "GIT_DIR": str(self._home.own),
            "GIT_WORK_TREE": str(work_tree),
            "GIT_INDEX_FILE": str(self._home.folder / f"{index}.index"),
        }

    async def _write(self, paths: Sequence[str], within: Mapping[str, str]) -> None:
        if paths:
            asked = ("checkout-index", "--force", "--quiet", "-z", "--stdin")
            names = "".join(f"{path}\0" for path in paths)
            await self._target.git(*asked, within=within, stdin=names)

    def _is_written(self, path: str, after: _Found | None) -> bool:
        """Whether a file is there that the landing added."""
        found = _found(self._place, path)
        return found is not None and after is not None and _is_part(found, after)

    def _is_lost(
        self, path: str, before: Mapping[str, _Found], after: Mapping[str, _Found]
    ) -> bool:
        """Whether a file is not as it was, and only the landing can have changed it."""
        if not _is_reachable(self._place, path):
            return False
        was, found = before.get(path), _found(self._place, path)
        if found is None:
            return not os.path.lexists(self._place / path)
        if found == was:
            return False
        return any(_is_part(found, each) for each in (was, after.get(path)) if each is not None)


def _is_attributes(path: str) -> bool:
    return path.rpartition("/")[2] == _ATTRIBUTES


def _is_reachable(root: Path, path: str) -> bool:
    """Whether every folder above it that exists is a folder, and no link."""
    folder = root
    for part in path.split("/")[:-1]:
        folder /= part
        try:
            if not stat.S_ISDIR(folder.lstat().st_mode):
                return False
        except FileNotFoundError:
            return True
    return True


def _found(root: Path, path: str) -> _Found | None:
    """The file or link under that name; None for nothing, a folder, or anything else."""
    if not _is_reachable(root, path):
        return None
    try:
        status = (root / path).lstat()
    except FileNotFoundError:
        return None
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFLNK:
        return _Found(kind, os.fsencode((root / path).readlink()))
    if kind == stat.S_IFREG:
        return _Found(kind, (root / path).read_bytes(), bool(status.st_mode & stat.S_IXUSR))
    return None


def _is_part(found: _Found, whole: _Found) -> bool:
    if found.kind != whole.kind:
        return False
    if whole.kind == stat.S_IFLNK:
        return found.content == whole.content
    return is_part(found.content, whole.content)


def is_part(found: bytes, whole: bytes) -> bool:
    """Whether `found` can be what is left of a file that was being written."""
    if len(found) > len(whole):
        return False
    if whole.startswith(found):
        return True
    return all(one in {other, 0} for one, other in zip(found, whole, strict=False))
