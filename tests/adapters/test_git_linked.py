"""Kind worktree: linked worktrees of the user's repository, which stay the user's business. G7"""

import shutil
from pathlib import Path

import pytest

from repositories import Run, User, held, inside_walls, write
from windlass.adapters.git.cleaning import Cleaning
from windlass.adapters.git.inspect import refuse_unlinkable
from windlass.core.settings import WorkspaceSettings
from windlass.errors import RepositoryError

pytestmark = pytest.mark.anyio

LINKED = WorkspaceSettings(kind="worktree")


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.commit({"README": "hello\n", "src/a": "a\n"})
    return made


async def opened(user: User, run: str = "r1", settings: WorkspaceSettings = LINKED) -> Run:
    return await Run(user, run=run, settings=settings).open()


def worktrees(user: User) -> dict[str, list[str]]:
    """What git lists, by path; the main one left out."""
    blocks = user.git("worktree", "list", "--porcelain").split("\n\n")[1:]
    lines = [block.splitlines() for block in blocks if block]
    return {first.removeprefix("worktree "): rest for first, *rest in lines}


async def test_it_is_a_worktree_as_git_has_them(user: User):
    run = await opened(user)
    before = (user.repo / ".git/config").read_bytes(), user.refs("refs/heads")
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    head, detached, locked = worktrees(user)[str(workspace)]
    assert (head, detached) == (f"HEAD {run.base}", "detached")
    assert locked.startswith("locked windlass")
    assert user.git("status", "--porcelain", cwd=workspace) == ""
    assert user.git("status", "--porcelain") == ""
    assert ((user.repo / ".git/config").read_bytes(), user.refs("refs/heads")) == before
    user.git("worktree", "prune")
    user.git("gc", "-q", "--prune=now")
    assert str(workspace) in worktrees(user)
    assert user.git("fsck") == ""
    await run.repository.release("1.1")
    assert worktrees(user) == {}


async def test_inside_the_walls_history_can_be_read_and_nothing_written(user: User):
    user.git("config", "http.extraHeader", "Authorization: secret-token")
    user.git("branch", "other")
    run = await opened(user)
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    write(workspace, {"src/a": "b\n"})
    seen = inside_walls(user, workspace, "git status --short && git log --format=%s && git diff")
    assert seen.returncode == 0, seen.stderr
    assert seen.stdout.startswith(b" M src/a\nuser\ndiff --git")
    git = user.repo / ".git"
    for command in (
        "git add -A",
        "git branch -D other",
        "git update-ref refs/heads/main HEAD~0 && git update-ref -d refs/heads/other",
        "git gc --prune=now",
        "git worktree add ../x",
        f"touch {git}/HEAD",
        f"cat {git}/config && grep -q secret {git}/config",
        f"ls {git}/hooks/*",
    ):
        assert inside_walls(user, workspace, command).returncode != 0, command
    assert b"secret" not in inside_walls(user, workspace, "git config --list").stdout
    assert user.refs("refs/heads").keys() == {"refs/heads/main", "refs/heads/other"}


async def test_no_hook_filter_or_setting_of_the_user_runs(user: User, tmp_path: Path):
    trace = tmp_path / "trace"
    hook = user.repo / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\necho hook >> {trace}\n")
    hook.chmod(0o755)
    user.git("config", "core.fsmonitor", f"echo monitor >> {trace}; false")
    user.git("config", "filter.x.smudge", f"echo smudge >> {trace}; cat")
    run = await opened(user)
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    write(workspace, {".gitattributes": "* filter=x\n", "new": "n\n"})
    await run.save("1.1")
    await run.repository.release("1.1")
    await run.repository.prepare("1.2", 1, run.base, None)
    assert not trace.exists()


async def test_a_worktree_that_a_person_removed_is_made_anew_and_said(user: User):
    run = await opened(user)
    made = await run.play("1.1", {"new": "n\n"})
    workspace = run.folders.workspace("1.1")
    user.git("worktree", "remove", "-f", "-f", str(workspace))
    assert await run.repository.prepare("1.1", 2, made.commit, None) == workspace
    assert held(workspace)["new"] == "n\n"
    (said,) = run.notices
    assert said.startswith(
        f"the workspace of 1.1 was gone; it is made again from {made.commit[:10]}"
    )
    assert list(worktrees(user)) == [str(workspace)]


async def test_a_new_workspace_is_nothing_to_say(user: User):
    run = await opened(user)
    await run.play("1.1", {"new": "n\n"})
    await run.repository.release("1.1")
    await run.play("1.1", {"new": "other\n"}, n=2)
    await run.play("1.1", {"new": "more\n"}, n=3)
    assert run.notices == []


async def test_what_a_crash_left_is_tidied_up(user: User):
    run = await opened(user)
    for task in ("1.1", "1.2"):
        await run.repository.prepare(task, 1, run.base, None)
    shutil.rmtree(run.folders.workspace("1.1"))
    assert len(worktrees(user)) == 2
    await opened(user)
    assert list(worktrees(user)) == [str(run.folders.workspace("1.2"))]


async def test_what_is_cleaned_away_is_no_worktree_any_more(user: User):
    run = await opened(user)
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    await Cleaning(run.store, max_file_bytes=1e9, keep=()).remove(workspace)
    assert worktrees(user) == {}


async def test_the_users_own_worktrees_are_left_alone(user: User, tmp_path: Path):
    theirs = tmp_path / "windlass-p-1.1"  # git will call it just as Windlass would
    user.git("worktree", "add", "-q", "--detach", str(theirs))
    run = await opened(user)
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    shutil.rmtree(theirs)
    await run.repository.release("1.1")
    await opened(user)
    assert list(worktrees(user)) == [str(theirs)]
    assert not workspace.exists()


async def test_a_lost_note_is_written_again_for_the_next_player(user: User):
    run = await opened(user)
    await run.play("1.1", {"new": "n\n"})
    shutil.rmtree(user.repo / ".git/worktrees")
    workspace = await run.repository.prepare("1.1", 2, run.base, None)
    assert user.git("status", "--porcelain", cwd=workspace) == "A  new"


async def test_kinds_may_change_between_processes(user: User):
    await (await opened(user)).play("1.1", {"new": "n\n"})
    run = await opened(user, settings=WorkspaceSettings())
    workspace = await run.repository.prepare("1.1", 2, run.base, None)
    assert (workspace / ".git").is_dir()
    assert held(workspace)["new"] == "n\n"
    run = await opened(user, settings=WorkspaceSettings())
    assert worktrees(user) == {}
    run = await opened(user)
    await run.repository.prepare("1.1", 3, run.base, None)
    assert list(worktrees(user)) == [str(workspace)]


async def test_another_runs_workspace_is_kept_as_a_worktree(user: User):
    await (await opened(user)).play("1.1", {"new": "n\n"})
    run = await opened(user, "r2")
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    kept = run.folders.home / "kept" / "1.1.r1"
    assert worktrees(user).keys() == {str(workspace), str(kept)}
    assert user.git("status", "--porcelain", cwd=kept) == "A  new"
    assert user.git("status", "--porcelain", cwd=workspace) == ""


async def test_what_it_cannot_serve_is_refused_at_the_start(tmp_path: Path):
    user = User(tmp_path, "--object-format=sha256")
    user.commit({"a": "a\n"})
    origin = Run(user).origin
    refuse_unlinkable(origin, WorkspaceSettings())
    with pytest.raises(RepositoryError, match='kind = "clone"'):
        refuse_unlinkable(origin, LINKED)
