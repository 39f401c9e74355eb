"""A checkout shows the objects that its own commits reach, and no other object of the repository.

The attacks run inside real walls, on real git: by name, by git's own search for lost objects, and
by reading every object file and pack that the box has.
"""

import os
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from repositories import Run, User, author, inside_walls, write
from windlass.adapters.checks.runner import CommandChecks
from windlass.adapters.git.layout import history
from windlass.app.wiring import Project
from windlass.core.events.model import CheckResult, Outcome
from windlass.core.settings import Settings, WorkspaceSettings
from windlass.errors import GitFailed
from windlass.ports import Refused

pytestmark = pytest.mark.anyio

OPEN = ("open-old", "open-base")
"""What the start commit reaches; tests that find none of it would prove nothing."""

WALK = r"""
here=$PWD; rm -rf /tmp/w; git init -q /tmp/w && cd /tmp/w || exit 9
places=$(find "$here" {root} \
  -type f \( -name '*.pack' -o -name 'tmp_pack*' -o -path '*/[0-9a-f][0-9a-f]/*' \) -print \
  2>/dev/null)
IFS='
'
for file in $places; do
  case ${file##*/} in
    *pack*) git unpack-objects -q -r < "$file" 2>/dev/null ;;
    *) name=$(basename "$file"); over=$(basename "$(dirname "$file")")
       case $name in *[!0-9a-f]*) continue ;; esac
       mkdir -p ".git/objects/$over"; cp "$file" ".git/objects/$over/$name" 2>/dev/null ;;
  esac
done
git cat-file --batch-all-objects --batch
"""
"""Read every object that lies anywhere below a folder or in the checkout, and print all of them."""

LOST = (
    "git fsck --lost-found --full 2>&1; git fsck --unreachable --dangling 2>&1; "
    "cat .git/lost-found/*/*"
)
EVERY = "git cat-file --batch-all-objects --batch; git log --all --reflog -p; git stash list -p"


class Secrets:
    """A repository with something in every corner that a start commit does not reach."""

    def __init__(self, root: Path, *init: str) -> None:
        self.user = user = User(root, *init)
        user.commit({"a": "open-old\n"})
        self.base = user.commit({"a": "open-base\n", "b": "b\n"})
        user.git("branch", "start")
        self.hidden: dict[str, str] = {}
        self._commit("later", "hidden-later")
        user.git("checkout", "-q", "-b", "other", "start")
        self._commit("branch", "hidden-branch")
        user.git("tag", "-a", "-m", "hidden-tag", "marked")
        self.hidden["tag"] = user.git("rev-parse", "marked")
        user.git("checkout", "-q", "-b", "doomed", "start")
        self._commit("deleted", "hidden-deleted")
        user.git("checkout", "-q", "start")
        user.git("branch", "-q", "-D", "doomed")
        user.write({"a": "hidden-stash\n"})
        user.git("stash", "-q")
        self._keep("stash", "refs/stash", "a")
        user.write({"staged": "hidden-staged\n"})
        user.git("add", "staged")
        self.hidden["staged"] = user.git("rev-parse", ":staged")
        user.git("rm", "-q", "-f", "--cached", "staged")
        (user.repo / "staged").unlink()
        made = user.git("commit-tree", "-p", "start", "-m", "hidden-pin", "other^{tree}")
        user.git("update-ref", "refs/windlass/another/r9/task/1.1/1/snapshot", made)
        self.hidden["another plan's pin"] = made

    def _commit(self, name: str, text: str) -> None:
        self.user.commit({"a": f"{text}\n"}, text)
        self._keep(name, "HEAD", "a")

    def _keep(self, name: str, commit: str, path: str) -> None:
        for what in (commit, f"{commit}^{{tree}}", f"{commit}:{path}"):
            self.hidden[f"{name} {what}"] = self.user.git("rev-parse", what)

    async def neighbour(self, run: Run) -> None:
        """Another task of the same run has work that is not merged."""
        made = await run.play("9.9", {"a": "hidden-neighbour\n"})
        self._keep("neighbour", made.commit, "a")


def by_name(hidden: Mapping[str, str], user: User) -> str:
    """Ask for each, in this repository and with the user's object folder named."""
    names = " ".join(hidden.values())
    objects = shlex.quote(str(user.repo / ".git/objects"))
    return (
        f"for name in {names}; do git cat-file -p $name 2>&1; git show $name 2>&1; "
        f"GIT_OBJECT_DIRECTORY={objects} git cat-file -p $name 2>&1; "
        f"GIT_ALTERNATE_OBJECT_DIRECTORIES={objects} git cat-file -p $name 2>&1; done; "
        f"ls -R {objects} 2>&1; git cat-file -p HEAD:a; git log -p"
    )


def walk(user: User) -> str:
    """Read all objects there are of the user's, of Windlass's and of the checkout."""
    return WALK.replace("{root}", shlex.quote(str(user.home.parent)))


def attack(secrets: Secrets, checkout: Path) -> None:
    """Try all ways from inside the walls."""
    for command in (by_name(secrets.hidden, secrets.user), LOST, EVERY, walk(secrets.user)):
        seen = inside_walls(secrets.user, checkout, command).stdout.decode(errors="replace")
        assert "hidden-" not in seen, seen
        if command != LOST:
            assert all(text in seen for text in OPEN), seen
    said = inside_walls(secrets.user, checkout, LOST).stdout
    assert b"dangling" not in said
    assert b"unreachable" not in said


@pytest.fixture(params=["loose", "packed"])
def secrets(tmp_path: Path, request: pytest.FixtureRequest) -> Secrets:
    made = Secrets(tmp_path)
    if request.param == "packed":
        # All in one pack, what no ref reaches among it.
        names = "\n".join(everything(made.user, made.user.repo))
        made.user.git("pack-objects", "-q", ".git/objects/pack/pack", stdin=names)
        made.user.git("prune-packed", "-q")
        assert not list((made.user.repo / ".git/objects").glob("[0-9a-f][0-9a-f]/*"))
    return made


@pytest.mark.parametrize("kind", ["clone", "worktree"])
async def test_a_player_sees_its_own_history_and_nothing_else(secrets: Secrets, kind: str):  # K0
    run = await Run(secrets.user, settings=WorkspaceSettings(kind=kind)).open()  # pyright: ignore[reportArgumentType]
    await secrets.neighbour(run)
    attack(secrets, await run.repository.prepare("1.1", 1, run.base, None))


async def test_a_coach_sees_the_reviewed_snapshot_and_nothing_else(secrets: Secrets):  # K0
    run = await Run(secrets.user).open()
    await secrets.neighbour(run)
    made = await run.play("1.1", {"mine": "open-mine\n"})
    async with run.repository.throwaway(made.commit, "coach") as place:
        attack(secrets, place.path)
        shown = inside_walls(secrets.user, place.path, "git show")
        assert b"open-mine" in shown.stdout


async def test_checks_and_setup_see_no_more_either(secrets: Secrets, tmp_path: Path):  # K0
    sandbox = Project(secrets.user.repo, secrets.user.environment).walls.sandbox(Settings(), "test")
    if sandbox.level != "bwrap":
        pytest.skip("bubblewrap does not work here")
    every = (
        f"({by_name(secrets.hidden, secrets.user)}; {LOST}; {EVERY}; {walk(secrets.user)}) > seen"
    )
    settings = WorkspaceSettings(setup=(f"here=$PWD; ({every}); cp /tmp/w/seen $here/seen; true",))
    run = await Run(secrets.user, settings=settings, sandbox=sandbox).open()
    checks = CommandChecks(
        run.repository.throwaways, sandbox, timeout=60, network=False, logs=tmp_path / "logs"
    )
    found: list[CheckResult] = []
    for command in ("cat seen", by_name(secrets.hidden, secrets.user), walk(secrets.user)):
        found += await checks.run(run.base, (f"{command}\ntrue",), "1.1-1")
    assert [result.outcome for result in found] == [Outcome.PASS] * 3
    logged = "".join(path.read_text(errors="replace") for path in (tmp_path / "logs").iterdir())
    assert all(text in logged for text in OPEN)
    assert "hidden-" not in logged


async def test_a_used_checkout_brings_nothing_of_its_last_task(secrets: Secrets):  # K0
    run = await Run(secrets.user).open()
    tip, _ = await run.land("1.1", 1, (await run.play("1.1", {"x": "open-x\n"})).commit, run.base)
    await run.repository.release("1.1")
    made = await run.play("9.9", {"a": "hidden-neighbour\n"})
    workspace = run.folders.workspace("9.9")
    write(workspace, {".git/objects/pack/mine": "hidden-file\n"})
    await run.repository.release("9.9")
    assert list(run.folders.pool.glob("players-*")), "else the checkout is a fresh one"
    secrets.hidden["last task"] = made.commit
    attack(secrets, await run.repository.prepare("1.2", 1, tip, None))


async def test_naming_a_neighbours_folder_does_not_show_it(secrets: Secrets):  # K0
    """What an agent writes into its `.git` says nothing about what its box has."""
    run = await Run(secrets.user).open()
    other = await run.repository.prepare("9.9", 1, run.base, None)
    write(other, {"a": "hidden-neighbour\n"})
    user = secrets.user
    inside_walls(user, other, "git commit -qam hidden-neighbour")
    made = user.git("rev-parse", "HEAD", cwd=other)
    mine = await run.repository.prepare("1.1", 1, run.base, None)
    folders = (history(run.folders.index("9.9")), other / ".git/objects", run.origin.objects[0])
    write(mine, {".git/objects/info/alternates": "".join(f"{folder}\n" for folder in folders)})
    for command in (f"git cat-file -p {made}", f"ls {folders[0]}", walk(user)):
        seen = inside_walls(user, mine, command)
        assert b"hidden" not in seen.stdout, command
        assert not seen.stdout or command == walk(user)
    await run.repository.prepare("1.1", 2, run.base, None)
    assert user.git("log", "--format=%s", cwd=mine).splitlines() == ["user", "user"]


@pytest.mark.parametrize("kind", ["clone", "worktree"])
async def test_its_objects_cannot_be_written(secrets: Secrets, kind: str):  # K0
    """Other checkouts have links to the same files."""
    run = await Run(secrets.user, settings=WorkspaceSettings(kind=kind)).open()  # pyright: ignore[reportArgumentType]
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    objects = history(run.folders.index("1.1"))
    (pack,) = objects.glob("pack/*.pack")
    before = pack.read_bytes()
    for command in (f"chmod u+w {pack}", f"echo x >> {pack}", f"rm {pack}", f"touch {objects}/x"):
        assert inside_walls(secrets.user, workspace, command).returncode != 0, command
    assert pack.read_bytes() == before


def everything(user: User, checkout: Path) -> set[str]:
    """The names of all objects that a checkout has."""
    asked = ("cat-file", "--batch-all-objects", "--batch-check=%(objectname)", "--unordered")
    return set(user.git(*asked, cwd=checkout).split())


def reached(user: User, *commits: str) -> set[str]:
    listed = user.git("rev-list", "--objects", *commits).splitlines()
    return {line.split()[0] for line in listed}


async def test_every_merge_adds_what_it_adds_and_packs_stay_few(tmp_path: Path):
    user = User(tmp_path)
    user.commit({"a": "1\n"})
    user.commit({"a": "2\n"})
    run = await Run(user).open()
    tip = run.base
    for number in range(1, 18):
        workspace = await run.repository.prepare("t", number, tip, None)
        assert everything(user, workspace) == reached(user, tip)
        assert len(list(history(run.folders.index("t")).glob("pack/*.pack"))) <= 6
        write(workspace, {f"f{number}": f"{number}\n"})
        made = await run.save("t", n=number, parents=(tip,))
        async with run.repository.throwaway(made.commit, "x") as place:
            assert everything(user, place.path) == reached(user, made.commit)
        tip, _ = await run.land("t", number, made.commit, tip)
        await run.repository.release("t")
    again = await Run(user).open()
    workspace = await again.repository.prepare("t", 99, tip, None)
    assert everything(user, workspace) == reached(user, tip)
    assert len(user.git("log", "--format=%h", cwd=workspace).splitlines()) == 2 + 2 * 17
    assert "f7" in user.git("log", "--stat", cwd=workspace)
    assert user.git("blame", "-s", "a", cwd=workspace).endswith("2")
    assert user.git("fsck", "--full", cwd=workspace) == ""


async def test_a_commit_beside_the_base_has_its_own_history(tmp_path: Path):
    user = User(tmp_path)
    user.commit({"a": "1\n"})
    user.git("checkout", "-q", "--orphan", "apart")
    apart = user.commit({"a": "apart\n"})
    user.git("checkout", "-q", "main")
    run = await Run(user).open()
    # The base is not the first parent of this one.
    turned = user.git("commit-tree", "-p", apart, "-p", run.base, "-m", "x", f"{apart}^{{tree}}")
    for commit in (apart, turned):
        async with run.repository.throwaway(commit, "x") as place:
            assert everything(user, place.path) == reached(user, commit)


async def test_with_the_tip_merged_in_all_of_its_index_can_be_read(tmp_path: Path):
    """A Player that settles a conflict compares, adds and commits as everywhere."""
    user = User(tmp_path)
    user.commit({"a": "1\n", "b": "1\n"})
    run = await Run(user).open()
    one = await run.play("1.1", {"a": "one\n", "new": "n\n"})
    two = await run.play("1.2", {"a": "two\n", "b": "two\n"})
    tip, _ = await run.land("1.1", 1, one.commit, run.base)
    workspace = await run.repository.prepare("1.2", 2, two.commit, tip)
    assert "<<<<<<<" in (workspace / "a").read_text()
    shown = inside_walls(user, workspace, "git diff --cached && git commit -qam x && git fsck")
    assert shown.returncode == 0, shown.stderr
    assert b"+<<<<<<<" in shown.stdout
    assert everything(user, workspace) >= reached(user, two.commit, tip)
    write(workspace, {"a": "settled\n"})
    made = await run.save("1.2", n=2, parents=(two.commit, tip))
    assert user.files(made.commit) == {"a": "settled\n", "b": "two\n", "new": "n\n"}


async def test_after_a_refusal_the_next_player_can_commit(tmp_path: Path):
    user = User(tmp_path)
    user.commit({"a": "1\n"})
    run = await Run(user).open()
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    write(workspace, {"new": "n\n", "sub/x": "x\n"})
    user.git("init", "-q", cwd=workspace / "sub")
    refused = await run.repository.snapshot(author("1.1"), "snapshot", (run.base,))
    assert isinstance(refused, Refused)
    shutil.rmtree(workspace / "sub/.git")
    await run.repository.prepare("1.1", 2, run.base, None)
    shown = inside_walls(user, workspace, "git add -A && git commit -qm x && git fsck --full")
    assert shown.returncode == 0, shown.stderr
    made = await run.save("1.1", n=2)
    assert made.files == ("new", "sub/x")


@pytest.mark.parametrize("kind", ["clone", "worktree"])
async def test_once_its_agent_is_done_a_person_sees_the_whole_repository(tmp_path: Path, kind: str):
    user = User(tmp_path)
    user.commit({"a": "1\n"})
    later = user.commit({"a": "2\n"})
    user.git("reset", "-q", "--hard", "HEAD~1")
    run = await Run(user, settings=WorkspaceSettings(kind=kind)).open()  # pyright: ignore[reportArgumentType]
    await run.play("1.1", {"b": "b\n"})
    workspace = run.folders.workspace("1.1")
    assert user.git("cat-file", "-t", later, cwd=workspace) == "commit"
    assert not history(run.folders.index("1.1")).exists()
    taken = await run.repository.prepare("1.2", 1, run.base, None, by_person=True)
    assert user.git("cat-file", "-t", later, cwd=taken) == "commit"
    await run.repository.close()
    assert user.git("log", "--format=%s", cwd=workspace).splitlines()[-1] == "user"


class TestRepositoriesOfEveryKind:
    async def test_the_users_own_gc_takes_nothing_from_a_workspace(self, tmp_path: Path):
        secrets = Secrets(tmp_path)
        run = await Run(secrets.user).open()
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        secrets.user.git("gc", "-q", "--prune=now")
        (secrets.user.repo / ".git/objects").rename(tmp_path / "away")
        assert "open-old" in secrets.user.git("log", "-p", cwd=workspace)

    @pytest.mark.parametrize("how", ["--depth=1", "--depth=2"])
    async def test_shallow(self, tmp_path: Path, how: str):
        secrets = Secrets(tmp_path)
        user, whole = secrets.user, secrets.user.repo.rename(tmp_path / "whole")
        more = ("--no-single-branch", "-b", "start")
        user.git("clone", "-q", how, *more, whole.as_uri(), str(user.repo), cwd=tmp_path)
        run = await Run(user).open()
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        assert everything(user, workspace) == reached(user, run.base)
        depth = int(how[-1])
        assert len(user.git("log", "--format=%h", cwd=workspace).splitlines()) == depth
        assert user.git("fsck", "--full", cwd=workspace) == ""
        listed = (workspace / ".git/shallow").read_text().split() if depth == 1 else []
        assert set(listed) <= reached(user, run.base)
        write(workspace, {"a": "new\n"})
        made = await run.save("1.1")
        tip, _ = await run.land("1.1", 1, made.commit, run.base)
        async with run.repository.throwaway(tip, "x") as place:
            assert everything(user, place.path) == reached(user, tip)

    async def test_partial(self, tmp_path: Path):
        """What the clone lacks is lacking in a workspace too, and is fetched by neither."""
        secrets = Secrets(tmp_path)
        user, whole = secrets.user, secrets.user.repo.rename(tmp_path / "whole")
        user.git("config", "uploadpack.allowFilter", "true", cwd=whole)
        asked = ("--filter=blob:none", "-b", "start", whole.as_uri())
        user.git("clone", "-q", *asked, str(user.repo), cwd=tmp_path)
        before = everything(user, user.repo)
        old = user.git("rev-parse", "start~1:a", cwd=whole)
        assert old not in before
        run = await Run(user).open()
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        missing = reached(user, "--missing=print", run.base)
        assert everything(user, workspace) == {name for name in missing if name[0] != "?"}
        shown = inside_walls(user, workspace, f"git log --format=%s; git cat-file -p {old}")
        assert shown.stdout == b"user\nuser\n"
        assert shown.returncode != 0
        made = await run.play("1.1", {"a": "new\n"})
        tip, _ = await run.land("1.1", 1, made.commit, run.base)
        async with run.repository.throwaway(tip, "x") as place:
            assert user.git("status", "--porcelain", cwd=place.path) == ""
        assert old not in everything(user, user.repo)

    async def test_of_sha256(self, tmp_path: Path):
        secrets = Secrets(tmp_path, "--object-format=sha256")
        run = await Run(secrets.user).open()
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        assert everything(secrets.user, workspace) == reached(secrets.user, run.base)

    @pytest.mark.parametrize("kind", ["clone", "worktree"])
    async def test_with_a_damaged_past(self, tmp_path: Path, kind: str):
        """As long as the base is whole, a run works on it as ever."""
        user = User(tmp_path)
        user.commit({"a": "old\n"})
        lost = user.git("rev-parse", "HEAD:a")
        user.commit({"a": "new\n"})
        (user.repo / ".git/objects" / lost[:2] / lost[2:]).unlink()
        run = await Run(user, settings=WorkspaceSettings(kind=kind)).open()  # pyright: ignore[reportArgumentType]
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        shown = inside_walls(user, workspace, "git log --format=%s && git status --short")
        assert shown.stdout == b"user\nuser\n", shown.stderr

    async def test_in_a_folder_with_any_letters(self, tmp_path: Path):
        odd = tmp_path / 'a:b "c" \\d #e'
        odd.mkdir()
        secrets = Secrets(odd)
        run = await Run(secrets.user).open()
        attack(secrets, await run.repository.prepare("1.1", 1, run.base, None))


class TestWhatIsLeft:
    async def test_nothing_when_the_run_ends(self, tmp_path: Path):
        user = User(tmp_path)
        user.commit({"a": "1\n"})
        run = await Run(user).open()
        await run.play("1.1", {"b": "b\n"})
        await run.repository.release("1.1")
        assert run.folders.histories.exists()
        await run.repository.close()
        assert not run.folders.histories.exists()
        assert not list(run.folders.home.rglob("*.pack"))

    @pytest.mark.parametrize("left", ["whole", "half", "spoilt"])
    async def test_of_a_dead_process_nothing_is_used(self, tmp_path: Path, left: str):
        user = User(tmp_path)
        user.commit({"a": "1\n"})
        run = await Run(user).open()
        await run.repository.prepare("1.1", 1, run.base, None)
        for pack in run.folders.home.rglob("*.pack"):
            pack.chmod(0o600)
            if left == "half":
                pack.rename(pack.with_name("tmp_pack_x"))
            elif left == "spoilt":  # as after a power loss
                os.truncate(pack, 10)
        again = await Run(user).open()
        assert not list(again.folders.histories.glob("*"))
        workspace = await again.repository.prepare("1.1", 2, run.base, None)
        assert user.git("fsck", "--full", cwd=workspace) == ""

    async def test_what_somebody_removed_meanwhile_is_made_again(self, tmp_path: Path):
        user = User(tmp_path)
        user.commit({"a": "1\n"})
        run = await Run(user).open()
        first = await run.repository.prepare("1.1", 1, run.base, None)
        shutil.rmtree(run.folders.histories)
        second = await run.repository.prepare("1.2", 1, run.base, None)
        for workspace in (first, second):
            assert user.git("fsck", "--full", cwd=workspace) == ""

    async def test_where_there_are_no_links_packs_are_copied(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        user = User(tmp_path)
        user.commit({"a": "1\n"})
        run = await Run(user).open()
        monkeypatch.setattr(os, "link", _refused)
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        assert everything(user, workspace) == reached(user, run.base)

    async def test_the_users_object_folder_gets_no_file_of_it(self, tmp_path: Path):
        user = User(tmp_path)
        user.commit({"a": "1\n"})
        run = await Run(user).open()
        before = _files(run.origin.objects[0])
        await run.repository.prepare("1.1", 1, run.base, None)
        assert _files(run.origin.objects[0]) == before

    async def test_a_commit_that_is_gone_is_told(self, tmp_path: Path):
        user = User(tmp_path)
        user.commit({"a": "1\n"})
        run = await Run(user).open()
        with pytest.raises(GitFailed):
            await run.repository.prepare("1.1", 1, "0" * 39 + "1", None)


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def _refused(*_paths: Callable[[], object], **_more: object) -> None:
    raise OSError
