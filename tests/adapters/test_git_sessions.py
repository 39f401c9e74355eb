"""The gits that stay: cheap while the run lasts, gone with it, and never behind the times."""

import gc
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from repositories import Run, User, author, write
from waiting import eventually
from windlass.adapters.git.git import Git, PersistentGit, Session
from windlass.adapters.git.store import Objects
from windlass.errors import GitFailed
from windlass.ports import Merged

pytestmark = pytest.mark.anyio
INTEGRATION = "refs/heads/windlass/p/integration"
PINS = "refs/windlass/p/r1"
BASE = {"README": "hello\n", "src/a": "a\n", "src/b": "b\n"}


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.commit(BASE)
    return made


def staying(repo: Path) -> dict[int, str]:
    """The gits that work for a repository at this moment, and what they do."""
    found: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        try:
            if f"GIT_CEILING_DIRECTORIES={repo.parent}\0".encode() in Path(
                folder, "environ"
            ).read_bytes() and (said := Path(folder, "cmdline").read_text()):
                found[int(folder.name)] = said.rstrip("\0").replace("\0", " ")
        except (OSError, ValueError):
            continue
    return found


def count_starts(user: User, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have every git that is started leave a line, as the first on the PATH can."""
    real = shutil.which("git")
    folder, log = user.home / "bin", user.home / "started"
    write(folder, {"git": f'#!/bin/sh\necho "$*" >> {log}\nexec {real} "$@"\n'})
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return log


def started(log: Path) -> list[str]:
    """The commands, without what hardens them."""
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return [re.sub(r"^(-c \S+ )*", "", line).split()[0] for line in lines]


async def test_what_a_task_starts(user: User, monkeypatch: pytest.MonkeyPatch):
    """A process more here is felt by every task: it costs what a third of a merge does."""
    log = count_starts(user, monkeypatch)
    run = await Run(user).open()
    made = [await run.play("1.1", {"one": "1\n"}), await run.play("1.2", {"two": "2\n"})]
    first, _ = await run.land("1.1", 1, made[0].commit, run.base)
    workspace = await run.repository.prepare("1.3", 1, first, None)
    write(workspace, {"three": "3\n"})
    started(log)
    await run.save("1.3", parents=(first,))
    # The last beside the sync: what a judge of the snapshot sees of its history.
    assert started(log) == ["add", "write-tree", "pack-objects"]
    merged = await run.repository.merge(author("1.2"), 2, made[1].commit, first)
    assert started(log) == ["merge-tree"]
    assert await run.repository.move_tip(first, merged.commit) == ""
    assert started(log) == []
    assert user.refs(INTEGRATION, f"{PINS}/tip") == {
        INTEGRATION: merged.commit,
        f"{PINS}/tip": merged.commit,
    }


async def test_no_lock_is_held_between_two_requests(user: User):
    run = await Run(user).open()
    one = await run.play("1.1", {"one": "1\n"})
    await run.land("1.1", 1, one.commit, run.base)
    assert len(staying(user.repo)) == 3
    assert list((user.repo / ".git").rglob("*.lock")) == []


async def test_they_end_when_the_run_does(user: User):
    run = await Run(user).open()
    one = await run.play("1.1", {"one": "1\n"})
    commands = sorted(said.rpartition(" -c ")[2] for said in staying(user.repo).values())
    assert [command.split()[1] for command in commands] == ["cat-file", "hash-object", "update-ref"]
    run.store.close()
    assert staying(user.repo) == {}
    await run.land("1.1", 1, one.commit, run.base)  # and are there again when they are needed
    assert len(staying(user.repo)) == 3


async def test_they_end_when_nobody_thinks_of_it(user: User):
    run = await Run(user).open()
    await run.play("1.1", {"one": "1\n"})
    del run
    gc.collect()
    assert staying(user.repo) == {}


SCRIPT = """
import anyio, pathlib, signal, sys
sys.path[:0] = {path!r}
from repositories import Run, User
user = User.__new__(User)
user.home, user.repo = pathlib.Path({home!r}), pathlib.Path({repo!r})
user.environment = {environment!r}
async def main():
    run = await Run(user).open()
    one = await run.play("1.1", {{"one": "1"}})
    await run.land("1.1", 1, one.commit, run.base)
    print("merged", flush=True)
    signal.pause()
anyio.run(main)
"""


def test_they_end_when_the_run_is_killed(user: User):
    script = SCRIPT.format(
        path=sys.path, home=str(user.home), repo=str(user.repo), environment=user.environment
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"merged\n"
            assert len(staying(user.repo)) == 3
        finally:
            process.kill()
    eventually(lambda: not staying(user.repo))
    assert list((user.repo / ".git").rglob("*.lock")) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_one_that_somebody_ended_is_replaced(user: User, number: signal.Signals):
    run = await Run(user).open()
    one = await run.play("1.1", {"one": "1\n"})
    for pid in staying(user.repo):
        os.kill(pid, number)
    tip, said = await run.land("1.1", 1, one.commit, run.base)
    assert (user.refs(INTEGRATION), said) == ({INTEGRATION: tip}, "")


async def test_a_key_pressed_at_the_terminal_does_not_reach_them(user: User):
    """Ctrl-C goes to the terminal's group; the run ends its own work in order."""
    run = await Run(user).open()
    await run.play("1.1", {"one": "1\n"})
    assert os.getpgid(0) not in {os.getpgid(pid) for pid in staying(user.repo)}


async def test_a_pin_is_written_though_the_task_was_cancelled(user: User):
    run = await Run(user).open()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await run.store.pin({f"{PINS}/candidate/1": run.base})
    assert user.refs(f"{PINS}/candidate") == {f"{PINS}/candidate/1": run.base}


@pytest.mark.parametrize(
    "upkeep", [("pack-refs", "--all"), ("gc", "-q", "--prune=now"), ("repack", "-adq")]
)
async def test_what_the_user_does_meanwhile_is_seen(user: User, upkeep: tuple[str, ...]):
    run = await Run(user).open()
    made = [await run.play(f"1.{i}", {f"src/{i}": f"{i}\n"}) for i in range(3)]
    tip = run.base
    for i, one in enumerate(made):
        tip, said = await run.land(f"1.{i}", i, one.commit, tip)
        assert (user.refs(INTEGRATION), said) == ({INTEGRATION: tip}, "")
        user.git(*upkeep)
    assert user.files(tip) == {**BASE, **{f"src/{i}": f"{i}\n" for i in range(3)}}
    again = await run.play("1.9", {"nine": "9\n"})
    assert again.files == ("nine",)


async def test_a_pack_that_a_gc_removed_proves_nothing(user: User):
    """A git that stays still has it open, and would swear that all is there."""
    run = await Run(user).open()
    lost = user.commit({"src/a": "lost\n"})
    user.git("gc", "-q")
    assert await run.store.is_whole(lost, (run.base,))
    user.git("reset", "-q", "--hard", run.base)
    user.git("reflog", "expire", "--expire=now", "--all")
    user.git("gc", "-q", "--prune=now")
    assert not await run.store.is_whole(lost, (run.base,))


@pytest.mark.parametrize("lost", ["", "^{tree}", ":src", ":src/new", ":README"])
async def test_a_missing_object_is_noticed(user: User, lost: str):
    run = await Run(user).open()
    made = await run.play("1.1", {"src/new": "n\n", "README": "changed\n"})
    assert await run.store.is_whole(made.commit, (run.base,))
    name = user.git("rev-parse", f"{made.commit}{lost}")
    (user.repo / ".git/objects" / name[:2] / name[2:]).unlink()
    assert not await run.store.is_whole(made.commit, (run.base,))


async def test_a_commit_with_other_parents_is_proven_with_its_history(user: User):
    run = await Run(user).open()
    middle = user.commit({"src/a": "middle\n"})
    top = user.commit({"src/b": "top\n"})
    assert await run.store.is_whole(top, (run.base,))
    name = user.git("rev-parse", f"{middle}:src/a")
    (user.repo / ".git/objects" / name[:2] / name[2:]).unlink()
    assert not await run.store.is_whole(top, (run.base,))


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
async def test_changes_are_what_git_itself_says(tmp_path: Path, object_format: str):
    user = User(tmp_path, f"--object-format={object_format}")
    odd = os.fsdecode(b"caf\xe9\nx")
    old = user.commit({
        "a": "a", "a.b": "1", "a0": "1", "file": "f", "folder/x": "x", "folder/deep/y": "y",
        "mode": "m", "same": "s", "away": "w", odd: "1", "link": "l",
    })  # fmt: skip
    user.write({"a": None, "file": None, "folder/x": None, "folder/deep/y": None, "link": None})
    (user.repo / "folder/deep").rmdir()
    (user.repo / "folder").rmdir()
    (user.repo / "link").symlink_to("same")
    (user.repo / "mode").chmod(0o755)
    new = user.commit({
        "a/in": "new", "a.b": "2", "a0": "2", "file/now/folder": "f", "folder": "file",
        "away": None, odd: "2", **{f"many/{i}": f"{i}" for i in range(100)},
    })  # fmt: skip
    run = Run(user)
    run.store.open("")
    objects = Objects(
        run.store.trees, run.origin.objects, id_bytes=20 if object_format == "sha1" else 32
    )
    trees = [user.git("rev-parse", f"{commit}^{{tree}}") for commit in (old, new)]
    for before, after in (trees, trees[::-1], [trees[0]] * 2):
        asked = ("diff-tree", "-r", "-z", "--name-status", "--no-renames", before, after)
        fields = user.git(*asked).split("\0")[:-1]
        expected = dict(zip(map(os.fsencode, fields[1::2]), fields[::2], strict=True))
        found = await objects.changes(before, after)
        assert list(found.items()) == list(expected.items())
    assert {"A", "D", "M", "T"} == set((await objects.changes(*trees)).values())


async def test_more_is_proven_than_pipes_hold(user: User):
    """Asked all at once, git would wait for us to read, and we for git."""
    run = await Run(user).open()
    paths = [f"many/{i}" for i in range(3000)] + [f"d{i}/e/f" for i in range(60)]
    files = "".join(f"M 100644 inline {p}\ndata {len(p)}\n{p}\n" for p in paths)
    who = "committer A <a@example.org> 1700000000 +0000\ndata 0\n"
    stream = f"commit refs/heads/many\n{who}from refs/heads/main^0\n{files}"
    user.git("fast-import", "--quiet", stdin=stream)
    many = user.git("rev-parse", "many")
    assert await run.store.is_whole(many, (run.base,))
    listed = user.git("ls-tree", "-r", many).replace("\tmany/", "\t").splitlines()
    entries = [line for line in listed if "/" not in line]
    for last in (entries[-1], f"100644 blob {'0' * 39}1\tlost"):
        tree = user.git("mktree", "--missing", stdin="\n".join([*entries[:-1], last]))
        made = user.git("commit-tree", "-p", run.base, "-m", "x", tree)
        assert await run.store.is_whole(made, (run.base,)) == (last == entries[-1])


async def test_one_that_does_not_answer_is_ended_and_said(user: User):
    git = Git(user.repo / ".git", ceiling=user.repo.parent, timeout=2)
    waiting = PersistentGit(git, "cat-file", "--batch-command")

    def ask(session: Session) -> str:
        session.send(b"info HEAD\n")
        return session.line()

    assert " commit " in await waiting.ask(ask)
    [pid] = staying(user.repo)
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(GitFailed, match=r"not done after 2 s, and stopped"):
        await waiting.ask(ask)
    assert staying(user.repo) == {}
    assert " commit " in await waiting.ask(ask)
    waiting.close()


async def test_a_no_is_gits_own_and_the_next_request_is_answered(user: User):
    run = await Run(user).open()
    other = user.commit({"other": "o\n"})
    with pytest.raises(GitFailed, match=r"cannot lock ref.*but expected") as failed:
        await run.store.move(f"{PINS}/tip", INTEGRATION, new=other, old=other)
    assert failed.value.code == 128
    pins = {f"{PINS}/base", f"{PINS}/tip", f"{PINS}/order-1"}
    assert user.refs(PINS, INTEGRATION) == dict.fromkeys(pins, run.base)
    await run.store.move(f"{PINS}/tip", new=other, old=run.base)
    assert user.refs(f"{PINS}/tip") == {f"{PINS}/tip": other}


async def test_requests_at_the_same_time_wait_for_each_other(user: User):
    run = await Run(user).open()
    one = await run.play("1.1", {"one": "1\n"})
    two = await run.play("1.2", {"two": "2\n"})
    made: dict[int, object] = {}

    async def merge(number: int) -> None:
        pair = (one.commit, two.commit) if number % 2 else (two.commit, one.commit)
        made[number] = await run.repository.merge(author("1.1"), number, *pair)

    async with anyio.create_task_group() as group:
        for number in range(12):
            group.start_soon(merge, number)
    assert all(isinstance(result, Merged) for result in made.values())
    assert len(user.refs(f"{PINS}/candidate")) == 12
