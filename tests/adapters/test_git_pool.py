"""A checkout from the pool is as one made afresh, whatever whoever had it did to it. G7"""

import contextlib
import mmap
import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import anyio.lowlevel
import pytest

from repositories import Run, User, held, write
from windlass.adapters.git.pool import MOST, Pool, Shelf, ctime_shows_writes, wait_for_later
from windlass.core.settings import WorkspaceSettings

pytestmark = pytest.mark.anyio

FIRST = {
    "README": "hello\n",
    "a": "aaaa\n",
    "b": "bbbb\n",
    "src/deep/one": "one\n",
    "src/deep/two": "two\n",
    "src/three": "three\n",
    "gone/with/it": "x\n",
    ".gitignore": "*.log\nbuild/\n",
}
Which = tuple[int, int]
SECOND = {"README": "hello again\n", "gone/with/it": None, "src/new": "new\n"}


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    (made.repo / "link").symlink_to("src/three")
    (made.repo / "tool").write_text("#!/bin/sh\n")
    (made.repo / "tool").chmod(0o755)
    made.commit(FIRST)
    return made


async def lent(run: Run, commit: str, mischief: Callable[[Path], object], then: Shelf) -> Which:
    """Let somebody have a checkout; which file "a" was there."""
    async with run.repository.throwaways.checkout(commit, "x", then=then) as place:
        which = which_file(place.path / "a")
        mischief(place.path)
    return which


def which_file(path: Path) -> Which:
    """Tells a file from another in its place; an inode alone is soon given again."""
    found = path.lstat()
    return found.st_ino, found.st_ctime_ns


def fingerprint(folder: Path) -> dict[str, tuple[object, ...]]:
    """All there is to see of a checkout, but for times and inodes."""
    seen: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        name, found = str(path.relative_to(folder)), path.lstat()
        if name == ".git/index":
            continue  # it notes times and inodes
        content: object = None
        if stat.S_ISLNK(found.st_mode):
            content = str(path.readlink())
        elif stat.S_ISREG(found.st_mode):
            # Its objects lie beside it, and are a part of what there is to see.
            content = path.read_bytes().replace(os.fsencode(folder.parent), b"")
        links = found.st_nlink if stat.S_ISREG(found.st_mode) else 1
        seen[name] = found.st_mode, found.st_uid, links, content, tuple(os.listxattr(path))
    objects = folder.with_name("history") / "pack"
    seen["its objects"] = tuple(sorted(path.name for path in objects.iterdir()))
    return seen


def edit_and_restore_times(path: Path) -> None:
    """The same size, the same times: only the ctime tells."""
    found, size = path.stat(), path.stat().st_size
    with path.open("r+b") as file:
        file.write(b"#" * size)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def edit_through_a_map(path: Path) -> None:
    found = path.stat()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:] = b"#" * len(mapped)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def listen(folder: Path) -> None:
    """A socket; its name must be short."""
    with contextlib.chdir(folder), socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")


def swap(one: Path, two: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    two.rename(one)
    aside.rename(two)


def replace(path: Path, make: Callable[[Path], object]) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    make(path)


def dive(folder: Path) -> None:
    """Folders in folders, deeper than a path can say."""
    with contextlib.chdir(folder):
        for _ in range(60):
            os.mkdir("d" * 100)  # noqa: PTH102  relative to a folder that no path can name
            os.chdir("d" * 100)


MISCHIEF: dict[str, Callable[[Path], object]] = {
    "nothing": lambda _: None,
    "files that git would ignore": lambda w: write(w, {"x.log": "x", "build/y": "y", "z": "z"}),
    "caches": lambda w: write(w, {"src/__pycache__/m.pyc": "x", ".venv/bin/python": "evil"}),
    "a repository inside": lambda w: write(w, {"src/deep/.git/HEAD": "ref: x\n"}),
    "a pipe": lambda w: os.mkfifo(w / "src/.gitmodules"),
    "a socket": listen,
    "an edit": lambda w: write(w, {"a": "longer than before\n"}),
    "an edit that hides": lambda w: edit_and_restore_times(w / "a"),
    "an edit through a map": lambda w: edit_through_a_map(w / "a"),
    "two files swapped": lambda w: swap(w / "a", w / "b"),
    "two folders swapped": lambda w: swap(w / "src", w / "gone"),
    "a mode": lambda w: (w / "a").chmod(0o777),
    "a mode and back": lambda w: ((w / "tool").chmod(0o644), (w / "tool").chmod(0o755)),
    "an attribute": lambda w: os.setxattr(w / "a", "user.x", b"evil"),
    "a link in place of a file": lambda w: replace(w / "a", lambda p: p.symlink_to("b")),
    "a link in place of a folder": lambda w: replace(w / "src", lambda p: p.symlink_to(w.parent)),
    "another link": lambda w: replace(w / "link", lambda p: p.symlink_to("/etc/passwd")),
    "a folder in place of a file": lambda w: replace(w / "a", lambda p: write(p, {"x": "x"})),
    "a file in place of a folder": lambda w: replace(w / "src", lambda p: p.write_text("src")),
    "one file under two names": lambda w: replace(w / "b", lambda p: os.link(w / "a", p)),
    "another name for a file": lambda w: os.link(w / "a", w / "src/a"),
    "names that differ in case": lambda w: write(w, {"A": "A\n", "SRC/deep/one": "1\n"}),
    "names that are no text": lambda w: Path(os.fsdecode(bytes(w) + b"/src/\xff\n")).touch(),
    "an empty folder": lambda w: (w / "empty/in/empty").mkdir(parents=True),
    "everything removed": lambda w: [
        shutil.rmtree(w / d, ignore_errors=True) for d in ("src", "gone", ".git")
    ],
    "a folder made anew": lambda w: (
        replace(w / "src", Path.mkdir),
        write(w, {"src/three": "three\n"}),
    ),
    "no .git": lambda w: replace(w / ".git", lambda p: p.symlink_to("/etc")),
    "folders without end": dive,
    "an unreadable folder of theirs": lambda w: (
        write(w, {"mine/x": "x"}),
        (w / "mine").chmod(0),
    ),
}
DOUBTFUL: dict[str, Callable[[Path], object]] = {
    "a folder's mode": lambda w: (w / "src").chmod(0o777),
    "an unreadable folder": lambda w: (w / "src/deep").chmod(0),
    "the root's mode": lambda w: w.chmod(0o711),
    "a folder's attribute": lambda w: os.setxattr(w / "src", "user.x", b"evil"),
}
TOUCHING_A = {
    "an edit",
    "an edit that hides",
    "an edit through a map",
    "two files swapped",
    "a mode",
    "an attribute",
    "a link in place of a file",
    "a folder in place of a file",
    "one file under two names",
    "another name for a file",
}


@pytest.mark.parametrize("name", [*MISCHIEF, *DOUBTFUL])
@pytest.mark.parametrize("forward", [True, False], ids=["onward", "back"])
async def test_it_is_as_one_made_afresh(user: User, name: str, *, forward: bool):
    first, second = user.git("rev-parse", "HEAD"), user.commit(SECOND)
    start, target = (first, second) if forward else (second, first)
    if not forward and name == "two folders swapped":
        return  # there is but one
    run = await Run(user).open()
    seen: list[dict[str, tuple[object, ...]]] = []
    await lent(run, target, lambda w: seen.append(fingerprint(w)), "players")
    before = await lent(run, start, (MISCHIEF | DOUBTFUL)[name], "judges")
    async with run.repository.throwaway(target, "x") as place:
        assert fingerprint(place.path) == seen[0]
        assert await place.touched() == ()
        same = which_file(place.path / "a") == before
    # What was not touched is there still; in doubt all of it was thrown away.
    assert same == (name not in DOUBTFUL and name not in TOUCHING_A)


async def test_what_was_edited_in_the_very_moment_is_noticed(user: User):
    """Git compares whole seconds; within one it would miss an edit that puts the times back."""
    run = await Run(user).open()
    for _ in range(20):
        await lent(run, run.base, lambda w: edit_and_restore_times(w / "a"), "judges")
        async with run.repository.throwaways.checkout(run.base, "x", then="judges") as place:
            assert (place.path / "a").read_text() == "aaaa\n"


async def test_what_was_touched_is_told_however_it_was_hidden(user: User):
    run = await Run(user).open()
    for mischief in (
        lambda w: edit_and_restore_times(w / "a"),
        lambda w: edit_through_a_map(w / "a"),
        lambda w: (w / "a").unlink(),
        lambda w: replace(w / "a", lambda p: p.symlink_to("b")),
    ):
        async with run.repository.throwaway(run.base, "x") as place:
            write(place.path, {"new": "n\n"})
            assert await place.touched() == ()
            mischief(place.path)
            assert await place.touched() == ("a",)


async def test_a_link_to_elsewhere_is_cut_and_never_written_through(user: User, tmp_path: Path):
    precious = tmp_path / "precious"
    precious.write_text("aaaa\n")
    folder = tmp_path / "folder"
    write(folder, {"three": "mine\n", "deep/one": "mine\n"})
    second = user.commit({"a": "other\n", "src/three": "other\n", "src/deep/one": "other\n"})
    run = await Run(user).open()

    def entangle(workspace: Path) -> None:
        replace(workspace / "a", lambda p: os.link(precious, p))
        replace(workspace / "src", lambda p: p.symlink_to(folder))

    await lent(run, f"{second}^", entangle, "judges")
    async with run.repository.throwaway(second, "x") as place:
        assert (place.path / "a").read_text() == "other\n"
    assert precious.read_text() == "aaaa\n"
    assert precious.stat().st_nlink == 1
    assert held(folder) == {"three": "mine\n", "deep/one": "mine\n"}


async def test_a_merged_tasks_workspace_serves_the_next_task(user: User):
    run = await Run(user).open()
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    which = which_file(workspace / "a")
    write(workspace, {"b": "mine\n", "new": "n\n", "x.log": "l\n"})
    made = await run.save("1.1")
    await run.repository.release("1.1")
    assert not workspace.exists()
    second = await run.repository.prepare("1.2", 1, run.base, None)
    assert which_file(second / "a") == which
    assert held(second)["b"] == "bbbb\n"
    assert not (second / "new").exists()
    write(second, {"other": "o\n"})
    assert set(user.files((await run.save("1.2")).commit)) == {*user.files(run.base), "other"}
    assert "new" in user.files(made.commit)


async def test_what_an_agent_had_is_never_what_judges_stand_in(user: User):
    """An agent could have handed an open file to another that lives on."""
    run = await Run(user).open()
    theirs = await lent(run, run.base, lambda _: None, "players")
    assert await lent(run, run.base, lambda _: None, "judges") != theirs
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    assert which_file(workspace / "a") == theirs


async def test_a_coach_leaves_its_checkout_to_players(user: User):
    run = await Run(user).open()
    async with run.repository.throwaway(run.base, "coach") as place:
        which = which_file(place.path / "a")
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    assert which_file(workspace / "a") == which


async def test_a_workspace_that_a_person_stands_in_is_not_used_again(user: User):
    """What they do there after the merge must not reach another task."""
    run = await Run(user).open()
    for occupy in (
        lambda w: contextlib.chdir(w / "src"),
        lambda w: (w / "a").open(),
        lambda w: (w / ".swp").open("w"),
    ):
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        with occupy(workspace):
            await run.repository.release("1.1")
        assert not workspace.exists()
        assert not list(run.folders.pool.glob("players-*"))


async def test_a_workspace_that_a_person_took_is_not_used_again(user: User):
    run = await Run(user).open()
    await run.repository.prepare("1.1", 1, run.base, None)
    workspace = await run.repository.prepare("1.1", 2, run.base, None, by_person=True)
    await run.repository.release("1.1")
    assert not workspace.exists()
    assert not list(run.folders.pool.glob("players-*"))


async def test_it_is_bounded_and_gone_with_the_process(user: User):
    run = await Run(user).open()
    for n in range(MOST + 2):
        await run.repository.prepare(str(n), 1, run.base, None)
    for n in range(MOST + 2):
        await run.repository.release(str(n))
    assert len(list(run.folders.pool.glob("players-*"))) == MOST
    assert not any(run.folders.workspaces.iterdir())
    await run.repository.close()
    assert not run.folders.pool.exists()


async def test_what_a_killed_process_left_of_it_is_never_used(user: User):
    """Neither what it had cleaned, whose files were never synced, nor what it was cleaning."""
    run = await Run(user).open()
    await lent(run, run.base, lambda _: None, "judges")
    (place,) = run.folders.pool.glob("judges-*")
    shutil.copytree(place, place.with_name(".new-judges-000000009"), symlinks=True)
    await Run(user).open()
    assert not run.folders.pool.exists()


async def test_a_workspace_of_an_earlier_process_is_removed_and_not_reused(user: User):
    await (await Run(user).open()).play("1.1", {"new": "n\n"})
    run = await Run(user).open()
    await run.repository.release("1.1")
    assert not run.folders.workspace("1.1").exists()
    assert not list(run.folders.pool.glob("*"))


async def test_a_spoilt_index_in_the_pool_costs_nothing_but_the_checkout(user: User):
    run = await Run(user).open()
    for spoilt in (b"", b"DIRC\0\0\0\2\0\0\1\0", os.urandom(500)):
        await lent(run, run.base, lambda _: None, "judges")
        (place,) = run.folders.pool.glob("judges-*")
        (place / "index").write_bytes(spoilt)
        async with run.repository.throwaway(run.base, "x") as lend:
            assert held(lend.path).keys() == user.files(run.base).keys()


async def test_an_entry_that_cannot_be_emptied_is_passed_over(user: User):
    run = await Run(user).open()
    await lent(run, run.base, lambda _: None, "judges")
    (place,) = run.folders.pool.glob("judges-*")
    (place / "more").write_text("so that its folder cannot be removed once all else was taken\n")
    async with run.repository.throwaway(run.base, "x") as lend:
        assert held(lend.path).keys() == user.files(run.base).keys()
    assert not list(run.folders.pool.glob(f".*{place.name}"))


async def test_an_entry_that_is_not_whole_is_passed_over(user: User):
    run = await Run(user).open()
    for part in ("checkout", "index"):
        await lent(run, run.base, lambda _: None, "judges")
        (place,) = run.folders.pool.glob("judges-*")
        (place / part).rename(run.folders.home / f"lost-{part}")
        async with run.repository.throwaway(run.base, "x") as lend:
            assert held(lend.path).keys() == user.files(run.base).keys()
        assert not place.exists()


async def test_a_checkout_that_is_taken_while_it_is_given_is_whole(user: User):
    """The giver cleans up what it built; it was the taker's by then, in one run of hundreds."""
    run = await Run(user).open()
    pool, files = Pool(run.folders.pool, hash_bytes=20), user.files(run.base).keys()
    await lent(run, run.base, lambda _: None, "judges")
    spare, index = run.folders.home / "spare", run.folders.home / "spare-index"
    assert await pool.take("judges", spare, index)
    for n in range(100):
        mine, mine_index = run.folders.home / f"mine-{n}", run.folders.home / f"mine-index-{n}"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.give, "judges", spare, index)
            while not await pool.take("judges", mine, mine_index):
                await anyio.lowlevel.checkpoint()
        assert held(mine).keys() == files
        spare, index = mine, mine_index


async def test_a_file_system_must_be_seen_to_tell_of_changes(tmp_path: Path):
    assert ctime_shows_writes(tmp_path)
    index = tmp_path / "index"
    index.touch()
    assert wait_for_later(tmp_path / "clock", index)
    later = index.stat().st_mtime_ns + 3_600 * 10**9
    os.utime(index, ns=(later, later))  # a clock that stands still, as seen from here
    assert not wait_for_later(tmp_path / "clock", index)
    assert not await Pool(tmp_path / "pool", hash_bytes=20).is_fit(index)


async def test_what_setup_made_is_not_in_the_way(user: User):
    settings = WorkspaceSettings(setup=("mkdir -p made && date +%N > made/when && echo x >> a",))
    run = await Run(user, settings=settings).open()
    times: set[str] = set()
    for _ in range(3):
        async with run.repository.throwaways.checkout(run.base, "x", then="judges") as place:
            times.add((place.path / "made/when").read_text())
            assert (place.path / "a").read_text() == "aaaa\n"
            assert await place.touched() == ()
    assert len(times) == 3


async def test_it_serves_a_repository_of_other_hashes(tmp_path: Path):
    user = User(tmp_path, "--object-format=sha256")
    user.commit(FIRST)
    run = await Run(user).open()
    which = await lent(run, run.base, lambda w: write(w, {"b": "x\n"}), "judges")
    async with run.repository.throwaway(run.base, "x") as place:
        assert held(place.path) == user.files(run.base)
        assert which_file(place.path / "a") == which
