"""Squashed landings on real git: the tree of each commit, its message, how it is found again."""

from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from repositories import Run, User, author, write
from windlass.adapters.git import inspect
from windlass.adapters.git.squash import Part, landed_part
from windlass.ports import Conflict, Merged

BASE = {"README": "hello\n", "lines": "1\n2\n3\n4\n5\n6\n7\n8\n9\n"}


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.commit(BASE)
    return made


async def task(run: Run, number: int, tip: str, files: dict[str, str | bytes | None]) -> str:
    """Merge a task that starts at the tip; returns the new tip."""
    name = f"1.{number}"
    write(await run.repository.prepare(name, 1, tip, None), files)
    saved = await run.save(name, parents=(tip,))
    said = replace(author(name), summary=f"Wrote {', '.join(files)}.", by_agent=True)
    made = await run.repository.merge(said, number, saved.commit, tip)
    assert isinstance(made, Merged), made
    await run.repository.move_tip(tip, made.commit)
    return made.commit


async def tips(run: Run, *works: dict[str, str | bytes | None]) -> list[str]:
    await run.open()
    found = [run.base]
    for number, files in enumerate(works, start=1):
        found.append(await task(run, number, found[-1], files))
    return found[1:]


async def squashed(run: Run, tip: str, onto: str) -> str:
    made = await run.repository.squash(tip, onto)
    assert isinstance(made, Merged), made
    return made.commit


def part(user: User, run: Run, tip: str, commit: str) -> Part:
    ask = inspect.UserGit(user.repo, user.environment).ask
    return landed_part(ask, run.base, tip, commit)


def test_each_task_is_one_commit_of_the_user_with_what_the_agent_said(
    user: User,
) -> None:
    run = Run(user)

    async def go() -> tuple[list[str], str]:
        made = await tips(run, {"one": "1\n"}, {"two": "2\n"})
        return made, await squashed(run, made[-1], run.base)

    made, head = anyio.run(go)
    line = user.git("rev-list", "--reverse", f"{run.base}..{head}").split()
    assert len(line) == 2
    assert user.git("rev-list", "--merges", f"{run.base}..{head}") == ""
    trees = [user.git("rev-parse", f"{commit}^{{tree}}") for commit in line]
    assert trees == [user.git("rev-parse", f"{tip}^{{tree}}") for tip in made]
    assert user.git("log", "-1", "--format=%an <%ae>%n%cn%n%B", line[0]).splitlines() == [
        "Ann User <ann@example.org>",
        "Ann User",
        "1.1: Do 1.1",
        "",
        "Wrote one.",
        "",
        "Windlass-Run: r1",
        "Windlass-Task: 1.1",
        "Windlass-Turn: 1",
        f"Windlass-Merge: {made[0]}",
    ]
    dates = [user.git("log", "-1", "--format=%at %ct", commit) for commit in (line[0], made[0])]
    assert dates[0] == dates[1], "the commit has the date of its merge"


def test_a_conflict_round_is_squashed_with_the_tree_after_its_merge(user: User) -> None:
    """The work of the round has the tip of then as a parent; only first parents are a line."""
    run = Run(user)

    async def go() -> tuple[str, str, str]:
        await run.open()
        theirs = await run.play("1.1", {"README": "theirs\n"})
        mine = await run.play("1.2", {"README": "mine\n", "more": "m\n"})
        first, _ = await run.land("1.1", 1, theirs.commit, run.base)
        assert isinstance(
            await run.repository.merge(author("1.2"), 2, mine.commit, first), Conflict
        )
        place = await run.repository.prepare("1.2", 2, mine.commit, first)
        write(place, {"README": "both\n"})
        settled = await run.save("1.2", n=2, parents=(mine.commit, first))
        tip, _ = await run.land("1.2", 3, settled.commit, first)
        return first, tip, await squashed(run, tip, run.base)

    first, tip, head = anyio.run(go)
    assert user.git("rev-list", "--count", f"{run.base}..{head}") == "2"
    assert user.files(f"{head}~1") == user.files(first)
    assert user.files(head) == user.files(tip) == {**BASE, "README": "both\n", "more": "m\n"}


def test_a_change_that_fits_only_with_the_next_is_in_the_next_commit(user: User) -> None:
    """The branch was changed where the first task wrote, and the second took that back."""
    run = Run(user)

    async def go() -> tuple[str, str]:
        works = ({"README": "task\n", "one": "1\n"}, {"README": "hello\n", "two": "2\n"})
        [*_, tip] = await tips(run, *works)
        mine = user.commit({"README": "mine\n"})
        return mine, await squashed(run, tip, mine)

    mine, head = anyio.run(go)
    first, second = user.git("rev-list", "--reverse", f"{mine}..{head}").split()
    assert user.files(first) == user.files(mine)
    assert "the next\ncommit has both." in user.git("log", "-1", "--format=%b", first)
    assert user.files(second) == {**BASE, "README": "mine\n", "one": "1\n", "two": "2\n"}
    assert user.git("log", "-1", "--format=%(trailers:key=Windlass-Task,valueonly)", first) == "1.1"


def test_a_branch_that_conflicts_with_the_tip_gets_no_commit(user: User) -> None:
    run = Run(user)

    async def go() -> object:
        [tip] = await tips(run, {"README": "task\n"})
        return await run.repository.squash(tip, user.commit({"README": "mine\n"}))

    made = anyio.run(go)
    assert isinstance(made, Conflict)
    assert made.files == ("README",)


def test_only_what_is_there_without_a_gap_counts_as_landed(user: User) -> None:
    """Cherry-picked or rebased commits count by their trailers; the last one alone does not."""
    run = Run(user)

    async def go() -> tuple[list[str], str]:
        made = await tips(run, {"one": "1\n"}, {"two": "2\n"}, {"three": "3\n"})
        return made, await squashed(run, made[-1], run.base)

    made, head = anyio.run(go)
    user.commit({"mine": "m\n"})
    user.git("cherry-pick", head)
    assert part(user, run, made[-1], "main").held == 0
    user.git("reset", "-q", "--hard", "HEAD~1")
    user.git("cherry-pick", f"{head}~2", f"{head}~1")
    found = part(user, run, made[-1], "main")
    assert (found.held, found.is_all, found.has_squashed) == (2, False, True)
    user.git("cherry-pick", head)
    assert part(user, run, made[-1], "main").is_all
    seen = anyio.run(run.repository.look, "main", made[-1])
    assert seen.relation == "holds"


def test_what_an_agent_says_makes_no_branch_look_landed(user: User) -> None:
    """A trailer counts only where git reads one: in the last paragraph."""
    run = Run(user)

    async def go() -> str:
        [tip] = await tips(run, {"one": "1\n"})
        return tip

    tip = anyio.run(go)
    user.commit({"mine": "m\n"}, f"Say it\n\nWindlass-Merge: {tip}\n\nand no trailer")
    assert not part(user, run, tip, "main").is_all


def test_a_branch_that_has_a_part_by_a_plain_landing_gets_the_rest(user: User) -> None:
    run = Run(user)

    async def go() -> tuple[list[str], str]:
        made = await tips(run, {"one": "1\n"}, {"two": "2\n"})
        await run.repository.move_branch("main", run.base, made[0])
        return made, await squashed(run, made[1], made[0])

    made, head = anyio.run(go)
    assert user.git("rev-parse", f"{head}~1") == made[0]
    assert user.files(head) == user.files(made[1])


def test_a_branch_that_was_put_back_gets_the_base_again(user: User) -> None:
    older = user.git("rev-parse", "main")
    user.commit({"base": "b\n"})
    run = Run(user)

    async def go() -> str:
        [tip] = await tips(run, {"one": "1\n"})
        return await squashed(run, tip, older)

    head = anyio.run(go)
    assert user.git("rev-parse", f"{head}~1") == run.base


def test_squashed_commits_that_a_gc_took_are_written_again(user: User) -> None:  # G8
    run = Run(user)

    async def go() -> tuple[str, str]:
        [tip] = await tips(run, {"one": "1\n"})
        first = await squashed(run, tip, run.base)
        await run.repository.close()
        run.store.close()
        path = user.repo / ".git/objects" / first[:2] / first[2:]
        path.unlink()
        return first, await squashed(run, tip, run.base)

    first, again = anyio.run(go)
    assert first == again
    assert user.git("cat-file", "-t", again) == "commit"
