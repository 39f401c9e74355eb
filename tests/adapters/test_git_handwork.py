"""What a person does in a workspace they had taken: kept as they made it, whatever it is."""  # B8

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from repositories import Run, User, author, write
from windlass.adapters.git.inspect import NO_SUBMODULES
from windlass.core.settings import WorkspaceSettings
from windlass.ports import Refused, Snapshot

BASE = {"README": "hello\n", "src/main": "one\n", ".gitignore": "*.log\n"}
FORMAT = "%an <%ae> %at | %cn <%ce> %ct | %B"


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.commit(BASE)
    return made


class Taken:
    """A task that a person has taken."""

    def __init__(self, user: User, *, settings: WorkspaceSettings | None = None) -> None:
        self.user = user
        self.run = Run(user, settings=settings)
        anyio.run(self.run.open)
        self.start = self.run.base
        self.path = self.prepare()

    def prepare(self) -> Path:
        async def go() -> Path:
            return await self.run.repository.prepare("1", 1, self.start, None, by_person=True)

        return anyio.run(go)

    def git(self, *args: str) -> str:
        return self.user.git(*args, cwd=self.path)

    def commit(self, files: dict[str, str | bytes | None], message: str, *how: str) -> str:
        write(self.path, files)
        self.git("add", "--all")
        self.git("commit", "-q", "-m", message, *how)
        return self.git("rev-parse", "HEAD")

    def give(self) -> Snapshot | Refused:
        by_person = replace(author("1"), by_person=True)
        return anyio.run(self.run.repository.snapshot, by_person, "snapshot", (self.start,))

    def given(self) -> Snapshot:
        made = self.give()
        assert isinstance(made, Snapshot), made
        shutil.rmtree(self.path)  # nothing of it may be needed any more
        self.user.git("fsck", "--connectivity-only")
        return made

    def told(self, commit: str) -> str:
        return self.user.git("show", "-s", f"--format={FORMAT}", commit)

    def left(self) -> list[str]:
        pins = self.user.refs("refs/windlass/")
        return [commit for ref, commit in pins.items() if "/left-" in ref]


@pytest.fixture
def taken(user: User) -> Taken:
    return Taken(user)


def test_authors_dates_and_messages_stay_as_they_were(taken: Taken) -> None:
    taken.user.environment["GIT_COMMITTER_DATE"] = "1600000001 +0200"
    mine = taken.commit(
        {"a": "1\n"},
        "Add a\n\nBecause.\n",
        "--author=Bea Guest <bea@example.org>",
        "--date=1600000000 +0200",
    )
    del taken.user.environment["GIT_COMMITTER_DATE"]
    before = taken.git("show", "-s", f"--format={FORMAT}", mine)
    assert before.startswith("Bea Guest <bea@example.org> 1600000000 | Ann User")
    made = taken.given()
    assert taken.told(mine) == before
    assert taken.user.git("rev-parse", f"{made.commit}^") == mine
    trailers = taken.user.git("show", "-s", "--format=%(trailers:only)", made.commit)
    assert "Windlass-Task: 1" in trailers
    assert made.created == ("a",)


def test_a_person_commits_under_the_users_own_name(user: User) -> None:
    user.git("config", "user.name", 'Ann "the\\user" B')
    taken = Taken(user)
    mine = taken.commit({"a": "1\n"}, "Add a")
    assert taken.user.git("log", "-1", "--format=%an", mine, cwd=taken.path) == 'Ann "the\\user" B'


def test_what_a_person_committed_stays_where_it_was_set_aside(taken: Taken) -> None:
    """Another run needs the place; what is only in that `.git` must not go with it."""
    commit = taken.commit({"mine": "m\n"}, "By hand")

    async def begin_anew() -> Path:
        run = await Run(taken.user, run="r2").open()
        await run.repository.prepare("1", 1, run.base, None)
        return run.folders.kept / "1.r1"

    assert taken.user.git("rev-parse", "HEAD", cwd=anyio.run(begin_anew)) == commit


def test_packed_objects_and_refs_are_found(taken: Taken) -> None:
    first = taken.commit({"a": "1\n"}, "one")
    taken.commit({"b": "2\n" * 1000}, "two")
    taken.git("gc", "--quiet", "--prune=now")
    taken.git("pack-refs", "--all")
    made = taken.given()
    assert first in taken.user.git("rev-list", made.commit).split()


def test_what_was_committed_though_ignored_stays(taken: Taken) -> None:
    write(taken.path, {"kept.log": "k\n", "loose.log": "l\n"})
    taken.git("add", "--force", "kept.log")
    taken.git("commit", "-q", "-m", "Keep one log")
    made = taken.given()
    assert taken.user.files(made.commit) == {**BASE, "kept.log": "k\n"}


def test_work_on_another_branch_or_none_is_kept_and_the_rest_is_pinned(taken: Taken) -> None:
    aside = taken.commit({"aside": "x\n"}, "Tried this")
    taken.git("checkout", "-q", "--detach", taken.start)
    mine = taken.commit({"a": "1\n"}, "Then that")
    made = taken.given()
    assert taken.user.git("rev-parse", f"{made.commit}^") == mine
    assert taken.user.files(made.commit) == {**BASE, "a": "1\n"}
    assert taken.left() == [aside]


def test_a_stash_is_pinned(taken: Taken) -> None:
    write(taken.path, {"README": "stashed\n"})
    taken.git("stash", "--quiet")
    write(taken.path, {"a": "1\n"})
    made = taken.given()
    assert taken.user.git("rev-parse", f"{made.commit}^") == taken.start
    (stash,) = taken.left()
    assert taken.user.show(f"{stash}:README") == "stashed\n"


def amend(taken: Taken) -> None:
    write(taken.path, {"a": "1\n"})
    taken.git("add", "--all")
    taken.git("commit", "-q", "--amend", "-m", "Rewritten", "--author=Bea <bea@example.org>")


def test_rewritten_history_is_kept_beside_the_start(user: User) -> None:
    """The start was somebody's commit; what was made of it keeps its author, and merges."""
    user.commit({"second": "2\n"})
    taken = Taken(user)
    amend(taken)
    mine = taken.git("rev-parse", "HEAD")
    write(taken.path, {"b": "2\n"})
    made = taken.given()
    parents = taken.user.git("rev-list", "--parents", "-1", made.commit).split()[1:]
    assert parents == [taken.start, mine]
    assert taken.user.files(made.commit) == {**BASE, "second": "2\n", "a": "1\n", "b": "2\n"}
    assert "Bea" in taken.told(mine)


def orphan(taken: Taken) -> None:
    taken.git("checkout", "-q", "--orphan", "fresh")
    taken.commit({"a": "1\n"}, "A history of my own")


def no_git(taken: Taken) -> None:
    shutil.rmtree(taken.path / ".git")
    write(taken.path, {"a": "1\n"})


def broken_head(taken: Taken) -> None:
    taken.commit({"a": "1\n"}, "Add a")
    (taken.path / ".git/HEAD").write_text("what?\n")


def unborn(taken: Taken) -> None:
    taken.git("checkout", "-q", "--orphan", "main")
    write(taken.path, {"a": "1\n"})


@pytest.mark.parametrize("how", [orphan, no_git, broken_head, unborn, amend])
def test_at_worst_there_is_one_snapshot_with_all_the_files(
    taken: Taken, how: Callable[[Taken], None]
) -> None:
    how(taken)
    made = taken.given()
    assert taken.user.files(made.commit) == {**BASE, "a": "1\n"}
    parents = taken.user.git("rev-list", "--parents", "-1", made.commit).split()[1:]
    assert parents == [taken.start]
    assert made.changed


def test_an_orphan_history_is_pinned(taken: Taken) -> None:
    orphan(taken)
    mine = taken.git("rev-parse", "HEAD")
    taken.given()
    assert taken.left() == [mine]


def test_work_that_was_undone_changes_nothing_and_is_kept(taken: Taken) -> None:
    mine = taken.commit({"a": "1\n"}, "Add a")
    taken.git("revert", "--no-edit", "HEAD")
    made = taken.given()
    assert not made.changed
    assert mine in taken.user.git("rev-list", made.commit).split()


def test_a_merge_that_a_person_made_is_kept_as_one(user: User) -> None:
    taken = Taken(user)
    other = user.commit({"theirs": "t\n"})
    taken.commit({"a": "1\n"}, "Add a")
    taken.git("merge", "-q", "-m", "Take theirs in", other)
    mine = taken.git("rev-parse", "HEAD")

    async def give() -> Snapshot | Refused:
        by_person = replace(author("1"), by_person=True)
        return await taken.run.repository.snapshot(by_person, "snapshot", (taken.start, other))

    made = anyio.run(give)
    assert isinstance(made, Snapshot)
    assert user.git("rev-list", "--parents", "-1", made.commit).split()[1:] == [mine]


def test_a_submodule_is_refused_with_the_reason(taken: Taken) -> None:
    taken.git("update-index", "--add", "--cacheinfo", f"160000,{taken.start},vendor")
    taken.git("commit", "-q", "-m", "Vendor it")
    (taken.path / "vendor").mkdir()
    refused = taken.give()
    assert isinstance(refused, Refused)
    assert f"vendor is a submodule; {NO_SUBMODULES}" in refused.reason


def test_windlasss_own_folder_is_refused_with_the_reason(taken: Taken) -> None:
    write(taken.path, {".windlass/coach.md": "mine\n"})
    taken.git("add", "--force", ".windlass")
    taken.git("commit", "-q", "-m", "what is no work")
    made = taken.give()
    assert isinstance(made, Refused)
    assert ".windlass is Windlass's own" in made.reason


def test_nothing_in_the_workspace_is_obeyed(taken: Taken, tmp_path: Path) -> None:
    mine = taken.commit({"a": "1\n"}, "Add a")
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    trap.chmod(0o755)
    own = taken.path / ".git"
    for name in ("pre-auto-gc", "reference-transaction", "post-index-change"):
        (own / "hooks").mkdir(exist_ok=True)
        (own / "hooks" / name).symlink_to(trap)
    with (own / "config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = {trap}\n\talternateRefsCommand = {trap}\n")
        config.write(f"[uploadpack]\n\tpackObjectsHook = {trap}\n[extensions]\n\tworktreeConfig\n")
        config.write('[remote "x"]\n\tpromisor = true\n\turl = ext::touch x\n')
    os.mkfifo(own / "refs/heads/pipe")
    (own / "refs/heads/link").symlink_to("/etc/hostname")
    (own / "refs/heads/what").write_text("../../../etc\n")
    made = taken.given()
    assert taken.user.git("rev-parse", f"{made.commit}^") == mine
    assert not (tmp_path / "ran").exists()


def test_a_path_with_every_mark_in_it(tmp_path: Path) -> None:
    place = tmp_path / 'a:b "c" \\d'
    place.mkdir()
    user = User(place)
    user.commit(BASE)
    taken = Taken(user)
    mine = taken.commit({"a": "1\n"}, "Add a")
    assert user.git("rev-parse", f"{taken.given().commit}^") == mine


def test_a_setup_that_fails_does_not_keep_a_person_out(user: User) -> None:
    taken = Taken(user, settings=WorkspaceSettings(setup=("exit 3",)))
    write(taken.path, {"a": "1\n"})
    assert taken.given().created == ("a",)


def test_a_commit_that_a_crash_left_unrecorded_is_found(taken: Taken) -> None:
    taken.commit({"a": "1\n"}, "Add a")
    made = taken.given()
    later = Run(taken.user)
    anyio.run(later.open)
    by_person = replace(author("1"), by_person=True)
    found = anyio.run(later.repository.snapshot, by_person, "snapshot", (taken.start,))
    assert found == made


def test_a_collection_before_the_pin_takes_nothing(taken: Taken) -> None:
    """What the user's gc would take is brought in again from the workspace."""
    mine = taken.commit({"a": "1\n"}, "Add a")
    pack = taken.run.store.pin

    async def collect_first(pins: dict[str, str]) -> None:
        taken.run.store.pin = pack
        taken.user.git("gc", "--quiet", "--prune=now")
        await pack(pins)

    taken.run.store.pin = collect_first  # the one moment in which nothing holds it
    made = taken.given()
    assert taken.user.git("rev-parse", f"{made.commit}^") == mine


def test_a_name_that_is_git_to_some_file_system_is_refused_and_ends_no_run(taken: Taken) -> None:
    name = ".g\u200cit"
    mine = taken.commit({f"deep/{name}/hooks/x": "x\n"}, "Mine")
    made = taken.give()
    assert isinstance(made, Refused)
    assert name in made.reason
    shutil.rmtree(taken.path / "deep")
    made = taken.give()
    assert isinstance(made, Refused), "the commit has it still"
    taken.git("rm", "-rq", "--cached", "deep")
    taken.git("commit", "-q", "--amend", "--allow-empty", "-m", "Mine")
    assert taken.git("rev-parse", "HEAD") != mine
    assert isinstance(taken.give(), Snapshot)
