"""Merges in memory: no checkout is touched, and no branch shows one before it has passed."""

from windlass.adapters.git.messages import message
from windlass.adapters.git.store import Store, printable_line
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
        try:
            made = await self._attempt(author, commit, tip, ref)
        except GitFailed:
            made = None
        # A gc that ran beside it took some of the objects: all of it is written again, once.
        if made is None and (made := await self._attempt(author, commit, tip, ref)) is None:
            raise GitFailed(("rev-list",), 128, f"the objects of {ref} keep disappearing")
        return made

    async def adopt(self, commit: str, tip: str, ref: str, pinned: str) -> Merged | None:
        """A merge of these two that an earlier process pinned, if it is all there."""
        if not await self._store.is_whole(pinned, beyond=(tip, commit)):
            await self._store.unpin(ref)
        elif await self._store.parents_of(pinned) == (tip, commit):
            return Merged(commit=pinned, tree=await self._store.tree_of(pinned))
        return None

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
        end = rest.index("")
        files = tuple(dict.fromkeys(printable_line(path) for path in rest[:end]))
        said = [f"- {path}" for path in files] + _conflicts(rest[end + 1 :])
        return tree, Conflict(files=files, detail="\n".join(["Conflicts in:", *said]))

    async def _attempt(
        self, author: Authorship, commit: str, tip: str, ref: str
    ) -> Merged | Conflict | None:
        tree, conflict = await self.combine(tip, commit)
        if conflict is not None:
            return conflict
        text = message(author, self._run, merging=True)
        made = await self._store.commit(tree, (tip, commit), text)
        await self._store.pin({ref: made})
        if await self._store.is_whole(made, beyond=(tip, commit)):
            return Merged(commit=made, tree=tree)
        await self._store.unpin(ref)
        return None


def _conflicts(messages: list[str]) -> list[str]:
    """What git says of each conflict: of one without markers nothing else tells.

    Each message is a count, so many paths, its kind and its text.
    """
    said: list[str] = []
    while messages and messages[0].isdigit():
        count = int(messages[0])
        kind, text = messages[count + 1 : count + 3]
        if kind.startswith("CONFLICT"):
            said.append(printable_line(text.strip()))
        del messages[: count + 3]
    return said
