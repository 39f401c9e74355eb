"""The integration branch: it shows the tip to people, and never takes anything from them."""

from pathlib import Path

import pytest

from repositories import Run, User

INTEGRATION = "refs/heads/windlass/p/integration"
PINS = "refs/windlass/p/r1"

pytestmark = pytest.mark.anyio


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.commit({"README": "hello\n", "src/a": "a\n"})
    return made


async def merge_twice(user: User, *between: str) -> tuple[str, str, str]:
    """The first tip, the second, and what was said of the second."""
    run = await Run(user).open()
    one = await run.play("1.1", {"one": "1\n"})
    two = await run.play("1.2", {"two": "2\n"})
    first, said = await run.land("1.1", 1, one.commit, run.base)
    assert said == ""
    if between:
        user.git(*between)
    return first, *await run.land("1.2", 2, two.commit, first)


async def test_it_follows(user: User):
    _, second, said = await merge_twice(user)
    assert user.refs(INTEGRATION) == {INTEGRATION: second}
    assert said == ""


async def test_not_while_it_is_checked_out(user: User):
    name = "windlass/p/integration"
    first, second, said = await merge_twice(user, "checkout", "-q", name)
    assert user.refs(INTEGRATION) == {INTEGRATION: first}
    assert said == f"windlass/p/integration is checked out in {user.repo} and stays where it is"
    assert user.refs(PINS)[f"{PINS}/tip"] == second
    assert user.git("status", "--porcelain") == ""


async def test_not_while_it_is_checked_out_in_a_linked_worktree(user: User, tmp_path: Path):
    there, name = str(tmp_path / "linked"), "windlass/p/integration"
    first, _, said = await merge_twice(user, "worktree", "add", "-q", there, name)
    assert user.refs(INTEGRATION) == {INTEGRATION: first}
    assert there in said


async def test_not_while_it_is_being_rebased(user: User, tmp_path: Path):
    """Nothing stands at it meanwhile, and the rebase would find it moved."""
    run = await Run(user).open()
    made = [await run.play(f"1.{i}", {f"{i}": f"{i}\n"}) for i in (1, 2, 3)]
    first, _ = await run.land("1.1", 1, made[0].commit, run.base)
    there = tmp_path / "linked"
    user.git("worktree", "add", "-q", str(there), "windlass/p/integration")
    user.git("config", "sequence.editor", "sed -i 1ibreak")
    user.git("rebase", "-q", "-i", "--root", cwd=there)
    second, said = await run.land("1.2", 2, made[1].commit, first)
    assert said == f"windlass/p/integration is being rebased in {there} and stays where it is"
    assert user.refs(INTEGRATION) == {INTEGRATION: first}
    user.git("rebase", "--abort", cwd=there)
    user.git("checkout", "-q", "--detach", cwd=there)
    third, said = await run.land("1.3", 3, made[2].commit, second)
    assert (user.refs(INTEGRATION), said) == ({INTEGRATION: third}, "")


async def test_not_while_it_is_being_bisected(user: User):
    run = await Run(user).open()
    one = await run.play("1.1", {"one": "1\n"})
    two = await run.play("1.2", {"two": "2\n"})
    first, _ = await run.land("1.1", 1, one.commit, run.base)
    user.git("checkout", "-q", "windlass/p/integration")
    user.git("bisect", "start")
    user.git("checkout", "-q", "--detach", "main")
    _, said = await run.land("1.2", 2, two.commit, first)
    assert said == f"windlass/p/integration is being bisected in {user.repo} and stays where it is"
    assert user.refs(INTEGRATION) == {INTEGRATION: first}


@pytest.mark.parametrize("how", ["link", "alias", "reftable"])
async def test_not_however_git_keeps_where_head_stands(user: User, how: str):
    """Old repositories have a link, a branch may be another's name, new ones have tables."""
    run = await Run(user).open()
    one = await run.play("1.1", {"one": "1\n"})
    two = await run.play("1.2", {"two": "2\n"})
    first, _ = await run.land("1.1", 1, one.commit, run.base)
    user.git("checkout", "-q", "windlass/p/integration")
    head = user.repo / ".git/HEAD"
    if how == "link":
        head.unlink()
        head.symlink_to(INTEGRATION)
    elif how == "alias":
        user.git("symbolic-ref", "refs/heads/alias", INTEGRATION)
        user.git("symbolic-ref", "HEAD", "refs/heads/alias")
    else:
        (user.repo / ".git/reftable").mkdir()
    _, said = await run.land("1.2", 2, two.commit, first)
    assert said == f"windlass/p/integration is checked out in {user.repo} and stays where it is"
    assert user.refs(INTEGRATION) == {INTEGRATION: first}


async def test_not_when_it_holds_somebodys_work(user: User):
    run = await Run(user).open()
    one = await run.play("1.1", {"one": "1\n"})
    two = await run.play("1.2", {"two": "2\n"})
    first, _ = await run.land("1.1", 1, one.commit, run.base)
    tree = f"{INTEGRATION}^{{tree}}"
    theirs = user.git("commit-tree", "-p", INTEGRATION, "-m", "theirs", tree)
    user.git("update-ref", INTEGRATION, theirs)
    _, said = await run.land("1.2", 2, two.commit, first)
    assert said == "windlass/p/integration was moved by someone else and stays where it is"
    assert user.refs(INTEGRATION) == {INTEGRATION: theirs}


async def test_it_is_made_anew_when_somebody_deleted_it_and_that_is_said(user: User):
    name = "windlass/p/integration"
    _, second, said = await merge_twice(user, "branch", "-q", "-D", name)
    assert user.refs(INTEGRATION) == {INTEGRATION: second}
    assert said == "windlass/p/integration was gone; it was created again"


async def test_one_deleted_between_two_processes_is_said_too(user: User):
    run = await Run(user).open()
    one = await run.play("1.1", {"one": "1\n"})
    two = await run.play("1.2", {"two": "2\n"})
    first, _ = await run.land("1.1", 1, one.commit, run.base)
    user.git("branch", "-q", "-D", "windlass/p/integration")
    second, said = await (await Run(user).open()).land("1.2", 2, two.commit, first)
    assert said == "windlass/p/integration was gone; it was created again"
    assert user.refs(INTEGRATION) == {INTEGRATION: second}


async def test_it_catches_up_once_nobody_has_it_checked_out_any_more(user: User):
    run = await Run(user).open()
    made = [await run.play(f"1.{i}", {f"{i}": f"{i}\n"}) for i in (1, 2, 3)]
    first, _ = await run.land("1.1", 1, made[0].commit, run.base)
    user.git("checkout", "-q", "windlass/p/integration")
    second, said = await run.land("1.2", 2, made[1].commit, first)
    assert "checked out" in said
    user.git("checkout", "-q", "main")
    third, said = await run.land("1.3", 3, made[2].commit, second)
    assert (user.refs(INTEGRATION), said) == ({INTEGRATION: third}, "")


async def test_a_new_run_takes_it_over_from_the_last_one(user: User):
    old = await Run(user).open()
    one = await old.play("1.1", {"one": "1\n"})
    tip, _ = await old.land("1.1", 1, one.commit, old.base)
    user.commit({"README": "went on\n"})
    new = await Run(user, run="r2").open()
    two = await new.play("1.1", {"two": "2\n"})
    fresh, said = await new.land("1.1", 1, two.commit, new.base)
    assert (user.refs(INTEGRATION), said) == ({INTEGRATION: fresh}, "")
    assert user.refs(PINS)[f"{PINS}/tip"] == tip


async def test_a_repeated_move_lets_it_follow_too(user: User):
    first, second, _ = await merge_twice(user)
    user.git("update-ref", INTEGRATION, first)
    assert await (await Run(user).open()).repository.move_tip(first, second) == ""
    assert user.refs(INTEGRATION) == {INTEGRATION: second}
