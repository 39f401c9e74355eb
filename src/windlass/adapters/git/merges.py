"""Merges in memory: no checkout is touched, and no branch shows one before it has passed."""

from windlass.adapters.git.messages import message
from windlass.adapters.git.store import Store
from windlass.errors import GitFailed
from windlass.ports import Authorship, Conflict, Merged

CONFLICTED = 1
"""merge-tree's exit code for a merge that needs somebody."""


class Merges:
    """Builds merges."""

    def __init__(self, store: Store, *, run: str) -> None:
        self._store = store
        self._run = run

    async def build(self, author: Authorship, commit: str, tip: str, ref: str) -> Merged | Conflict:
        """The commit merged onto the tip, pinned under `ref`."""
        for _ in range(2):
            tree, conflict = await self.combine(tip, commit)
            if conflict is not None:
                return conflict
            text = message(author, self._run, merging=True)
            made = await self._store.commit(tree, (tip, commit), text)
            await self._store.pin({ref: made})
            if await self._store.is_whole(made, beyond=(tip, commit)):
                return Merged(commit=made, tree=tree)
            await self._store.refs("update-ref", "-d", ref)  # a gc won; write it again
        raise GitFailed(("rev-list",), 128, f"the objects of {ref} keep disappearing")

    async def combine(self, ours: str, theirs: str) -> tuple[str, Conflict | None]:
        """The merged tree, with markers and the conflict where there is one."""
        answer = await self._store.trees(
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--messages",
            ours,
            theirs,
            ok=(0, CONFLICTED),
        )
        tree, *rest = answer.stdout.split("\0")
        if answer.code != CONFLICTED:
            return tree, None
        files = tuple(dict.fromkeys(rest[: rest.index("")]))
        told = "\n".join(f"- {path}" for path in files)
        return tree, Conflict(files=files, detail=f"Conflicts in:\n{told}")
