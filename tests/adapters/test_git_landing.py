"""The user's own branch takes the tip: what moves with it, what stays, and what is refused."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from repositories import Run, User, write
from windlass.adapters.git import inspect
from windlass.adapters.git.inspect import NO_FILTERS, NO_SUBMODULES
from windlass.errors import RepositoryError

BASE = {"README": "hello\n", "src/main": "one\n", "src/other": "two\n"}
WORK = {"README": "hello, world\n", "new/file": "n\n", "src/other": None}


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.commit(BASE)
    return made


def merged(user: User) -> tuple[Run, str]:
    """A run with one task merged, and its tip."""
    run = Run(user)

    async def go() -> str:
        await run.open()
        saved = await run.play("1.1", WORK)
        return (await run.land("1.1", 1, saved.commit, run.base))[0]

    return run, anyio.run(go)


def move(run: Run, old: str, new: str, branch: str = "main") -> None:
    anyio.run(run.repository.move_branch, branch, old, new)


def refused(run: Run, old: str, new: str, branch: str = "main") -> str:
    with pytest.raises(RepositoryError) as refusal:
        move(run, old, new, branch)
    return str(refusal.value)


def status(user: User, folder: Path | None = None) -> list[str]:
    listed = user.git("status", "--porcelain", "--untracked-files=all", cwd=folder)
    return [line for line in listed.splitlines() if ".windlass" not in line]


def test_a_checked_out_branch_takes_its_files_along(user: User) -> None:  # G7
    run, tip = merged(user)
    move(run, run.base, tip)
    assert user.git("rev-parse", "main") == user.git("rev-parse", "HEAD") == tip
    assert user.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert (user.repo / "new/file").read_text() == "n\n"
    assert not (user.repo / "src/other").exists()
    assert status(user) == []
    assert "windlass land" in user.git("reflog", "-1", "main")


def test_other_dirt_stays_as_it_is(user: User) -> None:  # G7
    """Staged, unstaged and untracked, where nothing has to be written."""
    run, tip = merged(user)
    user.write({"src/main": "staged\n", "staged-new": "s\n"})
    user.git("add", "src/main", "staged-new")
    user.write({"src/main": "and unstaged\n", "scratch": "mine\n"})
    before = status(user)
    assert len(before) == 3
    move(run, run.base, tip)
    assert status(user) == before
    assert user.git("show", ":src/main") == "staged"
    assert (user.repo / "src/main").read_text() == "and unstaged\n"
    assert user.git("rev-parse", "HEAD") == tip


def unstaged(user: User) -> None:
    user.write({"README": "mine\n"})


def staged(user: User) -> None:
    user.write({"README": "mine\n"})
    user.git("add", "README")


def deleted(user: User) -> None:
    user.git("rm", "-q", "--cached", "src/other")
    user.write({"src/other": "mine\n"})


def untracked(user: User) -> None:
    user.write({"new/file": "mine\n"})


def ignored(user: User) -> None:
    user.write({"new/file": "mine\n"})
    (user.repo / ".git/info/exclude").write_text("new/\n")


def a_file_for_a_folder(user: User) -> None:
    user.write({"new": "mine\n"})


@pytest.mark.parametrize(
    ("dirty", "path"),
    [
        (unstaged, "README"),
        (staged, "README"),
        (deleted, "src/other"),
        (untracked, "new/file"),
        (ignored, "new/file"),
        (a_file_for_a_folder, "new"),
    ],
)
def test_a_dirty_file_in_the_way_stops_it_whole(  # G7
    user: User, dirty: Callable[[User], None], path: str
) -> None:
    run, tip = merged(user)
    dirty(user)
    before, held = status(user), (user.repo / path).read_text()
    said = refused(run, run.base, tip)
    assert path in said
    assert "commit, stash or move what is in the way, then `windlass land`" in said
    assert user.git("rev-parse", "main") == run.base
    assert status(user) == before
    assert (user.repo / path).read_text() == held == "mine\n"


def test_what_else_git_refuses_for_is_said_without_a_word_on_files(user: User) -> None:
    run, tip = merged(user)
    user.config("merge.verifySignatures=true")
    said = refused(run, run.base, tip)
    assert "does not have a GPG signature" in said
    assert said.endswith("settle that, then `windlass land`")
    assert "in the way" not in said


def test_a_branch_that_nobody_has_checked_out_moves_alone(user: User) -> None:  # G7
    run, tip = merged(user)
    user.git("switch", "-q", "-c", "elsewhere")
    user.write({"README": "mine\n"})
    index = (user.repo / ".git/index").read_bytes()
    move(run, run.base, tip)
    assert user.git("rev-parse", "main") == tip
    assert user.git("rev-parse", "HEAD") == run.base
    assert (user.repo / ".git/index").read_bytes() == index
    assert status(user) == [" M README"]
    assert user.git("reflog", "-1", "--format=%gn %gs", "main") == "Ann User windlass land"


def test_it_follows_in_a_linked_worktree_of_the_users(user: User, tmp_path: Path) -> None:
    run, tip = merged(user)
    user.git("switch", "-q", "-c", "elsewhere")
    linked = tmp_path / "linked tree"
    user.git("worktree", "add", "-q", str(linked), "main")
    write(linked, {"scratch": "mine\n"})
    move(run, run.base, tip)
    assert status(user, linked) == ["?? scratch"]
    assert user.git("rev-parse", "HEAD", cwd=linked) == tip
    assert user.git("rev-parse", "HEAD") == run.base
    assert status(user) == []


def test_a_linked_worktree_is_refused_by_its_own_dirt(user: User, tmp_path: Path) -> None:
    run, tip = merged(user)
    user.git("switch", "-q", "-c", "elsewhere")
    user.git("worktree", "add", "-q", str(tmp_path / "linked"), "main")
    write(tmp_path / "linked", {"README": "mine\n"})
    assert str(tmp_path / "linked") in refused(run, run.base, tip)
    assert user.git("rev-parse", "main") == run.base


def test_a_worktree_that_is_gone_keeps_nobody(user: User, tmp_path: Path) -> None:
    run, tip = merged(user)
    user.git("switch", "-q", "-c", "elsewhere")
    linked = tmp_path / "linked"
    user.git("worktree", "add", "-q", str(linked), "main")
    user.git("worktree", "lock", str(linked))
    linked.rename(tmp_path / "away")
    assert "cannot be reached" in refused(run, run.base, tip)
    user.git("worktree", "unlock", str(linked))
    move(run, run.base, tip)
    assert user.git("rev-parse", "main") == tip


def test_a_branch_in_two_checkouts_is_left_alone(user: User, tmp_path: Path) -> None:
    """Only one of them could follow, and the other would look dirty."""
    run, tip = merged(user)
    user.git("worktree", "add", "-q", "--force", str(tmp_path / "twice"), "main")
    said = refused(run, run.base, tip)
    assert str(user.repo) in said
    assert str(tmp_path / "twice") in said
    assert user.git("rev-parse", "main") == run.base
    assert status(user) == status(user, tmp_path / "twice") == []


def test_a_branch_that_is_being_rebased_or_bisected_is_left_alone(user: User) -> None:
    run, tip = merged(user)
    user.git("switch", "-q", "-c", "topic")
    user.commit({"README": "theirs\n"})
    user.git("switch", "-q", "main")
    mine = user.commit({"README": "mine\n"})
    subprocess.run(["git", "rebase", "topic"], cwd=user.repo, env=user.environment, check=False)
    assert "being rebased" in refused(run, mine, tip)
    user.git("rebase", "--abort")
    user.git("bisect", "start", "HEAD", "HEAD~1")
    user.git("checkout", "-q", "--detach")
    assert "being bisected" in refused(run, mine, tip)
    assert user.git("rev-parse", "main") == mine


def test_a_branch_moves_only_from_where_it_was_seen(user: User) -> None:
    run, tip = merged(user)
    mine = user.commit({"mine": "m\n"})
    said = refused(run, run.base, tip)
    assert mine[:10] in said
    assert user.git("rev-parse", "main") == mine
    assert "nothing" in refused(run, run.base, tip, "gone")


def test_a_branch_that_is_not_behind_is_never_forced(user: User) -> None:
    run, tip = merged(user)
    mine = user.commit({"mine": "m\n"})
    assert f"git did not move it in {user.repo}: " in refused(run, mine, tip)
    assert user.git("rev-parse", "main") == mine
    assert status(user) == []


def test_a_move_that_was_made_is_found_made(user: User) -> None:  # B4
    """A process that died between the move and its record makes it once."""
    run, tip = merged(user)
    move(run, run.base, tip)
    user.write({"README": "edited since\n"})
    again = Run(user)
    anyio.run(again.open)
    move(again, run.base, tip)
    assert status(user) == [" M README"]
    assert user.git("rev-parse", "main") == tip


def seen(run: Run, branch: str, tip: str) -> tuple[str, str]:
    found = anyio.run(run.repository.look, branch, tip)
    return found.commit, found.relation


def test_how_a_branch_stands_to_the_tip(user: User) -> None:
    run, tip = merged(user)
    assert seen(run, "main", tip) == (run.base, "behind")
    mine = user.commit({"mine": "m\n"})
    assert seen(run, "main", tip) == (mine, "apart")
    user.git("merge", "-q", "-m", "both", tip)
    assert seen(run, "main", tip) == (user.git("rev-parse", "main"), "holds")
    assert seen(run, "gone", tip) == ("", "gone")


def test_a_folder_of_branches_is_no_branch(user: User) -> None:
    run, tip = merged(user)
    user.git("branch", "topic/one")
    assert seen(run, "topic", tip) == ("", "gone")
    assert "nothing" in refused(run, run.base, tip, "topic")


@pytest.mark.parametrize("name", ["feature/ä-ö", "-dash", "a=b", "50%off", "x.y{z}", "main.lck"])
def test_branches_with_odd_names_move(user: User, name: str) -> None:
    run, tip = merged(user)
    user.git("update-ref", f"refs/heads/{name}", run.base)
    assert seen(run, name, tip) == (run.base, "behind")
    move(run, run.base, tip, name)
    assert user.git("rev-parse", f"refs/heads/{name}") == tip
    user.git("update-ref", f"refs/heads/{name}", run.base)
    user.git("symbolic-ref", "HEAD", f"refs/heads/{name}")
    move(run, run.base, tip, name)
    assert user.git("rev-parse", f"refs/heads/{name}") == tip
    assert status(user) == []


def test_a_branch_that_stands_for_another_moves_as_that_one(user: User) -> None:
    run, tip = merged(user)
    user.git("branch", "-m", "main", "master")
    user.git("symbolic-ref", "refs/heads/main", "refs/heads/master")
    assert seen(run, "main", tip) == (run.base, "behind")
    move(run, run.base, tip)
    assert user.git("rev-parse", "master") == tip
    assert user.git("symbolic-ref", "refs/heads/main") == "refs/heads/master"
    assert status(user) == []


def test_the_base_is_the_branch_even_where_a_tag_has_its_name(user: User) -> None:
    user.git("tag", "main")
    mine = user.commit({"mine": "m\n"})
    git = inspect.UserGit(user.repo, user.environment)
    for wanted in (None, "main", "heads/main", "refs/heads/main"):
        base = inspect.base(git, wanted)
        assert (base.branch, base.commit) == ("main", mine), wanted
    assert inspect.base(git, "refs/tags/main").branch is None


def test_a_branch_whose_name_is_no_text_is_worked_from_and_not_followed(user: User) -> None:
    name = os.fsdecode(b"caf\xe9")
    user.git("branch", "-m", "main", name)
    base = inspect.base(inspect.UserGit(user.repo, user.environment), None)
    assert base.branch is None
    assert any("not plain text" in warning for warning in base.warnings)


def test_the_users_configuration_holds_and_their_hooks_do_not_run(user: User) -> None:
    """Line endings as they want them; nothing of theirs is run, asked or changed."""
    run, tip = merged(user)
    user.config("core.autocrlf=true", "merge.ff=false", "branch.main.mergeOptions=--squash")
    user.config("merge.autoStash=true", "core.editor=false", "commit.gpgSign=true")
    for hook in ("post-merge", "reference-transaction", "post-checkout", "post-index-change"):
        path = user.repo / ".git/hooks" / hook
        path.write_text('#!/bin/sh\ntouch "$HOME/ran"\nexit 1\n')
        path.chmod(0o755)
    monitor = user.home / "monitor"
    monitor.write_text('#!/bin/sh\ntouch "$HOME/ran"\n')
    monitor.chmod(0o755)
    user.config(f"core.fsmonitor={monitor}")
    move(run, run.base, tip)
    assert (user.repo / "new/file").read_bytes() == b"n\r\n"
    assert user.git("rev-parse", "main") == tip
    assert not (user.home / "ran").exists()


def test_their_checkout_is_written_with_their_environment(user: User, tmp_path: Path) -> None:
    """What this process itself was started with says nothing of the user's configuration."""
    elsewhere = tmp_path / "configuration"
    elsewhere.write_text("[core]\n\tautocrlf = true\n")
    user.environment["GIT_CONFIG_GLOBAL"] = str(elsewhere)
    user.git("config", "user.name", "Ann User")
    user.git("config", "user.email", "ann@example.org")
    run, tip = merged(user)
    move(run, run.base, tip)
    assert (user.repo / "new/file").read_bytes() == b"n\r\n"
    assert status(user) == []


def test_a_lock_of_another_git_is_said(user: User) -> None:
    run, tip = merged(user)
    (user.repo / ".git/index.lock").touch()
    assert "index.lock" in refused(run, run.base, tip)
    assert user.git("rev-parse", "main") == run.base


def test_a_merge_under_way_is_said(user: User) -> None:
    run, tip = merged(user)
    user.git("switch", "-q", "-c", "topic")
    user.commit({"README": "theirs\n"})
    user.git("switch", "-q", "main")
    user.write({"README": "hello\n"})
    user.git("merge", "-q", "--no-commit", "--no-ff", "topic")
    assert "not concluded your merge" in refused(run, run.base, tip)
    assert user.git("rev-parse", "main") == run.base


@pytest.mark.parametrize("what", ["a submodule", "a filter"])
def test_a_branch_that_got_what_windlass_cannot_work_with_is_refused(user: User, what: str) -> None:
    """A real submodule, or Git LFS, that the user committed while the run was working."""
    run, tip = merged(user)
    if what == "a filter":
        user.commit({".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"})
    else:
        other = User(user.home)
        other.commit({"lib": "l\n"})
        allowed = ("-c", "protocol.file.allow=always")
        user.git(*allowed, "submodule", "--quiet", "add", str(other.repo), "vendor/lib")
        user.git("commit", "-q", "-m", "Add a submodule")
    with pytest.raises(RepositoryError) as refusal:
        anyio.run(run.repository.look, "main", tip)
    assert refusal.value.hint == (NO_FILTERS if what == "a filter" else NO_SUBMODULES)
