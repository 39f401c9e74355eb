"""What every repository promises about people's work, finished stages and branches.

Subclass this instead of the contract that it extends.
"""

from collections.abc import Awaitable
from pathlib import PurePath

from msgspec.structs import replace

from windlass.core.exchange import MAX_LISTED, Expected
from windlass.errors import RepositoryError
from windlass.ports import Merged, Repository, Seen, Snapshot
from windlass.testing.conformance.repository import BASE, Edits, RepositoryContract, author, promise

BRANCH = "main"
"""The user's branch from which the run began."""


class LandingContract(RepositoryContract):
    """The promises of a repository, and those about people's work in it."""

    def branch(self, repository: Repository, name: str) -> str | None:
        """The commit of one of the user's branches; None if there is no such branch."""
        raise NotImplementedError

    def commit_as_user(self, repository: Repository, edits: Edits) -> str:
        """Commit to the user's branch, as the user."""
        raise NotImplementedError

    def change_uncommitted(self, repository: Repository, path: str) -> None:
        """Change a file in the user's checkout of the branch without committing it."""
        raise NotImplementedError

    def replace_branch(self, repository: Repository) -> str:
        """Move the user's branch to a new commit without parents; returns the commit."""
        raise NotImplementedError

    def remove_branch(self, repository: Repository) -> None:
        """Delete the user's branch."""
        raise NotImplementedError

    def commit_in(self, repository: Repository, workspace: PurePath, message: str) -> str:
        """Commit everything in a workspace, as a person who is not the user."""
        raise NotImplementedError

    def subject(self, repository: Repository, commit: str) -> str:
        """The first line of a commit's message."""
        raise NotImplementedError

    @promise
    async def test_what_a_person_commits_is_kept_below_the_snapshot(self) -> None:
        """Their commits are unchanged; uncommitted changes come on top of them."""
        repository = await self.make(BASE)
        start = self.base(repository)
        workspace = await repository.prepare("1.1", 1, start, None, by_person=True)
        self.edit(repository, workspace, {"one": "1\n"})
        first = self.commit_in(repository, workspace, "The first step")
        again = await repository.prepare("1.1", 1, start, None, by_person=True)
        assert again == workspace, "a second prepare leaves it unchanged"
        self.edit(repository, workspace, {"two": "2\n"})
        second = self.commit_in(repository, workspace, "The second step")
        self.edit(repository, workspace, {"three": "3\n"})
        made = await self.given(repository, "1.1")
        assert self.parents(repository, made.commit) == (second,)
        assert self.parents(repository, second) == (first,)
        assert self.subject(repository, first) == "The first step"
        assert self.files(repository, made.commit) == {
            **BASE,
            "one": "1\n",
            "two": "2\n",
            "three": "3\n",
        }
        assert sorted(made.files) == sorted(made.created) == ["one", "three", "two"]
        later = await self.reopen(repository)
        assert await self.given(later, "1.1") == made

    @promise
    async def test_a_snapshot_is_made_even_if_a_person_committed_everything(self) -> None:
        """It has Windlass's own message and the files of the person's commit."""
        repository = await self.make(BASE)
        workspace = await repository.prepare("1.1", 1, self.base(repository), None, by_person=True)
        self.edit(repository, workspace, {"one": "1\n"})
        mine = self.commit_in(repository, workspace, "All of it")
        made = await self.given(repository, "1.1")
        assert self.parents(repository, made.commit) == (mine,)
        assert self.files(repository, made.commit) == self.files(repository, mine)
        assert made.changed
        merged = await self.merged(repository, "1.1", 1, made.commit, self.base(repository))
        assert self.files(repository, merged.commit) == {**BASE, "one": "1\n"}

    @promise
    async def test_commits_of_a_player_are_not_kept(self) -> None:
        """Only the snapshot of its files counts."""
        repository = await self.make(BASE)
        start = self.base(repository)
        workspace = await repository.prepare("1.1", 1, start, None)
        self.edit(repository, workspace, {"one": "1\n"})
        self.commit_in(repository, workspace, "Looks good to me")
        made = await self.saved(repository, "1.1")
        assert self.parents(repository, made.commit) == (start,)

    @promise
    async def test_a_person_who_did_nothing_has_changed_nothing(self) -> None:
        """No commit is made for it."""
        repository = await self.make(BASE)
        start = self.base(repository)
        await repository.prepare("1.1", 1, start, None, by_person=True)
        made = await self.given(repository, "1.1")
        assert (made.commit, made.changed) == (start, False)

    @promise
    async def test_a_branch_is_behind_the_tip_apart_from_it_or_holds_it(self) -> None:
        """A deleted branch is reported as gone."""
        repository = await self.make(BASE)
        base = self.base(repository)
        tip, _ = await self.landed(repository, {"new": "n\n"})
        assert await repository.look(BRANCH, base) == Seen(commit=base, relation="holds")
        assert await repository.look(BRANCH, tip) == Seen(commit=base, relation="behind")
        mine = self.commit_as_user(repository, {"mine": "m\n"})
        assert await repository.look(BRANCH, tip) == Seen(commit=mine, relation="apart")
        self.remove_branch(repository)
        assert await repository.look(BRANCH, tip) == Seen(commit="", relation="gone")

    @promise
    async def test_a_branch_that_no_longer_holds_the_base_is_detected(self) -> None:
        """To land there would bring back commits that the user removed."""
        repository = await self.make(BASE)
        tip, _ = await self.landed(repository, {"new": "n\n"})
        other = self.replace_branch(repository)
        seen = await repository.look(BRANCH, tip)
        assert seen == Seen(commit=other, relation="apart", rewound=True)

    @promise
    async def test_a_branch_moves_forward_once(self) -> None:
        """A repeated move succeeds, also in the next process."""
        repository = await self.make(BASE)
        base = self.base(repository)
        tip, _ = await self.landed(repository, {"new": "n\n"})
        await repository.move_branch(BRANCH, base, tip)
        assert self.branch(repository, BRANCH) == tip
        later = await self.reopen(repository)
        await later.move_branch(BRANCH, base, tip)
        assert await later.look(BRANCH, tip) == Seen(commit=tip, relation="holds")

    @promise
    async def test_a_branch_that_the_user_moved_stays(self) -> None:
        """Windlass must look at it again first."""
        repository = await self.make(BASE)
        base = self.base(repository)
        tip, _ = await self.landed(repository, {"new": "n\n"})
        mine = self.commit_as_user(repository, {"mine": "m\n"})
        assert await _refused(repository.move_branch(BRANCH, base, tip))
        assert self.branch(repository, BRANCH) == mine

    @promise
    async def test_a_moved_branch_takes_the_tip_by_a_merge(self) -> None:
        """The merge has both, with the branch as its first parent, and the branch moves to it."""
        repository = await self.make(BASE)
        tip, _ = await self.landed(repository, {"new": "n\n"})
        mine = self.commit_as_user(repository, {"mine": "m\n"})
        merge = await self.merged(repository, "", 7, tip, mine)
        assert self.parents(repository, merge.commit) == (mine, tip)
        assert self.files(repository, merge.commit) == {**BASE, "new": "n\n", "mine": "m\n"}
        await repository.move_branch(BRANCH, mine, merge.commit)
        assert (await repository.look(BRANCH, tip)).relation == "holds"

    @promise
    async def test_squashed_merges_are_one_commit_each_with_the_files_after_each(self) -> None:
        """The branch then holds the tip, although the tip is no ancestor; a repetition is same."""
        repository = await self.make(BASE)
        base = self.base(repository)
        first, tip = await self.two_landed(repository)
        made = await self.squashed(repository, tip, base)
        [middle] = self.parents(repository, made.commit)
        assert self.parents(repository, middle) == (base,)
        assert self.files(repository, middle) == self.files(repository, first)
        assert self.files(repository, made.commit) == self.files(repository, tip)
        later = await self.reopen(repository)
        assert await self.squashed(later, tip, base) == made
        await later.move_branch(BRANCH, base, made.commit)
        seen = await later.look(BRANCH, tip)
        assert seen == Seen(commit=made.commit, relation="holds", squashed=True)

    @promise
    async def test_a_moved_branch_gets_squashed_commits_with_its_own_files(self) -> None:
        """In a line, without a merge."""
        repository = await self.make(BASE)
        _, tip = await self.two_landed(repository)
        mine = self.commit_as_user(repository, {"mine": "m\n"})
        made = await self.squashed(repository, tip, mine)
        [middle] = self.parents(repository, made.commit)
        assert self.parents(repository, middle) == (mine,)
        assert self.files(repository, middle) == {**BASE, "mine": "m\n", "new": "1\n"}
        assert self.files(repository, made.commit) == {**self.files(repository, tip), "mine": "m\n"}
        await repository.move_branch(BRANCH, mine, made.commit)
        assert (await repository.look(BRANCH, tip)).relation == "holds"

    @promise
    async def test_what_is_merged_after_a_squashed_landing_is_squashed_onto_it(self) -> None:
        """Even where it changes again what was squashed, and the user has committed since."""
        repository = await self.make(BASE)
        base = self.base(repository)
        first, tip = await self.two_landed(repository)
        part = await self.squashed(repository, first, base)
        await repository.move_branch(BRANCH, base, part.commit)
        mine = self.commit_as_user(repository, {"mine": "m\n"})
        seen = await repository.look(BRANCH, tip)
        assert seen == Seen(commit=mine, relation="apart", squashed=True)
        made = await self.squashed(repository, tip, mine)
        assert self.parents(repository, made.commit) == (mine,)
        assert self.files(repository, made.commit) == {**self.files(repository, tip), "mine": "m\n"}

    @promise
    async def test_a_dirty_file_in_the_way_keeps_the_branch(self) -> None:
        """With a message, and nothing changes."""
        repository = await self.make(BASE)
        base = self.base(repository)
        tip, _ = await self.landed(repository, {"README": "new\n"})
        self.change_uncommitted(repository, "README")
        assert await _refused(repository.move_branch(BRANCH, base, tip))
        assert self.branch(repository, BRANCH) == base

    @promise
    async def test_a_complete_stage_passes_verification(self) -> None:
        """The approved commits are merged, the files exist, and workspaces match their pins."""
        repository = await self.make(BASE)
        tip, made = await self.landed(repository, {"new": "n\n"})
        lost = await self.played(repository, "1.2", {"half": "h\n"})
        expected = Expected(
            merges={"1.1": (tip, made.commit)},
            files={"new": "1.1", "README": "1.1"},
            kept={"1.2": lost.commit},
        )
        assert await repository.verify(tip, expected) == ()

    @promise
    async def test_everything_missing_from_a_stage_has_a_line(self) -> None:
        """Each line names the task."""
        repository = await self.make(BASE)
        tip, made = await self.landed(repository, {"new": "n\n"})
        other = await self.played(repository, "1.2", {"other": "o\n"})
        outside = await self.merged(repository, "1.2", 2, other.commit, tip)
        workspace = await repository.prepare("1.3", 1, tip, None)
        self.edit(repository, workspace, {"never saved": "x\n"})
        expected = Expected(
            merges={
                "1.1": (tip, made.commit),
                "1.2": (outside.commit, outside.commit),
                "1.4": (tip, other.commit),
                "1.5": ("0" * len(tip), tip),
            },
            files={"wanted": "1.1"},
            kept={"1.3": tip},
        )
        lines = await repository.verify(tip, expected)
        tasks = {line.split(":")[0] for line in lines}
        assert tasks == {"1.1", "1.2", "1.3", "1.4", "1.5"}, lines
        assert any("wanted" in line for line in lines if line.startswith("1.1"))

    @promise
    async def test_changed_lists_all_paths_though_a_snapshot_lists_only_some(self) -> None:
        """A pair with an unknown commit is left out."""
        repository = await self.make(BASE)
        many = {f"many/{number:03}": "m\n" for number in range(MAX_LISTED)}
        made = await self.played(repository, "1.1", {**many, "README": "other\n", "zz": "z\n"})
        assert len(made.files) == MAX_LISTED
        pair = (self.base(repository), made.commit)
        changed = await repository.changed((pair, ("0" * len(made.commit), made.commit)))
        assert changed == {pair: {**dict.fromkeys((*many, "zz"), True), "README": False}}

    @promise
    async def test_a_merge_of_a_commit_that_was_not_approved_is_found(self) -> None:
        """Even if both commits are in the tip."""
        repository = await self.make(BASE)
        tip, made = await self.landed(repository, {"new": "n\n"})
        swapped = Expected(merges={"1.1": (tip, self.base(repository))}, files={}, kept={})
        assert len(await repository.verify(tip, swapped)) == 1
        as_it_stands = Expected(merges={"1.1": (tip, tip)}, files={}, kept={})
        assert await repository.verify(tip, as_it_stands) == ()
        assert made.commit != tip

    @promise
    async def test_a_workspace_that_is_set_aside_is_kept_under_another_name(self) -> None:
        """The task starts over with the files of its start; a second call changes nothing."""
        repository = await self.make(BASE)
        start = self.base(repository)
        workspace = await repository.prepare("1.1", 1, start, None)
        self.edit(repository, workspace, {"new": "n\n"})
        for _ in range(2):
            await repository.set_aside("1.1", until=1)
            assert self.look(repository, workspace) is None
        await repository.prepare("1.1", 2, start, None)
        assert self.look(repository, workspace) == BASE

    @promise
    async def test_a_workspace_in_use_again_is_not_set_aside(self) -> None:
        """The task that started over continues with its files."""
        repository = await self.make(BASE)
        start = self.base(repository)
        workspace = await repository.prepare("1.1", 2, start, None)
        self.edit(repository, workspace, {"new": "n\n"})
        await repository.set_aside("1.1", until=1)
        assert self.look(repository, workspace) == {**BASE, "new": "n\n"}

    async def two_landed(self, repository: Repository) -> tuple[str, str]:
        """The tips after two tasks; the second changes a file of the first."""
        first, _ = await self.landed(repository, {"new": "1\n"})
        workspace = await repository.prepare("1.2", 1, first, None)
        self.edit(repository, workspace, {"new": "2\n"})
        again = await self.saved(repository, "1.2", parents=(first,))
        tip = (await self.merged(repository, "1.2", 2, again.commit, first)).commit
        await repository.move_tip(first, tip)
        return first, tip

    async def squashed(self, repository: Repository, tip: str, onto: str) -> Merged:
        """Squashed merges without conflicts."""
        made = await repository.squash(tip, onto)
        assert isinstance(made, Merged), made
        return made

    async def given(self, repository: Repository, task: str) -> Snapshot:
        """The snapshot of what a person hands back."""
        by_person = replace(author(task), by_person=True)
        made = await repository.snapshot(by_person, "snapshot", (self.base(repository),))
        assert isinstance(made, Snapshot), made
        return made

    async def landed(self, repository: Repository, edits: Edits) -> tuple[str, Snapshot]:
        """A tip with one merged task, and that task's snapshot."""
        base = self.base(repository)
        made = await self.played(repository, "1.1", edits)
        merged = await self.merged(repository, "1.1", 1, made.commit, base)
        await repository.move_tip(base, merged.commit)
        return merged.commit, made


async def _refused(call: Awaitable[None]) -> str:
    try:
        await call
    except RepositoryError as refusal:
        return str(refusal)
    raise AssertionError("the branch was moved, and must not be")
