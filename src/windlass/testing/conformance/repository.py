"""What every repository promises. Subclass the contract, provide the repository, run it.

    class TestMine(RepositoryContract):
        async def make(self, base): return MyRepository(base)
        async def reopen(self, repository): return MyRepository.over(repository.storage)
        ...                              # and access to what the port does not show

Each test's name is the promise. The tests use only the port, and import no test framework.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from pathlib import PurePath
from typing import Literal, TypeAlias, TypeVar

import anyio

from windlass.errors import RepositoryError
from windlass.ports import Authorship, Conflict, Merged, Refused, Repository, Snapshot

Files: TypeAlias = Mapping[str, str]
Edits: TypeAlias = Mapping[str, str | None]
"""The new content of files, by path; None removes the file."""

BASE = {"README": "hello\n", "src/main": "one\n", "src/other": "two\n"}
SETTLED = {"README": "mine and theirs\n"}
C = TypeVar("C")


def promise(scenario: Callable[[C], Awaitable[None]]) -> Callable[[C], None]:
    """Make an async scenario a test that any test runner can call."""

    @wraps(scenario)
    def test(self: C) -> None:
        anyio.run(scenario, self)

    return test


class RepositoryContract:
    """The promises. A subclass provides the methods that raise NotImplementedError."""

    async def make(self, base: Files) -> Repository:
        """The repository of a new run whose base has these files."""
        raise NotImplementedError

    async def reopen(self, repository: Repository) -> Repository:
        """Open the same storage again, as the next process of the run would."""
        raise NotImplementedError

    def base(self, repository: Repository) -> str:
        """The commit that the run starts from."""
        raise NotImplementedError

    def files(self, repository: Repository, commit: str) -> Files:
        """The files of a commit."""
        raise NotImplementedError

    def parents(self, repository: Repository, commit: str) -> tuple[str, ...]:
        """The parents of a commit."""
        raise NotImplementedError

    def look(self, repository: Repository, workspace: PurePath) -> Files | None:
        """The files of a workspace; None if there is no workspace."""
        raise NotImplementedError

    def edit(self, repository: Repository, workspace: PurePath, edits: Edits) -> None:
        """Change a workspace as a Player would."""
        raise NotImplementedError

    def add_forbidden(self, repository: Repository, workspace: PurePath) -> Callable[[], None]:
        """Add something that must not be committed; returns a function that removes it."""
        raise NotImplementedError

    def discard(self, repository: Repository, workspace: PurePath) -> None:
        """Delete a workspace as a person would."""
        raise NotImplementedError

    @promise
    async def test_a_workspace_begins_with_the_files_of_its_start(self) -> None:
        """All of them, and no others."""
        repository = await self.make(BASE)
        workspace = await repository.prepare("1.1", 1, self.base(repository), None)
        assert self.look(repository, workspace) == BASE

    @promise
    async def test_a_workspace_begins_at_the_requested_commit(self) -> None:
        """A task that depends on another begins with the other's work and does not change it."""
        repository = await self.make(BASE)
        first = await self.played(repository, "1.1", {"new": "n\n"})
        workspace = await repository.prepare("1.2", 1, first.commit, None)
        for folder in (workspace, workspace.with_name("1.1")):
            assert self.look(repository, folder) == {**BASE, "new": "n\n"}

    @promise
    async def test_a_second_prepare_keeps_the_files(self) -> None:
        """The next Player continues from the last one's files, saved or not."""
        repository = await self.make(BASE)
        start = self.base(repository)
        workspace = await repository.prepare("1.1", 1, start, None)
        self.edit(repository, workspace, {"new": "n\n", "README": None})
        for repository in (repository, await self.reopen(repository)):  # noqa: B020  the next process's
            assert await repository.prepare("1.1", 2, start, None) == workspace
            kept = {"new": "n\n", "src/main": "one\n", "src/other": "two\n"}
            assert self.look(repository, workspace) == kept

    @promise
    async def test_a_snapshot_is_what_the_workspace_holds(self) -> None:
        """It has and lists the new, changed and removed files."""
        repository = await self.make(BASE)
        edits = {"deep/down/new": "n\n", "src/main": "uno\n", "README": None}
        made = await self.played(repository, "1.1", edits)
        expected = {"deep/down/new": "n\n", "src/main": "uno\n", "src/other": "two\n"}
        assert self.files(repository, made.commit) == expected
        assert self.parents(repository, made.commit) == (self.base(repository),)
        assert made.changed
        assert sorted(made.files) == ["README", "deep/down/new", "src/main"]
        assert made.created == ("deep/down/new",)
        assert made.deleted == ("README",)

    @promise
    async def test_a_diff_has_one_patch_per_file(self) -> None:
        """The patch says whether the file is new, changed or deleted."""
        repository = await self.make(BASE)
        edits = {"deep/down/new": "n\n", "src/main": "uno\n", "README": None}
        made = await self.played(repository, "1.1", edits)
        patches = await repository.diff(self.base(repository), made.commit)
        found = {patch.path: (patch.what, patch.gone, patch.opaque) for patch in patches}
        assert found == {
            "README": ("deleted", True, False),
            "deep/down/new": ("new", False, False),
            "src/main": ("changed", False, False),
        }
        assert all("uno" in patch.text for patch in patches if patch.path == "src/main")
        assert await repository.diff(made.commit, made.commit) == ()

    @promise
    async def test_a_workspace_that_was_not_changed_is_its_start(self) -> None:
        """No commit is made without changes, also if a change was undone."""
        repository = await self.make(BASE)
        start = self.base(repository)
        workspace = await repository.prepare("1.1", 1, start, None)
        for edits in ({}, {"new": "n\n"}, {"new": None}):
            self.edit(repository, workspace, edits)
        made = await self.saved(repository, "1.1")
        assert (made.commit, made.changed, made.files) == (start, False, ())

    @promise
    async def test_the_tree_is_named_by_its_content(self) -> None:
        """Two tasks with the same files have the same tree; others do not."""
        repository = await self.make(BASE)
        one = await self.played(repository, "1.1", {"new": "n\n"})
        two = await self.played(repository, "1.2", {"new": "n\n"})
        three = await self.played(repository, "1.3", {"new": "other\n"})
        assert one.tree == two.tree != three.tree

    @promise
    async def test_a_snapshot_is_found_again_after_a_crash(self) -> None:
        """A pinned snapshot that was not recorded is adopted, whatever the workspace holds."""
        repository = await self.make(BASE)
        made = await self.played(repository, "1.1", {"new": "n\n"})
        later = await self.reopen(repository)
        workspace = await later.prepare("1.2", 1, self.base(later), None)
        self.edit(later, workspace.with_name("1.1"), {"later": "l\n"})
        assert await self.saved(later, "1.1") == made

    @promise
    async def test_unsaved_work_survives_a_crash(self) -> None:
        """A Player's files are kept as partial work, and the next start continues from them."""
        repository = await self.make(BASE)
        start = self.base(repository)
        workspace = await repository.prepare("1.1", 1, start, None)
        self.edit(repository, workspace, {"half": "h\n"})
        later = await self.reopen(repository)
        partial = await self.saved(later, "1.1", kind="partial")
        assert self.files(later, partial.commit) == {**BASE, "half": "h\n"}
        workspace = await later.prepare("1.1", 2, partial.commit, None)
        self.edit(later, workspace, {"whole": "w\n"})
        made = await self.saved(later, "1.1", n=2, parents=(partial.commit,))
        assert self.files(later, made.commit) == {**BASE, "half": "h\n", "whole": "w\n"}
        assert self.parents(later, made.commit) == (partial.commit,)

    @promise
    async def test_a_start_that_was_never_prepared_has_no_changes(self) -> None:
        """A Player that never began changed nothing, whatever an earlier one did."""
        repository = await self.make(BASE)
        start = self.base(repository)
        assert (await self.saved(repository, "1.1", kind="partial")).commit == start
        made = await self.played(repository, "1.1", {"new": "n\n"})
        workspace = await repository.prepare("1.2", 1, start, None)
        self.edit(repository, workspace.with_name("1.1"), {"later": "l\n"})
        second = await self.saved(repository, "1.1", n=2, kind="partial", parents=(made.commit,))
        assert (second.commit, second.tree, second.changed) == (made.commit, made.tree, False)

    @promise
    async def test_a_workspace_that_a_person_deleted_has_no_changes(self) -> None:
        """Its snapshot is its start, and the next start makes it again."""
        repository = await self.make(BASE)
        start = self.base(repository)
        workspace = await repository.prepare("1.1", 1, start, None)
        self.edit(repository, workspace, {"new": "n\n"})
        self.discard(repository, workspace)
        made = await self.saved(repository, "1.1", kind="partial")
        assert (made.commit, made.changed) == (start, False)
        assert await repository.prepare("1.1", 2, start, None) == workspace
        assert self.look(repository, workspace) == BASE

    @promise
    async def test_what_must_not_be_committed_is_refused(self) -> None:
        """With a reason; once it is removed, the other changes can be committed."""
        repository = await self.make(BASE)
        workspace = await repository.prepare("1.1", 1, self.base(repository), None)
        self.edit(repository, workspace, {"new": "n\n"})
        remove_forbidden = self.add_forbidden(repository, workspace)
        refused = await repository.snapshot(author("1.1"), "snapshot", (self.base(repository),))
        assert isinstance(refused, Refused)
        assert refused.reason
        remove_forbidden()
        await repository.prepare("1.1", 2, self.base(repository), None)
        made = await self.saved(repository, "1.1", n=2)
        assert self.files(repository, made.commit) == {**BASE, "new": "n\n"}

    @promise
    async def test_independent_work_is_merged(self) -> None:
        """Both sides are in the merge, whose parents are the tip and the commit."""
        repository = await self.make(BASE)
        one = await self.played(repository, "1.1", {"one": "1\n", "src/main": "uno\n"})
        two = await self.played(repository, "1.2", {"two": "2\n", "src/other": None})
        first = await self.merged(repository, "1.1", 1, one.commit, self.base(repository))
        second = await self.merged(repository, "1.2", 2, two.commit, first.commit)
        assert self.files(repository, second.commit) == {
            "README": "hello\n",
            "src/main": "uno\n",
            "one": "1\n",
            "two": "2\n",
        }
        assert self.parents(repository, second.commit) == (first.commit, two.commit)

    @promise
    async def test_a_merge_is_found_again_after_a_crash(self) -> None:
        """The pinned candidate is returned."""
        repository = await self.make(BASE)
        base = self.base(repository)
        one = await self.played(repository, "1.1", {"one": "1\n"})
        built = await self.merged(repository, "1.1", 1, one.commit, base)
        later = await self.reopen(repository)
        assert await self.merged(later, "1.1", 1, one.commit, base) == built

    @promise
    async def test_a_conflict_names_its_files(self) -> None:
        """Nothing is merged, and the Player learns where to look."""
        repository = await self.make(BASE)
        tip, mine = await self.conflicting(repository)
        conflict = await repository.merge(author("1.2"), 2, mine, tip)
        assert isinstance(conflict, Conflict)
        assert conflict.files == ("README",)
        assert "README" in conflict.detail

    @promise
    async def test_a_conflict_can_be_resolved(self) -> None:
        """The workspace has both sides, and the Player's result merges cleanly."""
        repository = await self.make(BASE)
        tip, mine = await self.conflicting(repository)
        workspace = await repository.prepare("1.2", 2, mine, tip)
        held = self.look(repository, workspace) or {}
        assert "mine" in held["README"]
        assert "theirs" in held["README"]
        assert held["their file"] == "t\n"
        self.edit(repository, workspace, SETTLED)
        made = await self.saved(repository, "1.2", n=2, parents=(mine, tip))
        assert self.parents(repository, made.commit) == (mine, tip)
        settled = await self.merged(repository, "1.2", 2, made.commit, tip)
        expected = {**BASE, **SETTLED, "my file": "m\n", "their file": "t\n"}
        assert self.files(repository, settled.commit) == expected

    @promise
    async def test_a_round_that_ends_with_the_tips_own_content_still_has_both_parents(self) -> None:
        """Otherwise it would conflict again."""
        repository = await self.make(BASE)
        tip, mine = await self.conflicting(repository)
        workspace = await repository.prepare("1.2", 2, mine, tip)
        self.edit(repository, workspace, {"README": "mine\n", "their file": None})
        made = await self.saved(repository, "1.2", n=2, parents=(mine, tip))
        assert not made.changed
        assert self.parents(repository, made.commit) == (mine, tip)
        assert isinstance(await repository.merge(author("1.2"), 2, made.commit, tip), Merged)

    @promise
    async def test_an_interrupted_round_continues_from_what_was_resolved(self) -> None:
        """Its partial work has both parents, and the next start needs no second merge."""
        repository = await self.make(BASE)
        tip, mine = await self.conflicting(repository)
        workspace = await repository.prepare("1.2", 2, mine, tip)
        self.edit(repository, workspace, SETTLED)
        later = await self.reopen(repository)
        partial = await self.saved(later, "1.2", n=2, kind="partial", parents=(mine, tip))
        assert self.parents(later, partial.commit) == (mine, tip)
        await later.prepare("1.2", 3, partial.commit, None)
        assert (self.look(later, workspace) or {})["README"] == SETTLED["README"]
        merged = await later.merge(author("1.2"), 2, partial.commit, tip)
        assert isinstance(merged, Merged)

    @promise
    async def test_a_refused_round_keeps_what_was_resolved(self) -> None:
        """The next Player gets the resolved files and not the same conflict again."""
        repository = await self.make(BASE)
        tip, mine = await self.conflicting(repository)
        workspace = await repository.prepare("1.2", 2, mine, tip)
        self.edit(repository, workspace, SETTLED)
        remove_forbidden = self.add_forbidden(repository, workspace)
        refused = await repository.snapshot(author("1.2", n=2), "snapshot", (mine, tip))
        assert isinstance(refused, Refused)
        remove_forbidden()
        for repository in (repository, await self.reopen(repository)):  # noqa: B020  the next process's
            await repository.prepare("1.2", 3, mine, tip)
            assert (self.look(repository, workspace) or {})["README"] == SETTLED["README"]
        made = await self.saved(repository, "1.2", n=3, parents=(mine, tip))
        assert self.parents(repository, made.commit) == (mine, tip)

    @promise
    async def test_the_tip_moves_only_from_its_expected_commit(self) -> None:
        """A repeated move succeeds; a move from another commit is refused and changes nothing."""
        repository = await self.make(BASE)
        base = self.base(repository)
        one = await self.played(repository, "1.1", {"one": "1\n"})
        two = await self.played(repository, "1.2", {"two": "2\n"})
        first = await self.merged(repository, "1.1", 1, one.commit, base)
        stale = await self.merged(repository, "1.2", 2, two.commit, base)
        assert not await repository.move_tip(base, first.commit)
        later = await self.reopen(repository)
        assert not await later.move_tip(base, first.commit)
        try:
            await later.move_tip(base, stale.commit)
        except RepositoryError as refused:
            assert first.commit[:10] in str(refused)  # noqa: PT017  no test framework here
        else:
            raise AssertionError("a move from another commit was made")
        good = await self.merged(later, "1.2", 3, two.commit, first.commit)
        assert not await later.move_tip(first.commit, good.commit)

    @promise
    async def test_a_released_workspace_is_gone(self) -> None:
        """It can be released again; the next workspace of the task begins at its start."""
        repository = await self.make(BASE)
        start = self.base(repository)
        workspace = await repository.prepare("1.1", 1, start, None)
        self.edit(repository, workspace, {"new": "n\n"})
        for _ in range(2):
            await repository.release("1.1")
        assert self.look(repository, workspace) is None
        await repository.prepare("1.1", 2, start, None)
        assert self.look(repository, workspace) == BASE

    @promise
    async def test_many_tasks_at_once_do_not_disturb_each_other(self) -> None:
        """Eight in parallel: each has its own workspace, snapshot and merge."""
        repository = await self.make(BASE)
        base = self.base(repository)
        made: dict[str, tuple[Snapshot, Merged]] = {}

        async def task(id_: str) -> None:
            saved = await self.played(repository, id_, {id_: f"{id_}\n", "README": f"{id_}!\n"})
            made[id_] = saved, await self.merged(repository, id_, int(id_), saved.commit, base)

        ids = [str(number) for number in range(1, 9)]
        async with anyio.create_task_group() as group:
            for id_ in ids:
                group.start_soon(task, id_)
        for id_ in ids:
            saved, merged = made[id_]
            expected = {**BASE, id_: f"{id_}\n", "README": f"{id_}!\n"}
            assert self.files(repository, saved.commit) == expected
            assert self.files(repository, merged.commit) == expected
            assert self.parents(repository, merged.commit) == (base, saved.commit)

    async def played(self, repository: Repository, task: str, edits: Edits) -> Snapshot:
        """A task's first start, from the base to its snapshot."""
        workspace = await repository.prepare(task, 1, self.base(repository), None)
        self.edit(repository, workspace, edits)
        return await self.saved(repository, task)

    async def saved(
        self,
        repository: Repository,
        task: str,
        *,
        n: int = 1,
        kind: Literal["snapshot", "partial"] = "snapshot",
        parents: tuple[str, ...] = (),
    ) -> Snapshot:
        """A snapshot that is not refused."""
        onto = parents or (self.base(repository),)
        made = await repository.snapshot(author(task, n=n), kind, onto)
        assert isinstance(made, Snapshot), made
        return made

    async def merged(
        self, repository: Repository, task: str, candidate: int, commit: str, tip: str
    ) -> Merged:
        """A merge without conflicts."""
        built = await repository.merge(author(task), candidate, commit, tip)
        assert isinstance(built, Merged), built
        return built

    async def conflicting(self, repository: Repository) -> tuple[str, str]:
        """A tip, and the snapshot of a task that conflicts with it."""
        theirs = await self.played(repository, "1.1", {"README": "theirs\n", "their file": "t\n"})
        mine = await self.played(repository, "1.2", {"README": "mine\n", "my file": "m\n"})
        base = self.base(repository)
        merged = await self.merged(repository, "1.1", 1, theirs.commit, base)
        await repository.move_tip(base, merged.commit)
        return merged.commit, mine.commit


def author(task: str, *, n: int = 1) -> Authorship:
    """The authorship of the commits in these tests."""
    return Authorship(task=task, title=f"Do {task}", n=n, turn=n)
