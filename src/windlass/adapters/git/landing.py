"""The user's own branch takes the tip: forward only, from where it was seen, and with its checkout.

Law: this is the one place that writes to what is the user's, and it does so at their word. Where
the branch is checked out, git itself moves it, as `git merge --ff-only` would at their hands: their
index and files follow, and a dirty file in the way stops it before anything is changed. One that is
dirty by Windlass's own hand alone, which writes a plan's state into its files, makes way.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from windlass.adapters.git.git import act
from windlass.adapters.git.store import Store, printable
from windlass.adapters.git.worktrees import in_the_middle
from windlass.errors import GitFailed, RepositoryError
from windlass.ports import Seen

_HEADS = "refs/heads/"
_TRIES = 3
_IN_THE_WAY = ("would be overwritten", "would be removed", "would lose untracked", "not uptodate")
"""What git says of files that it would spoil."""
_DEEPEST = 5
"""How many symbolic refs in a row are followed; git's own bound."""


Ours: TypeAlias = Callable[[Path, str], Coroutine[Any, Any, Sequence[str]]]
"""The files of a checkout that differ from its commit by what Windlass wrote into them alone."""


async def none_is_ours(_checkout: Path, _commit: str) -> Sequence[str]:
    """Of who writes into no file."""
    return ()


class Branches:
    """Looks at branches of the user's, and moves them forward."""

    def __init__(
        self,
        store: Store,
        environment: Mapping[str, str],
        ours: Ours = none_is_ours,
    ) -> None:
        self._store = store
        self._environment = environment
        """The user's own, for their configuration holds in their checkout."""
        self._ours = ours

    async def look(self, branch: str, tip: str, base: str) -> Seen:
        """Where it stands, how the tip stands to it, and whether it still holds the base."""
        _, commit = await self._found(branch)
        if not commit:
            return Seen(commit="", relation="gone")
        if await self._is_in(tip, commit):
            return Seen(commit=commit, relation="holds")
        behind = await self._is_in(commit, tip)
        rewound = commit != base and not await self._is_in(base, commit)
        return Seen(commit=commit, relation="behind" if behind else "apart", rewound=rewound)

    async def move(self, branch: str, old: str, new: str) -> None:
        """Move it from one commit to the next, or raise with nothing changed."""
        ref, now = await self._found(branch)
        if now == new:
            return
        if now != old:
            raise _stands_elsewhere(branch, now, old)
        origin = self._store.origin
        if busy := in_the_middle(origin.git_dir, origin.root, ref):
            raise RepositoryError(
                f"{branch} {busy}", hint="let git finish that, then `windlass land`"
            )
        checkouts = await self._checkouts(ref)
        if len(checkouts) > 1:
            places = " and ".join(str(path) for path in checkouts)
            raise RepositoryError(
                f"{branch} is checked out in {places}, and only one of them could follow",
                hint="leave it checked out in one, then `windlass land`",
            )
        if checkouts:
            await self._fast_forward(checkouts[0], old, new)
        else:
            await self._update(ref, new, old)
        _, moved = await self._found(branch)
        if moved != new:  # somebody switched or moved it in the very moment
            raise _stands_elsewhere(branch, moved, new)

    async def _found(self, branch: str) -> tuple[str, str]:
        """The ref that the name stands for in the end, and its commit; empty where it is gone."""
        ref = f"{_HEADS}{branch}"
        for _ in range(_DEEPEST):
            listed = await self._store.refs(
                "for-each-ref", "--format=%(refname)%00%(objectname)%00%(symref)", ref
            )
            # What lies below a folder of that name is listed as well.
            lines = (line.split("\0") for line in listed.stdout.split("\n"))
            found = next((line for line in lines if line[0] == ref), None)
            if found is None:
                return ref, ""
            if not found[2]:
                return ref, found[1]
            ref = found[2]
        return ref, ""

    async def _is_in(self, commit: str, other: str) -> bool:
        asked = ("merge-base", "--is-ancestor", commit, other)
        return (await self._store.trees(*asked, ok=(0, 1))).code == 0

    async def _checkouts(self, ref: str) -> list[Path]:
        """The user's checkouts of the branch that are there."""
        listed = await self._store.refs("worktree", "list", "--porcelain", "-z")
        places: list[Path] = []
        for i, entry in enumerate(listed.stdout.split("\0\0")):
            lines = entry.split("\0")
            # Of the first, git knows only where its own folder is.
            first = lines[0].removeprefix("worktree ")
            place = self._store.origin.root if i == 0 else Path(first)
            if f"branch {ref}" not in lines:
                continue
            if place.is_dir():
                places.append(place)
            elif any(line.startswith("locked") for line in lines):
                raise RepositoryError(
                    f"{place}, where {ref.removeprefix(_HEADS)} is checked out, cannot be reached",
                    hint="bring it back, or `git worktree unlock` it; then `windlass land`",
                )
        return places

    async def _update(self, ref: str, new: str, old: str) -> None:
        """Nobody has it checked out: the ref alone moves, if it is where it was."""
        said = ("-m", "windlass land", "--create-reflog")
        root = self._store.origin.root
        try:
            await act("update-ref", *said, ref, new, old, cwd=root, environment=self._environment)
        except GitFailed as failure:
            raise RepositoryError(
                f"git did not move it: {_told(failure)}",
                hint="`windlass land` looks again",
            ) from failure

    async def _fast_forward(self, checkout: Path, old: str, new: str) -> None:
        """As the user's own git would, with their configuration: it writes their files."""
        failure = await self._refused(checkout, new)
        # More than once: what was taken out of a file may have been written again meanwhile.
        for _ in range(_TRIES):
            if failure is None or not (paths := await self._ours(checkout, old)):
                break
            await self._take_back(checkout, paths)
            failure = await self._refused(checkout, new)
        if failure is not None:
            in_the_way = any(said in failure.stderr for said in _IN_THE_WAY)
            cure = "commit, stash or move what is in the way" if in_the_way else "settle that"
            raise RepositoryError(
                f"git did not move it in {checkout}: {_told(failure)}",
                hint=f"{cure}, then `windlass land`",
            ) from failure

    async def _take_back(self, checkout: Path, paths: Sequence[str]) -> None:
        """Not in the index: what somebody has put there is theirs, and stops the landing."""
        theirs = {**self._environment, "GIT_LITERAL_PATHSPECS": "1"}
        asked = ("restore", "--quiet", "--worktree", "--source=HEAD", "--")
        await act(*asked, *paths, cwd=checkout, environment=theirs)

    async def _refused(self, checkout: Path, commit: str) -> GitFailed | None:
        """What git says against it; None when it is done."""
        try:
            await act(
                "merge",
                "--ff-only",
                "--quiet",
                # Whatever the user is used to: theirs is a branch that goes forward, or stays.
                *("--no-squash", "--no-autostash", "--no-stat"),
                "--no-overwrite-ignore",  # an ignored file is somebody's, too
                commit,
                cwd=checkout,
                environment={**self._environment, "GIT_REFLOG_ACTION": "windlass land"},
            )
        except GitFailed as failure:
            return failure
        return None


def _told(failure: GitFailed) -> str:
    """What git said, without its advice on what to do next."""
    lines = [line for line in failure.stderr.splitlines() if line.strip()]
    said = [line.strip() for line in lines if not line.startswith(("hint:", "Aborting", "Please"))]
    return printable(" ".join(said).removeprefix("error: ").removeprefix("fatal: "))


def _stands_elsewhere(branch: str, now: str, expected: str) -> RepositoryError:
    return RepositoryError(
        f"{branch} stands at {now[:10] or 'nothing'} by now, not at {expected[:10]}",
        hint="`windlass land` looks again",
    )
