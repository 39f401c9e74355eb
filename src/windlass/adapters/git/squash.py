"""Squashed landings: one commit for each merge of a run, and which of them a branch has.

Law: the tree of a squashed commit is the tree after that merge, as it stands on the line of first
parents from the run's base to its tip. On a branch that has moved it is that tree merged with the
branch. So each commit shows what one task changed, and the last one has the tree of the tip, or of
the merge that a landing without squashing would make.

Each squashed commit names its merge in a trailer. By these trailers a branch is found to have the
work of a run, although it has none of its merges: after a kill at any point, after a pull request
was merged or rebased, and when more tasks were merged since. A merge counts only if the branch has
every earlier one as well.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from windlass.adapters.git.commits import Commits, Merges
from windlass.adapters.git.git import Output, run_uncancelled
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.store import Store
from windlass.core.commit_messages import MERGE
from windlass.errors import GitFailed
from windlass.ports import Conflict, Merged

_FORMAT = f"--format=%H %(trailers:key={MERGE},valueonly,separator=%x20)"
_JOINED = (
    "This change does not fit onto the branch without the next one, so the next\ncommit has both."
)


class Ask(Protocol):
    """A git that answers: the hardened one, or the user's own for reading."""

    def __call__(self, *args: str) -> Output: ...


class Part(Struct, frozen=True, kw_only=True):
    """How much of a run's work a commit has."""

    chain: tuple[str, ...]
    """The merges of the run, the oldest first."""
    held: int
    """How many of them it has, from the first on."""
    squashed: Mapping[str, str]
    """The squashed commits among them, by the merge that each stands for."""

    @property
    def is_all(self) -> bool:
        return bool(self.chain) and self.held == len(self.chain)

    @property
    def has_squashed(self) -> bool:
        return any(merge in self.squashed for merge in self.chain[: self.held])


def landed_part(ask: Ask, base: str, tip: str, commit: str) -> Part:
    """How much of the work between a run's base and its tip the commit has."""
    chain = ask("rev-list", "--first-parent", "--reverse", tip, f"^{base}").text.split()
    own, squashed = set[str](), dict[str, str]()
    asked = ("rev-list", "--no-commit-header", _FORMAT, commit, f"^{base}")
    for line in ask(*asked).text.splitlines():
        name, *merges = line.split()
        own.add(name)
        squashed |= dict.fromkeys(merges, name)
    held = next((i for i, c in enumerate(chain) if c not in own and c not in squashed), len(chain))
    return Part(
        chain=tuple(chain),
        held=held,
        squashed={merge: name for merge, name in squashed.items() if merge not in own},
    )


async def landed_in(store: Store, base: str, tip: str, commit: str) -> Part:
    """The same by the hardened git."""
    return await run_uncancelled(lambda: landed_part(store.trees.run, base, tip, commit))


class Squashes:
    """Squashes the merges of one run."""

    def __init__(self, store: Store, refs: Refs, merges: Merges, commits: Commits) -> None:
        self._store = store
        self._refs = refs
        self._merges = merges
        self._commits = commits

    async def build(self, base: str, tip: str, onto: str) -> Merged | Conflict:
        """Write a commit onto `onto` for each merge that it lacks, and pin the last.

        One that an earlier call pinned is found again.
        """
        ref = self._refs.squash(onto, tip, signed=self._commits.signs_landings)
        pinned = (await self._store.pins(ref)).get(ref)
        if pinned is not None:
            if await self._store.is_whole(pinned, beyond=(onto, tip)):
                return await self._as_merged(pinned)
            await self._store.unpin(ref)
        part = await landed_in(self._store, base, tip, onto)
        made = await self._write(part, base, onto)
        if isinstance(made, Conflict):
            return made
        await self._store.pin({ref: made})
        if not await self._store.is_whole(made, beyond=(onto, tip)):  # a gc was quicker
            await self._store.unpin(ref)
            raise GitFailed(("rev-list",), 128, f"the objects of {ref} keep disappearing")
        return await self._as_merged(made)

    async def _as_merged(self, commit: str) -> Merged:
        return Merged(commit=commit, tree=await self._store.tree_of(commit))

    async def _write(self, part: Part, base: str, onto: str) -> str | Conflict:
        left = part.chain[part.held :]
        # A branch that was put back behind the base gets the base again, as it would by a merge.
        start = base if await self._store.is_ancestor(onto, base) else onto
        known = part.chain[part.held - 1] if part.held else base
        by_trailer = known in part.squashed
        at = start
        for merge in left:
            tree, conflict = await self._tree(known, start, merge, by_trailer=by_trailer)
            if conflict is not None and merge == left[-1]:
                return conflict
            # Its change needs a later one to fit; the commit that fits has both.
            fits = tree if conflict is None else await self._store.tree_of(at)
            note = _JOINED if conflict is not None else ""
            at = await self._commits.squash(merge, fits, at, note=note)
        return at

    async def _tree(
        self, known: str, start: str, merge: str, *, by_trailer: bool
    ) -> tuple[str, Conflict | None]:
        """The files after this merge, on top of `start`, which has all up to `known`."""
        before, now, after = [await self._store.tree_of(each) for each in (known, start, merge)]
        if before == now:
            return after, None
        if not by_trailer:
            return await self._merges.combine(start, merge)
        # Git would find the run's base as the common ancestor of the two, and so every squashed
        # change on both sides. What they have in common is `known`.
        ancestor = await self._store.commit(before, (), "common\n")
        ours = await self._store.commit(now, (ancestor,), "ours\n")
        theirs = await self._store.commit(after, (ancestor,), "theirs\n")
        return await self._merges.combine(ours, theirs)
