"""The user's repository before and after: the same to the byte, of whatever kind it is."""

import hashlib
import shutil
from pathlib import Path

import pytest

from repositories import Run, User, author, held, write
from windlass.ports import Conflict

pytestmark = pytest.mark.anyio

BASE = {"README": "hello\n", "src/a": "a\n", ".gitignore": "*.log\n"}
OURS = (".windlass", ".git/objects", ".git/refs/windlass", ".git/refs/heads/windlass")
"""What may change: Windlass's folder, the objects, and the refs that carry its name."""


def fingerprint(folder: Path, ours: tuple[str, ...] = OURS) -> dict[str, str]:
    """Every path with its mode, its time and its content."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.startswith(ours):
            continue
        stat = path.lstat()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_dir():
            found[name] = f"{stat.st_mode:o}"
        else:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[name] = f"{stat.st_mode:o} {stat.st_mtime_ns} {digest}"
    return found


def objects(folder: Path) -> list[str]:
    """The objects by name; git touches the times even of borrowed ones, to keep them from a gc."""
    return sorted(str(path) for path in (folder / ".git/objects").rglob("*"))


async def cycle(run: Run, between: "Steps | None" = None) -> str:
    """A whole run's worth of git: turns, a conflict, its round, two merges; the last tip."""
    step = between or Steps()
    base = {**BASE, "README": "one\n"}
    one = await run.play("1.1", {"README": "one\n", "deep/one": "1\n"})
    step()
    two = await run.play("1.2", {"README": "two\n", "src/a": None})
    step()
    tip, said = await run.land("1.1", 1, one.commit, run.base)
    assert said == ""
    await run.repository.release("1.1")
    step()
    told = await run.repository.merge(author("1.2"), 2, two.commit, tip)
    assert isinstance(told, Conflict)
    step()
    workspace = await run.repository.prepare("1.2", 2, two.commit, tip)
    step()
    assert "<<<<<<<" in (workspace / "README").read_text()
    write(workspace, {"README": "both\n"})
    settled = await run.save("1.2", n=2, parents=(two.commit, tip))
    step()
    last, _ = await run.land("1.2", 3, settled.commit, tip)
    step()
    del base["src/a"]
    assert run.user.files(last) == {**base, "README": "both\n", "deep/one": "1\n"}
    return last


class Steps:
    """Something that happens between every two steps."""

    def __call__(self) -> None:
        """Nothing, unless a subclass says so."""


async def test_nothing_of_the_users_is_changed(tmp_path: Path):  # K0 G7
    user = User(tmp_path)
    user.commit(BASE)
    user.commit({"src/a": "a\n"})
    user.git("tag", "-a", "-m", "t", "v1")
    user.git("branch", "other")
    user.git("worktree", "add", "-q", str(tmp_path / "linked"), "other")
    user.git("pack-refs", "--all")
    user.git("remote", "add", "origin", "https://example.org/x")
    write(user.repo, {"README": "uncommitted\n", "untracked": "u\n", "x.log": "ignored\n"})
    user.git("add", "README")
    user.git("stash", "push", "-q", "--keep-index", "-u")
    write(user.repo, {"untracked": "again\n"})
    user.git("status")  # the index is as fresh as it gets
    before = fingerprint(user.repo), fingerprint(user.home), fingerprint(tmp_path / "linked")
    refs = user.refs()

    await cycle(await Run(user).open())
    await (await Run(user).open()).repository.move_tip("0" * 40, user.git("rev-parse", TIP))

    assert (fingerprint(user.repo), fingerprint(user.home)) == before[:2]
    assert fingerprint(tmp_path / "linked") == before[2]
    names = ("refs/windlass/", "refs/heads/windlass/")
    assert {ref: at for ref, at in user.refs().items() if not ref.startswith(names)} == refs
    assert user.git("fsck", "--connectivity-only", "--no-dangling") == ""


TIP = "refs/windlass/p/r1/tip"


async def test_the_users_gc_loses_nothing(tmp_path: Path):
    user = User(tmp_path)
    user.commit(BASE)

    class Gc(Steps):
        def __call__(self) -> None:
            user.git("reflog", "expire", "--expire=now", "--all")
            user.git("gc", "-q", "--prune=now")

    last = await cycle(await Run(user).open(), Gc())
    Gc()()
    assert user.git("rev-parse", TIP) == last
    assert user.git("fsck", "--connectivity-only", "--no-dangling") == ""


class TestKinds:
    """Repositories are of many kinds; a run is the same in all of them."""

    async def test_sha256(self, tmp_path: Path):
        user = User(tmp_path, "--object-format=sha256")
        user.commit(BASE)
        run = await Run(user).open()
        assert len(await cycle(run)) == 64
        workspace = await run.repository.prepare("1.3", 1, run.base, None)
        assert user.git("status", "--porcelain", cwd=workspace) == ""

    async def test_reached_through_a_linked_worktree(self, tmp_path: Path):
        user = User(tmp_path)
        user.commit(BASE)
        linked = tmp_path / "linked"
        user.git("worktree", "add", "-q", "-b", "side", str(linked))
        before = fingerprint(linked), fingerprint(user.repo)
        run = await Run(user, directory=linked).open()
        assert run.origin.root == user.repo
        await cycle(run)
        assert (fingerprint(linked), fingerprint(user.repo)) == before

    async def test_with_its_git_directory_elsewhere(self, tmp_path: Path):
        user = User(tmp_path, f"--separate-git-dir={tmp_path / 'meta'}")
        user.commit(BASE)
        run = await Run(user).open()
        assert (run.origin.root, run.origin.git_dir) == (user.repo, tmp_path / "meta")
        await cycle(run)

    @pytest.mark.parametrize("how", ["absolute", "relative"])
    async def test_that_borrows_its_objects(self, tmp_path: Path, how: str):
        user = User(tmp_path)
        user.commit(BASE)
        lender = user.repo.rename(tmp_path / "lender")
        user.git("clone", "-q", "--shared", str(lender), str(user.repo), cwd=tmp_path)
        if how == "relative":
            alternates = user.repo / ".git/objects/info/alternates"
            alternates.write_text("../../../lender/.git/objects\n")
        before = fingerprint(lender), objects(lender)
        run = await Run(user).open()
        assert run.origin.objects == (user.repo / ".git/objects", lender / ".git/objects")
        await cycle(run)
        assert (fingerprint(lender), objects(lender)) == before
        workspace = await run.repository.prepare("1.3", 1, run.base, None)
        assert user.git("log", "--format=%s", "-p", cwd=workspace)

    async def test_shallow(self, tmp_path: Path):
        user = User(tmp_path)
        user.commit({"old": "o\n"})
        user.commit({**BASE, "old": None})
        whole = user.repo.rename(tmp_path / "whole")
        user.git("clone", "-q", "--depth=1", whole.as_uri(), str(user.repo), cwd=tmp_path)
        run = await Run(user).open()
        await cycle(run)
        workspace = await run.repository.prepare("1.3", 1, run.base, None)
        assert user.git("log", "--format=%s", cwd=workspace) == "user"
        user.git("fetch", "-q", "--unshallow")
        run = await Run(user).open()
        workspace = await run.repository.prepare("1.4", 1, run.base, None)
        assert user.git("log", "--format=%s", cwd=workspace) == "user\nuser"

    async def test_sparse(self, tmp_path: Path):
        user = User(tmp_path)
        user.commit(BASE)
        user.git("sparse-checkout", "set", "src")
        run = await Run(user).open()
        await cycle(run)
        workspace = await run.repository.prepare("1.3", 1, run.base, None)
        assert held(workspace) == BASE

    async def test_under_an_odd_name(self, tmp_path: Path):
        odd = tmp_path / 'it\'s a "big" $HOME; ü'
        odd.mkdir()
        user = User(odd)
        user.commit(BASE)
        run = await Run(user).open()
        await cycle(run)
        workspace = await run.repository.prepare("1.3", 1, run.base, None)
        assert user.git("status", "--porcelain", cwd=workspace) == ""

    async def test_that_was_moved_between_two_processes(self, tmp_path: Path):
        user = User(tmp_path)
        user.commit(BASE)
        first = await (await Run(user).open()).play("1.1", {"one": "1\n"})
        user.repo = shutil.move(user.repo, tmp_path / "moved")
        run = await Run(user).open()
        assert await run.save("1.1") == first
        workspace = await run.repository.prepare("1.1", 2, first.commit, None)
        assert user.git("status", "--porcelain", cwd=workspace) == ""
