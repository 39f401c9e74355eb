"""A workspace as a commit: with an index no agent can reach, hooks never run, nothing hostile in.

What must not be committed is refused with a reason that the Player can act on.
"""

import os
import stat
from pathlib import Path

from windlass.adapters.git.messages import message
from windlass.adapters.git.store import Store
from windlass.errors import GitFailed
from windlass.ports import Authorship, Refused, Snapshot

MAX_LISTED = 100
"""How many changed paths are told."""


class Snapshots:
    """Commits workspaces."""

    def __init__(self, store: Store, *, run: str, max_file_bytes: float) -> None:
        self._store = store
        self._run = run
        self._max_file_bytes = max_file_bytes

    async def take(
        self, author: Authorship, workspace: Path, index: Path, parents: tuple[str, ...], ref: str
    ) -> Snapshot | Refused:
        """Commit all that the workspace holds but by-products, and pin it under `ref`."""
        touched = await self._touched(workspace, index)
        if (reason := self._refusal(workspace, touched)) is not None:
            return Refused(reason=reason)
        for fresh_index in (False, True):
            if fresh_index:
                # A gc took objects between the writing and the pin; only hashing all anew is sure.
                index.unlink(missing_ok=True)
                await self._store.trees("read-tree", parents[0], index=index)
            made = await self._write(author, workspace, index, parents)
            if made.commit not in parents:
                await self._store.pin({ref: made.commit})
            if await self._store.is_whole(made.commit, beyond=parents):
                listed = tuple(_printable(path) for path in touched[:MAX_LISTED])
                return Snapshot(
                    commit=made.commit, tree=made.tree, changed=made.changed, files=listed
                )
            await self._store.refs("update-ref", "-d", ref)
        raise GitFailed(("rev-list",), 128, f"the objects of {ref} keep disappearing")

    async def _write(
        self, author: Authorship, workspace: Path, index: Path, parents: tuple[str, ...]
    ) -> Snapshot:
        trees = self._store.trees
        await trees("add", "--all", work_tree=workspace, index=index)
        tree = (await trees("write-tree", index=index)).text
        changed = tree != await self._store.tree_of(parents[0])
        commit = parents[0]
        if changed or len(parents) > 1:
            text = message(author, self._run, merging=False)
            commit = await self._store.commit(tree, parents, text)
        return Snapshot(commit=commit, tree=tree, changed=changed)

    async def _touched(self, workspace: Path, index: Path) -> list[str]:
        """Paths that differ from the index, new ones included, by-products not."""
        listed = await self._store.trees(
            "ls-files",
            "-z",
            "--others",
            "--modified",
            "--exclude-standard",
            work_tree=workspace,
            index=index,
        )
        return list(dict.fromkeys(listed.fields))

    def _refusal(self, workspace: Path, touched: list[str]) -> str | None:
        for path in touched:
            if path.endswith("/"):
                return f"{path}.git makes a repository inside the repository; remove that .git"
            try:
                found = os.lstat(workspace / path)
            except OSError:
                continue  # deleted, which is a change like any other
            if not stat.S_ISREG(found.st_mode):
                continue
            if found.st_size > self._max_file_bytes:
                size, most = found.st_size / 1e6, self._max_file_bytes / 1e6
                return f"{path} has {size:.0f} MB, more than the {most:.0f} MB a file may have"
            if not os.access(workspace / path, os.R_OK):
                return f"{path} cannot be read; give it back its permissions or remove it"
        return None


def _printable(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="replace")
