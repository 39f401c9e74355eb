"""A workspace as a commit: with an index no agent can reach, hooks never run, nothing hostile in.

What must not be committed is refused with a reason that the Player can act on; what git itself
cannot do is raised, for no Player can mend it.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import anyio.to_thread

from windlass.adapters.git.excludes import made_by_setup
from windlass.adapters.git.git import Output
from windlass.adapters.git.handwork import Handwork, Handworks
from windlass.adapters.git.merges import Merges
from windlass.adapters.git.messages import message
from windlass.adapters.git.snares import MOST_RULES, Snare, first_met, snares
from windlass.adapters.git.store import Store, printable_line
from windlass.errors import GitFailed
from windlass.plan.judges import judges
from windlass.ports import MAX_LISTED, Authorship, Refused, Snapshot

_GITLINK = "160000"
_LONGEST_TOLD = 500
_UNREADABLE = "cannot be read; give it back its permissions or remove it"
_SNARED: Mapping[str, str] = {
    "closed": _UNREADABLE,
    "no file": "is no file that git could read; remove it",
    "repository": "makes a repository inside the repository; remove that .git",
    "too large": f"is too large: git's rules, with those in folders above, may have {MOST_RULES:,} "
    "bytes; shorten or remove it",
}


class Snapshots:
    """Commits workspaces."""

    def __init__(self, store: Store, merges: Merges, *, run: str, max_file_bytes: float) -> None:
        self._store = store
        self._merges = merges
        self._run = run
        self._max_file_bytes = max_file_bytes
        self._handworks = Handworks(store)

    async def take(
        self, author: Authorship, workspace: Path, index: Path, parents: tuple[str, ...], ref: str
    ) -> Snapshot | Refused:
        """Commit all that the workspace holds but by-products, and pin it under `ref`."""
        # Only this process uses that index: a lock is that of a git that was killed.
        index.with_name(f"{index.name}.lock").unlink(missing_ok=True)
        try:
            made = await self._attempt(author, workspace, index, parents, ref)
        except GitFailed:
            made = None
        if made is None:
            # A gc took objects before the pin held them, or a power loss spoilt the index: only
            # hashing everything anew is sure.
            await self._index_anew(index, parents)
            made = await self._attempt(author, workspace, index, parents, ref)
        if made is None:
            raise GitFailed(("rev-list",), 128, f"the objects of {ref} keep disappearing")
        return made

    async def tree(self, workspace: Path, index: Path, parent: str) -> str | Refused:
        """What such a commit would hold, by an index of the caller's; nothing is pinned."""
        await self._index_anew(index, (parent,))
        return await self._written(workspace, index, (parent,))

    async def adopt(self, pinned: str, parents: tuple[str, ...], ref: str) -> Snapshot | None:
        """The commit that an earlier process pinned, if it is all there."""
        if await self._store.is_whole(pinned, beyond=parents):
            return await self._told(pinned, parents)
        await self._store.unpin(ref)
        return None

    async def _attempt(
        self, author: Authorship, workspace: Path, index: Path, parents: tuple[str, ...], ref: str
    ) -> Snapshot | Refused | None:
        """Once through; None when not every object stayed."""
        work = Handwork(parents=parents)
        if author.by_person:
            work = await self._handworks.bring(workspace, parents)
        tree = await self._tree(work, workspace, index, parents)
        if isinstance(tree, Refused):
            return tree
        commit, pins = parents[0], {_left(ref, k): c for k, c in enumerate(work.others, 1)}
        if work.parents != (commit,) or tree != await self._store.tree_of(commit):
            text = message(author, self._run, merging=False)
            commit = await self._store.commit(tree, work.parents, text)
            pins[ref] = commit
        if pins and not await self._pinned(pins, parents):
            return None
        return await self._told(commit, parents)

    async def _tree(
        self, work: Handwork, workspace: Path, index: Path, parents: tuple[str, ...]
    ) -> str | Refused:
        """All that the workspace holds but by-products, as a tree."""
        if work.head is not None:  # what a person committed is tracked, ignored or not
            try:
                await self._store.trees("read-tree", "--reset", work.head, index=index)
            except GitFailed as failure:
                if not await self._store.is_whole(work.head, beyond=parents):
                    raise  # an object is gone; else it has a name that git takes nowhere
                return await self._refused_by_git(failure, index)
        tree = await self._written(workspace, index, parents)
        if isinstance(tree, Refused):
            return tree
        reason = await self._submodule(work, parents[0], tree)
        return tree if reason is None else _refused(reason)

    async def _pinned(self, pins: Mapping[str, str], parents: tuple[str, ...]) -> bool:
        """Pin the commits, unless not every object of them stayed."""
        await self._store.pin(pins)
        if all([await self._store.is_whole(commit, beyond=parents) for commit in pins.values()]):
            return True
        for pin in pins:
            await self._store.unpin(pin)
        return False

    async def _submodule(self, work: Handwork, start: str, tree: str) -> str | None:
        """A repository within the repository that a person committed; `add` would not take one."""
        if work.head is None:
            return None
        listed = await self._store.trees("diff-tree", "-r", "-z", start, tree)
        for entry, path in zip(listed.fields[::2], listed.fields[1::2], strict=True):
            if entry.split()[1] == _GITLINK:
                return f"{path} is a submodule, which Windlass does not work with; remove it"
        return None

    async def _snared(self, found: Iterable[Snare], workspace: Path, index: Path) -> str | None:
        """Why git must not even look there."""

        async def passed_by(folders: list[str]) -> set[str]:
            told = "".join(f"./{folder}\0" for folder in folders)  # or a name might be magic
            said = await self._look(
                workspace, index, "check-ignore", "-z", "--stdin", stdin=told, ok=(0, 1)
            )
            return {path.removeprefix("./") for path in said.fields}

        snare = await first_met(found, passed_by)
        if snare is None:
            return None
        return f"{str(snare.path)[:_LONGEST_TOLD]} {_SNARED[snare.kind]}"

    async def _written(
        self, workspace: Path, index: Path, parents: tuple[str, ...]
    ) -> str | Refused:
        """All that the workspace holds but by-products, as a tree."""
        most = self._max_file_bytes
        found, doubtful = await anyio.to_thread.run_sync(
            lambda: (list(snares(workspace)), dict(_doubtful(workspace, most)))
        )
        if (reason := await self._snared(found, workspace, index)) is not None:
            return _refused(reason)
        try:
            if (reason := await self._untakeable(doubtful, workspace, index)) is not None:
                return _refused(reason)
            await self._look(workspace, index, "add", "--all")
        except GitFailed as failure:
            return await self._refused_by_git(failure, index)
        tree = (await self._store.trees("write-tree", index=index)).text
        if (reason := await self._trespass(tree, parents)) is None:
            return tree
        await self._index_anew(index, parents)  # or what was added or removed there would stay so
        return _refused(reason)

    async def _trespass(self, tree: str, parents: tuple[str, ...]) -> str | None:
        """Another folder of Windlass's own than before: landed, it would command the next run."""
        trees = [await self._store.tree_of(parent) for parent in parents]
        own, *before = await self._store.own(tree, *trees)
        if own in before:
            return None
        [name, *_] = sorted(
            os.fsdecode(entry.path) for entry in own.symmetric_difference(before[0])
        )
        return f"{name} is Windlass's own and no part of a task; put it back as it was or remove it"

    async def _told(self, commit: str, parents: tuple[str, ...]) -> Snapshot:
        tree = await self._store.tree_of(commit)
        changed = tree != await self._store.tree_of(parents[0])
        paths = await self._store.changed_paths(parents[0], commit) if changed else {}
        # Those that judge the work first: nobody can hide them behind a hundred others.
        files = tuple(sorted(paths, key=lambda path: not judges(path)))[:MAX_LISTED]
        return Snapshot(
            commit=commit,
            tree=tree,
            changed=changed,
            files=files,
            created=tuple(path for path in files if paths[path] == "A"),
            deleted=tuple(path for path in files if paths[path] == "D"),
        )

    async def _index_anew(self, index: Path, parents: tuple[str, ...]) -> None:
        """What is tracked, without a word on what the workspace holds of it."""
        tree = parents[0]
        if len(parents) > 1:
            tree, _ = await self._merges.combine(*parents)
        index.unlink(missing_ok=True)
        await self._store.trees("read-tree", tree, index=index)

    async def _untakeable(
        self, doubtful: Mapping[str, str], workspace: Path, index: Path
    ) -> str | None:
        """Why a file of the work cannot be committed; git is asked only where there is such a one.

        For most workspaces have none, and some have one that the work did not touch.
        """
        if not doubtful:
            return None
        kinds = ("--others", "--modified", "--exclude-standard")
        touched = await self._look(workspace, index, "ls-files", "-z", *kinds)
        met = (path for path in touched.fields if path in doubtful)
        return next((f"{path} {doubtful[path]}" for path in met), None)

    async def _look(
        self,
        workspace: Path,
        index: Path,
        *args: str,
        stdin: str | None = None,
        ok: tuple[int, ...] = (0,),
    ) -> Output:
        """What git says of a workspace, of whose by-products it knows."""
        made = made_by_setup(index)
        return await self._store.trees(
            *args, stdin=stdin, ok=ok, work_tree=workspace, index=index, excludes=made
        )

    async def _refused_by_git(self, failure: GitFailed, index: Path) -> Refused:
        """What git itself does not take; raises where git can take nothing at all.

        The next process would meet the same workspace: only its Player can get the run further.
        """
        await self._store.trees("ls-files", "-z", index=index)
        await self._store.text(secrets.token_hex(16))
        lines = failure.stderr.splitlines()
        said = [line[7:] for line in lines if line.startswith(("error: ", "fatal: "))]
        why = said[0] if said else failure.stderr.strip() or str(failure)
        return _refused(f"git cannot commit this: {why}; remove or rename it")


def _doubtful(workspace: Path, most: float) -> Iterator[tuple[str, str]]:
    """Every file there that no commit could take, tracked or not, and why."""
    # Strings, for a Path an entry is slow in a large tree.
    top, folders = str(workspace), [""]
    while folders:
        inner = folders.pop()
        # What cannot be looked into, too deep or closed, git passes by or says so itself.
        with contextlib.suppress(OSError), os.scandir(f"{top}/{inner}") as entries:
            for entry in entries:
                path = inner + entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders += [f"{path}/"] if path != ".git" else []
                elif (why := _why_not(entry, most)) is not None:
                    yield path, why


def _why_not(entry: os.DirEntry[str], most: float) -> str | None:
    """What keeps git from taking a file, or Windlass from letting it."""
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # deleted this moment, which is a change like any other
    if not stat.S_ISREG(found.st_mode):
        return None
    if found.st_size > most:
        size = f"{found.st_size / 1e6:.3g} MB"
        return f"has {size}, more than the {most / 1e6:.3g} MB a file may have"
    # Who may read whatever it is, root for one, is told so by the system alone.
    return None if found.st_mode & stat.S_IRUSR or os.access(entry, os.R_OK) else _UNREADABLE


def _left(ref: str, k: int) -> str:
    """The pin of a commit that a person left beside the work."""
    return f"{ref.rpartition('/')[0]}/left-{k}"


def _refused(reason: str) -> Refused:
    return Refused(reason=printable_line(" ".join(reason.split())))
