"""A landing that died is taken back or completed: what git half wrote is known, edits are kept."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from repositories import Run, User
from windlass.adapters.git.landing import Move
from windlass.adapters.git.landing_record import Intent, LandingFolder, LandingTarget, is_part
from windlass.errors import RepositoryError

BASE: dict[str, str | bytes | None] = {
    "README": "hello\n",
    "src/main": "one\n",
    "src/other": "two\n",
    "turns/into-a-file/deep": "deep\n",
    "turns-into-a-folder": "flat\n",
    "gone": "gone soon\n",
}
WORK: dict[str, str | bytes | None] = {
    "README": "hello, world, at some length\n",
    "new/folder/file": "new, at some length\n",
    "src/other": None,
    "gone": None,
    "words.txt": "line one\nline two\n",
    ".gitattributes": "*.txt eol=crlf\n",
    "turns/into-a-file/deep": None,
    "turns-into-a-folder": None,
}
TREES = {"turns/into-a-file": "a file now\n", "turns-into-a-folder/file": "in a folder\n"}


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.commit(BASE)
    return made


def merged(user: User) -> tuple[Run, str]:
    run = Run(user)

    async def go() -> str:
        await run.open()
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        for path, text in WORK.items():
            target = workspace / path
            if text is None:
                target.unlink()
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(str(text))
        (workspace / "turns/into-a-file").rmdir()
        for path, text in TREES.items():
            (workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (workspace / path).write_text(text)
        (workspace / "link").symlink_to("README")
        saved = await run.save("1.1")
        return (await run.land("1.1", 1, saved.commit, run.base))[0]

    return run, anyio.run(go)


def die(run: Run, tip: str, *, after: str) -> LandingFolder:
    """Begin a landing as a process that dies before, or after, git has written the files."""
    home = LandingFolder(run.origin.git_dir, run.origin.git_dir)

    async def go() -> None:
        move = Move(
            LandingTarget(
                run.store, run.user.environment, home, run.user.repo, os.open("/dev/null", 0)
            )
        )
        line = f"{run.base} {tip} Ann User <ann@example.org> 1700000000 +0000\twindlass land"
        intent = Intent(
            ref="refs/heads/main", old=run.base, new=tip, line=line, logged=True, files=True
        )
        await move.prepare(intent)
        if after != "intent":
            assert await move.refused() is None
        if after == "written":
            await move.written()

    anyio.run(go)
    assert (run.user.repo / ".git/index.lock").exists()
    return home


def look(user: User, tip: str) -> None:
    """What the next process does first."""
    run = Run(user)

    async def go() -> None:
        await run.open()
        await run.repository.look("main", tip)

    anyio.run(go)


def land(user: User, base: str, tip: str) -> None:
    run = Run(user)

    async def go() -> None:
        await run.open()
        await run.repository.move_branch("main", base, tip)

    anyio.run(go)


def status(user: User) -> list[str]:
    listed = user.git("status", "--porcelain", "--untracked-files=all")
    return [line for line in listed.splitlines() if ".windlass" not in line]


def is_settled(user: User) -> bool:
    return not [*user.repo.glob(".git/**/*.lock"), *user.repo.glob(".git/windlass-land")]


def half(repo: Path) -> None:
    """Some files are written, one in half, one is away and not there yet, one is not begun."""
    (repo / "README").write_text("hello, wor")
    (repo / "new/folder/file").write_text("")
    (repo / "words.txt").write_bytes(b"line one\r\nlin")
    (repo / ".gitattributes").unlink()
    (repo / "src/other").write_text("two\n")


def zeros(repo: Path) -> None:
    """After a power loss the names are there, and not all of the content."""
    (repo / "README").write_bytes(b"\0" * 20)
    (repo / "words.txt").write_bytes(b"line one\r\n" + b"\0" * 10)


def nothing(repo: Path) -> None:
    for name in ("README", "new/folder/file", "words.txt", "turns/into-a-file"):
        (repo / name).unlink()


@pytest.mark.parametrize("state", [lambda _repo: None, half, zeros, nothing])
def test_what_git_half_wrote_is_taken_back_and_lands_the_next_time(  # B4
    user: User, state: Callable[[Path], None]
) -> None:
    run, tip = merged(user)
    user.write({"src/main": "mine\n", "scratch": "untracked\n"})
    die(run, tip, after="files")
    state(user.repo)
    look(user, tip)
    assert status(user) == [" M src/main", "?? scratch"]
    assert user.git("rev-parse", "main") == run.base
    assert (user.repo / "turns/into-a-file/deep").read_text() == "deep\n"
    assert not (user.repo / "new").exists(), "nor the folders that were made for it"
    assert is_settled(user)
    land(user, run.base, tip)
    assert status(user) == [" M src/main", "?? scratch"]
    assert (user.repo / "words.txt").read_bytes() == b"line one\r\nline two\r\n"
    assert (user.repo / "src/main").read_text() == "mine\n"
    assert user.git("reflog", "-1", "--format=%gs", "main") == "windlass land"
    assert user.git("rev-parse", "main", "HEAD", "ORIG_HEAD").split() == [tip, tip, run.base]


@pytest.mark.parametrize("cut", ["nothing", "index", "ref lock", "ref", "half a reflog line"])
def test_a_landing_whose_files_are_all_there_is_completed(user: User, cut: str) -> None:  # B4
    run, tip = merged(user)
    user.write({"src/main": "mine\n"})
    home = die(run, tip, after="written")
    intent = home.read()
    assert intent is not None
    steps = {
        "index": home.swap_index,
        "ref lock": lambda: home.lock_ref(intent),
        "ref": lambda: home.move_ref(intent),
        "half a reflog line": lambda: _begin_reflog(user, intent.line),
    }
    for name, step in steps.items():
        if cut == "nothing":
            break
        step()
        if name == cut:
            break
    look(user, tip)
    assert user.git("rev-parse", "main", "HEAD", "ORIG_HEAD").split() == [tip, tip, run.base]
    assert status(user) == [" M src/main"]
    assert user.git("reflog", "--format=%gs", "main").splitlines().count("windlass land") == 1
    assert user.git("reflog", "--format=%gs", "HEAD").splitlines()[0] == "windlass land"
    assert is_settled(user)


def _begin_reflog(user: User, line: str) -> None:
    with (user.repo / ".git/logs/refs/heads/main").open("a") as log:
        log.write(line[:30])


def test_an_edit_made_since_is_kept_and_in_the_way(user: User) -> None:
    run, tip = merged(user)
    die(run, tip, after="files")
    (user.repo / "README").write_text("hello, world, as I see it\n")
    with pytest.raises(RepositoryError, match="README"):
        land(user, run.base, tip)
    assert (user.repo / "README").read_text() == "hello, world, as I see it\n"
    assert status(user) == [" M README"], "and all else is as it was"
    assert is_settled(user)
    user.git("checkout", "--", "README")
    land(user, run.base, tip)
    assert status(user) == []


def test_a_file_that_was_dirty_before_is_never_taken_for_a_part(user: User) -> None:
    """It is empty, which is the beginning of everything; and git was killed before it refused."""
    run, tip = merged(user)
    user.write({"README": "", "new/folder/file": ""})
    die(run, tip, after="intent")
    look(user, tip)
    assert (user.repo / "README").read_text() == ""
    assert (user.repo / "new/folder/file").read_text() == ""
    assert is_settled(user)


def test_whoever_removed_the_lock_and_went_on_is_not_undone(user: User) -> None:
    run, tip = merged(user)
    die(run, tip, after="files")
    (user.repo / ".git/index.lock").unlink()
    user.git("add", "README")
    user.git("commit", "-q", "-m", "By hand")
    mine = user.git("rev-parse", "main")
    look(user, tip)
    assert user.git("rev-parse", "main") == mine
    assert user.git("show", "main:README") == "hello, world, at some length"
    assert (user.repo / "README").read_text() == "hello, world, at some length\n"
    assert status(user) == [], "what they left alone is as it was"
    assert is_settled(user)


def test_a_lock_of_another_git_is_never_removed(user: User) -> None:
    run, tip = merged(user)
    die(run, tip, after="files")
    (user.repo / ".git/index.lock").unlink()
    (user.repo / ".git/index.lock").write_text(f"windlass land {secrets.token_hex(16)}\n")
    (user.repo / ".git/refs/heads/main.lock").touch()
    look(user, tip)
    assert (user.repo / ".git/index.lock").exists()
    assert (user.repo / ".git/refs/heads/main.lock").exists()
    assert user.git("rev-parse", "main") == run.base


def test_a_linked_worktree_is_settled_too(user: User, tmp_path: Path) -> None:
    run, tip = merged(user)
    user.git("switch", "-q", "-c", "elsewhere")
    linked = tmp_path / "linked"
    user.git("worktree", "add", "-q", str(linked), "main")
    own = Path(user.git("rev-parse", "--absolute-git-dir", cwd=linked))
    home = LandingFolder(own, run.origin.git_dir)

    async def go() -> None:
        move = Move(
            LandingTarget(run.store, user.environment, home, linked, os.open("/dev/null", 0))
        )
        await move.prepare(
            Intent(ref="refs/heads/main", old=run.base, new=tip, line="", logged=True, files=True)
        )
        assert await move.refused() is None

    anyio.run(go)
    (linked / "README").write_text("hello, w")
    look(user, tip)
    assert user.git("status", "--porcelain", cwd=linked) == ""
    assert not (own / "index.lock").exists()
    land(user, run.base, tip)
    assert (linked / "README").read_text() == "hello, world, at some length\n"


def test_configuration_for_the_branch_alone_holds(user: User) -> None:
    run, tip = merged(user)
    (user.home / "for-main").write_text("[core]\n\tautocrlf = true\n")
    user.config(f"includeIf.onbranch:main.path={user.home}/for-main")
    land(user, run.base, tip)
    assert (user.repo / "new/folder/file").read_bytes() == b"new, at some length\r\n"
    assert status(user) == []


@pytest.mark.parametrize(
    ("found", "whole", "is_it"),
    [
        (b"", b"abc", True),
        (b"ab", b"abc", True),
        (b"abc", b"abc", True),
        (b"a\0\0", b"abc", True),
        (b"\0b", b"abc", True),
        (b"abcd", b"abc", False),
        (b"ax", b"abc", False),
    ],
)
def test_a_part_is_a_beginning_with_zeros_at_most(
    found: bytes, whole: bytes, *, is_it: bool
) -> None:
    assert is_part(found, whole) is is_it
