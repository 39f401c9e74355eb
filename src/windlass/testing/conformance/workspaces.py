"""What every kind of workspace promises, in addition to its repository. Subclass this instead.

The kinds differ in one thing: a Player can commit in a clone, but not in a linked worktree of the
user's repository, whose git directory is read-only. The result is the same.
"""

from pathlib import PurePath
from typing import ClassVar

from windlass.ports import Repository
from windlass.testing.conformance.landing import LandingContract
from windlass.testing.conformance.repository import BASE, promise


class WorkspaceContract(LandingContract):
    """The promises of a repository, and those of its workspaces."""

    can_commit: ClassVar[bool]
    """Whether a Player can commit in a workspace of this kind."""

    def commit(self, repository: Repository, workspace: PurePath) -> bool:
        """Commit in a workspace as a Player would, in its sandbox; whether that was possible."""
        raise NotImplementedError

    @promise
    async def test_a_player_can_commit_if_its_kind_allows_it(self) -> None:
        """The snapshot is still Windlass's own commit onto the start, with all files."""
        repository = await self.make(BASE)
        start = self.base(repository)
        workspace = await repository.prepare("1.1", 1, start, None)
        self.edit(repository, workspace, {"new": "n\n"})
        assert self.commit(repository, workspace) == self.can_commit
        self.edit(repository, workspace, {"later": "l\n"})
        made = await self.saved(repository, "1.1")
        assert self.parents(repository, made.commit) == (start,)
        assert self.files(repository, made.commit) == {**BASE, "new": "n\n", "later": "l\n"}

    @promise
    async def test_the_next_workspace_knows_nothing_of_the_last(self) -> None:
        """Whether it is new or made from a released one."""
        repository = await self.make(BASE)
        start = self.base(repository)
        for task in ("1.1", "1.2", "1.3"):
            workspace = await repository.prepare(task, 1, start, None)
            assert self.look(repository, workspace) == BASE
            self.edit(repository, workspace, {"new": f"{task}\n", "README": None, "src/main": "x"})
            made = await self.saved(repository, task)
            left = {"new": f"{task}\n", "src/main": "x", "src/other": "two\n"}
            assert self.files(repository, made.commit) == left
            await repository.release(task)

    @promise
    async def test_a_workspace_that_was_deleted_or_emptied_is_made_again(self) -> None:
        """Nothing of it is committed, not even as partial work, and `stands` is false."""
        repository = await self.make({"README": "hello\n"})
        start = self.base(repository)
        for n, empty in enumerate((False, True, False), start=1):
            workspace = await repository.prepare("1.1", n, start, None)
            assert self.look(repository, workspace) == {"README": "hello\n"}
            assert await repository.stands("1.1", start)
            if empty:
                self.edit(repository, workspace, {"README": None})
            else:
                self.discard(repository, workspace)
            assert not await repository.stands("1.1", start)
            made = await self.saved(repository, "1.1", n=n, kind="partial")
            assert (made.commit, made.changed) == (start, False)

    @promise
    async def test_a_throwaway_is_exactly_its_commit(self) -> None:
        """Whatever the last one was used for; `touched` lists the files that were changed in it."""
        repository = await self.make(BASE)
        other = await self.played(repository, "1.1", {"new": "n\n", "README": None})
        for commit in (self.base(repository), other.commit, self.base(repository)):
            async with repository.throwaway(commit, "look") as place:
                assert self.look(repository, place.path) == self.files(repository, commit)
                assert await place.touched() == ()
                self.edit(repository, place.path, {"src/main": "other\n", "stray": "s\n"})
                assert await place.touched() == ("src/main",)
            assert self.look(repository, place.path) is None
