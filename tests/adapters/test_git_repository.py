"""Real git behind the port: what lies where, what commits say, and who moves which branch."""

import os
import time
from pathlib import Path

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from repositories import Run, User, author, held, write
from windlass.adapters.git.reconcile import remove_stale_locks
from windlass.errors import GitFailed, RepositoryError
from windlass.ports import Authorship, Conflict

INTEGRATION = "refs/heads/windlass/p/integration"
PINS = "refs/windlass/p/r1"

pytestmark = pytest.mark.anyio


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.commit({"README": "hello\n", "src/a": "a\n"})
    return made


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/St_Johns"])
async def test_a_commit_is_byte_for_byte_the_one_that_git_would_make(
    user: User, zone: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        user.git("config", "user.name", ' Jörg "<Émile> Müller,. ')
        run = await Run(user).open()
        made = await run.play("1.1", {"one": "1\n"})
    finally:
        monkeypatch.undo()
        time.tzset()
    held = user.git("cat-file", "commit", made.commit)
    headers, _, message = held.partition("\n\n")
    author, moment = headers.splitlines()[2].removeprefix("author ").split("> ")
    assert int(moment.split()[0]) == pytest.approx(time.time(), abs=60)  # noqa: TID251
    name, email = author.split(" <")
    who = {"NAME": name, "EMAIL": email, "DATE": f"@{moment}"}
    user.environment |= {f"GIT_{r}_{w}": v for r in ("AUTHOR", "COMMITTER") for w, v in who.items()}
    again = user.git("commit-tree", made.tree, "-p", run.base, stdin=f"{message}\n")
    assert again == made.commit
    assert (name, email) == ('Jörg "Émile Müller', "ann@example.org")


async def test_pins_are_exactly_those_of_the_design(user: User):
    run = await Run(user).open()
    one = await run.play("1.1", {"one": "1\n", "README": "one\n"})
    two = await run.play("1.2", {"two": "2\n", "README": "two\n"})
    await run.repository.snapshot(author("1.3"), "partial", (run.base,))  # never prepared
    await run.play("1.4", {})  # nothing changed: its start is all there is to keep
    tip, _ = await run.land("1.1", 1, one.commit, run.base)
    assert isinstance(await run.repository.merge(author("1.2"), 2, two.commit, tip), Conflict)
    workspace = await run.repository.prepare("1.2", 2, two.commit, tip, turn=1)
    write(workspace, {"README": "both\n"})
    made = await run.repository.snapshot(author("1.2", 2), "partial", (two.commit, tip))
    assert user.refs() == {
        f"{PINS}/base": run.base,
        f"{PINS}/tip": tip,
        f"{PINS}/order-1": run.base,
        f"{PINS}/candidate/1": tip,
        f"{PINS}/task/1.1/1/start": run.base,
        f"{PINS}/task/1.1/1/snapshot": one.commit,
        f"{PINS}/task/1.2/1/start": run.base,
        f"{PINS}/task/1.2/1/snapshot": two.commit,
        f"{PINS}/task/1.2/2/start": two.commit,
        f"{PINS}/task/1.2/2/turn-1": two.commit,
        f"{PINS}/task/1.2/2/onto": tip,
        f"{PINS}/task/1.2/2/partial": made.commit,
        f"{PINS}/task/1.4/1/start": run.base,
        INTEGRATION: tip,
        "refs/heads/main": run.base,
    }


async def test_commits_say_whose_they_are(user: User):
    run = await Run(user).open()
    workspace = await run.repository.prepare("1.1", 3, run.base, None)
    write(workspace, {"one": "1\n"})
    asked = author("1.1", 3)
    made = await run.repository.snapshot(asked, "snapshot", (run.base,))
    merged = await run.repository.merge(asked, 1, made.commit, run.base)
    said = [
        user.git("log", "-1", "--format=%an <%ae>|%cn <%ce>|%B", c.commit) for c in (made, merged)
    ]
    who = "Ann User <ann@example.org>|Ann User <ann@example.org>"
    trailers = "Windlass-Run: r1\nWindlass-Task: 1.1\nWindlass-Turn: 3"
    assert said == [f"{who}|1.1: Do 1.1\n\n{trailers}", f"{who}|1.1: merge Do 1.1\n\n{trailers}"]
    again = replace(asked, text="0123456789abcdef")
    merged = await run.repository.merge(again, 2, made.commit, run.base)
    said = user.git("log", "-1", "--format=%(trailers:key=Windlass-Text,valueonly)", merged.commit)
    assert said.strip() == "0123456789abcdef", "a merge says for which text it was made"


async def test_a_title_of_any_kind_makes_a_subject(user: User):
    run = await Run(user).open()
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    write(workspace, {"one": "1\n"})
    odd = Authorship(task="1.1", title="a\0b \x1b[31mred\u2028— ü", n=1, turn=1)
    commit = (await run.repository.snapshot(odd, "snapshot", (run.base,))).commit
    assert user.git("log", "-1", "--format=%s", commit) == "1.1: a b [31mred — ü"


async def test_trailers_are_what_git_reads_as_trailers(user: User):
    run = await Run(user).open()
    await run.repository.prepare("1.1", 1, run.base, None)
    write(run.folders.workspace("1.1"), {"one": "1\n"})
    title = "Fix: it\n\nWindlass-Task: 9.9 " + "x" * 100
    odd = Authorship(task="1.1", title=title, n=1, turn=1)
    commit = (await run.repository.snapshot(odd, "snapshot", (run.base,))).commit
    read = user.git("log", "-1", "--format=%(trailers:key=Windlass-Task,valueonly)", commit)
    assert read.split() == ["1.1"]
    subject = user.git("log", "-1", "--format=%s", commit)
    assert subject.startswith("1.1: Fix: it Windlass-Task: 9.9 x")
    assert len(subject) == 72


async def test_pins_are_written_once(user: User):
    run = await Run(user).open()
    await run.play("1.1", {"one": "1\n"})
    other = user.commit({"other": "o\n"})
    with pytest.raises(GitFailed):
        await run.repository.prepare("1.1", 1, other, None)
    assert user.refs(PINS)[f"{PINS}/task/1.1/1/start"] == run.base


async def test_a_commit_pinned_by_a_dead_process_whose_objects_a_gc_took_is_made_again(user: User):
    made = await (await Run(user).open()).play("1.1", {"one": "1\n"})
    loose(user, user.git("rev-parse", f"{made.commit}:one")).unlink()
    run = await Run(user).open()
    run.base = user.git("rev-parse", "main")
    again = await run.save("1.1")
    assert user.files(again.commit) == {"README": "hello\n", "src/a": "a\n", "one": "1\n"}
    assert user.refs(PINS)[f"{PINS}/task/1.1/1/snapshot"] == again.commit


async def test_a_tip_that_somebody_moved_is_said_with_the_cure(user: User):
    run = await Run(user).open()
    one = await run.play("1.1", {"one": "1\n"})
    other = user.commit({"other": "o\n"})
    user.git("update-ref", f"{PINS}/tip", other)
    with pytest.raises(RepositoryError, match=f"git update-ref {PINS}/tip {run.base}"):
        await run.land("1.1", 1, one.commit, run.base)


async def test_a_ref_that_is_held_for_a_moment_is_waited_for(user: User):
    run = await Run(user).open()
    one = await run.play("1.1", {"one": "1\n"})
    lock = user.repo / ".git" / f"{PINS}/tip.lock"
    lock.touch()

    async def let_go() -> None:
        await anyio.sleep(0.3)  # longer than git itself would wait
        lock.unlink()

    async with anyio.create_task_group() as group:
        group.start_soon(let_go)
        await run.land("1.1", 1, one.commit, run.base)


async def test_stale_locks_are_removed_and_others_are_left(user: User):
    run = await Run(user).open()
    await run.repository.prepare("1.1", 1, run.base, None)
    git = user.repo / ".git"
    ours = [
        run.folders.index("1.1").with_name("index.lock"),
        run.folders.git / "config.lock",
        git / f"{PINS}/tip.lock",
        git / f"{PINS}/task/1.1/1/snapshot.lock",
        git / "refs/heads/windlass/p/integration.lock",
    ]
    theirs = [
        git / "index.lock",
        git / "refs/heads/main.lock",
        git / "refs/windlass/other/r/tip.lock",
    ]
    for lock in (*ours, *theirs):
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()
    later = await Run(user).open()
    remove_stale_locks(later.store, later.refs)
    assert [lock for lock in ours if lock.exists()] == []
    assert [lock for lock in theirs if not lock.exists()] == []
    theirs[0].unlink()
    write(run.folders.workspace("1.1"), {"one": "1\n"})
    made = await later.save("1.1")
    await later.land("1.1", 1, made.commit, later.base)


class TestConflicts:
    async def conflict(
        self, user: User, ours: dict[str, str | None], theirs: dict[str, str | None]
    ) -> Conflict:
        run = await Run(user).open()
        one = await run.play("1.1", ours)
        two = await run.play("1.2", theirs)
        told = await run.repository.merge(author("1.2"), 1, two.commit, one.commit)
        assert isinstance(told, Conflict)
        msgspec.json.encode(told)  # what is told must be text that a journal can keep
        assert f"{PINS}/candidate/1" not in user.refs()
        return told

    async def test_every_file_is_told_once(self, user: User):
        told = await self.conflict(
            user, {"README": "1\n", "src/a": "1\n"}, {"README": "2\n", "src/a": "2\n", "c": "c\n"}
        )
        assert told.files == ("README", "src/a")
        assert told.detail == (
            "Conflicts in:\n- README\n- src/a\n"
            "CONFLICT (content): Merge conflict in README\n"
            "CONFLICT (content): Merge conflict in src/a"
        )

    async def test_one_without_markers_is_explained(self, user: User):
        told = await self.conflict(user, {"README": None}, {"README": "kept and changed\n"})
        assert told.files == ("README",)
        assert "CONFLICT (modify/delete): README deleted in" in told.detail

    async def test_names_need_not_be_text(self, user: User):
        name = os.fsdecode(b"caf\xe9\nx")
        told = await self.conflict(user, {name: "1\n"}, {name: "2\n"})
        assert told.files == ("caf\ufffd\\nx",)
        assert told.detail.splitlines()[1:] == [
            "- caf\ufffd\\nx",
            "CONFLICT (add/add): Merge conflict in caf\ufffd\\nx",
        ]


class TestWorkspaces:
    async def test_another_runs_workspace_is_kept_under_another_name(self, user: User):
        old = await Run(user).open()
        workspace = await old.repository.prepare("1.1", 1, old.base, None)
        for text in ("first\n", "second\n"):
            write(workspace, {"unsaved": text})
            new = await Run(user, run=f"after-{text.strip()}").open()
            assert await new.repository.prepare("1.1", 1, new.base, None) == workspace
            assert "unsaved" not in held(workspace)
        texts = sorted(p.read_text() for p in old.folders.home.glob("kept/*/unsaved"))
        assert texts == ["first\n", "second\n"]

    async def test_one_without_its_index_is_kept_under_another_name(self, user: User):
        run = await Run(user).open()
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        write(workspace, {"unsaved": "u\n"})
        run.folders.index("1.1").unlink()
        await run.repository.prepare("1.1", 2, run.base, None)
        assert "unsaved" not in held(workspace)
        assert [p.read_text() for p in run.folders.home.glob("kept/*/unsaved")] == ["u\n"]

    async def test_an_index_that_a_power_loss_spoilt_is_made_again(self, user: User):
        run = await Run(user).open()
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        write(workspace, {"one": "1\n"})
        run.folders.index("1.1").write_bytes(b"\0" * 100)
        made = await (await Run(user).open()).save("1.1")
        assert user.files(made.commit)["one"] == "1\n"

    async def test_a_link_in_its_place_is_never_followed(self, user: User):
        """At level checkout an agent could put one there; what it leads to is not Windlass's."""

        run = await Run(user).open()
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        workspace.rename(workspace.with_name("moved"))
        workspace.symlink_to(user.repo)
        made = await run.save("1.1")
        assert (made.commit, made.changed) == (run.base, False)
        await run.repository.prepare("1.1", 2, run.base, None)
        assert not workspace.is_symlink()
        assert held(workspace) == {"README": "hello\n", "src/a": "a\n"}
        assert user.git("rev-parse", "HEAD") == run.base

    async def test_git_works_in_it(self, user: User):
        """One branch at the start, nothing changed, no remotes, no tags."""
        user.git("tag", "v1")
        user.git("remote", "add", "origin", "https://example.org/x")
        run = await Run(user).open()
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        asked = ("status --porcelain", "remote", "tag", "branch --format=%(refname)", "fsck")
        assert [user.git(*command.split(), cwd=workspace) for command in asked] == [
            "",
            "",
            "",
            "refs/heads/work",
            "",
        ]
        write(workspace, {"one": "1\n"})
        user.git("add", "one", cwd=workspace)
        user.git("commit", "-q", "-m", "mine", cwd=workspace)
        assert user.git("log", "--format=%s", cwd=workspace) == "mine\nuser"

    async def test_what_an_agent_committed_itself_is_in_the_snapshot(self, user: User):
        run = await Run(user).open()
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        write(workspace, {"one": "1\n"})
        user.git("add", "one", cwd=workspace)
        user.git("commit", "-q", "-m", "mine", cwd=workspace)
        made = await run.save("1.1")
        assert user.files(made.commit)["one"] == "1\n"
        assert user.git("rev-list", "--count", made.commit) == "2"
        await run.repository.prepare("1.1", 2, made.commit, None)
        assert user.git("rev-parse", "HEAD", cwd=workspace) == made.commit
        assert user.git("status", "--porcelain", cwd=workspace) == ""


def loose(user: User, object_id: str) -> Path:
    """Where an object lies that is in no pack."""
    return user.repo / ".git/objects" / object_id[:2] / object_id[2:]
