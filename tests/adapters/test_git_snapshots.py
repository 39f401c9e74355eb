"""What a snapshot holds, what it leaves out, and what it refuses."""

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from repositories import NOBODY, Run, User, author, held, write
from windlass.adapters.git.inspect import NO_FILTERS
from windlass.adapters.git.paths import MOST_RULES
from windlass.core.settings import WorkspaceSettings
from windlass.errors import GitFailed
from windlass.ports import Refused, Snapshot

GITS = (
    ".g\u200cit",
    ".gi\u200dt",
    "\u202e.git",
    ".git\ufeff",
    ".G\u2060IT",
    ".gi\u00adt",
    ".g\ufe0fit",
    ".GIT",
    ".git.",
    ".git . ",
    ".Git...",
    "git~1",
    "GIT~1",
    "GIT~2",
    ".git::$INDEX_ALLOCATION",
    ".git:x",
)
"""Names that some file system takes for `.git`: it drops marks and dots, or folds the case."""

BASE = {"README": "hello\n", "src/a": "a\n", "src/b": "b\n", "run": "#!/bin/sh\n"}
pytestmark = pytest.mark.anyio


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.commit(BASE)
    return made


async def prepared(user: User, **settings: Any) -> tuple[Run, Path]:
    run = await Run(user, settings=WorkspaceSettings(**settings)).open()
    return run, await run.repository.prepare("1.1", 1, run.base, None)


def _dig(folder: Path) -> None:
    """Make folders in folders, until no path is long enough to name the last."""
    folder.mkdir()
    at = os.open(folder, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=at)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


async def refused(run: Run) -> str:
    made = await run.repository.snapshot(author("1.1"), "snapshot", (run.base,))
    assert isinstance(made, Refused), made
    assert "\n" not in made.reason
    return made.reason


class TestContent:
    async def test_deletions_renames_and_modes(self, user: User):
        run, workspace = await prepared(user)
        (workspace / "README").unlink()
        (workspace / "src/a").rename(workspace / "moved")
        (workspace / "run").chmod(0o755)
        made = await run.save("1.1")
        assert user.modes(made.commit) == {
            "moved": "100644",
            "run": "100755",
            "src/b": "100644",
        }
        assert sorted(made.files) == ["README", "moved", "run", "src/a"]

    async def test_a_folder_deeper_than_any_path_hurts_only_where_it_counts(self, user: User):
        run, workspace = await prepared(user)
        write(workspace, {".gitignore": "cache/\n"})
        _dig(workspace / "cache")
        made = await run.save("1.1")
        assert made.files == (".gitignore",)
        (workspace / "cache").rename(workspace / "mine")
        assert "cannot be read" in await refused(run)

    async def test_a_file_becomes_a_folder_and_a_folder_a_file(self, user: User):
        run, workspace = await prepared(user)
        (workspace / "README").unlink()
        write(workspace, {"README/now": "a folder\n"})
        shutil.rmtree(workspace / "src")
        write(workspace, {"src": "a file\n"})
        made = await run.save("1.1")
        assert user.files(made.commit) == {
            "README/now": "a folder\n",
            "run": "#!/bin/sh\n",
            "src": "a file\n",
        }

    async def test_a_change_that_keeps_size_and_time_is_seen(self, user: User):
        run, workspace = await prepared(user)
        before = (workspace / "README").stat()
        (workspace / "README").write_text("jello\n")
        os.utime(workspace / "README", ns=(before.st_atime_ns, before.st_mtime_ns))
        assert user.files((await run.save("1.1")).commit)["README"] == "jello\n"

    async def test_links_are_stored_as_links(self, user: User, tmp_path: Path):
        (tmp_path / "outside").mkdir()
        write(tmp_path, {"outside/secret": "private\n"})
        run, workspace = await prepared(user)
        (workspace / "out").symlink_to(tmp_path / "outside")
        (workspace / "file").symlink_to(tmp_path / "outside/secret")
        (workspace / "broken").symlink_to("nowhere")
        (workspace / "self").symlink_to(".")
        made = await run.save("1.1")
        links = {path for path, mode in user.modes(made.commit).items() if mode == "120000"}
        assert links == {"out", "file", "broken", "self"}
        assert user.show(f"{made.commit}:file") == str(tmp_path / "outside/secret")
        again = await run.repository.prepare("1.2", 1, made.commit, None)
        assert (again / "out").is_symlink()
        assert (tmp_path / "outside/secret").read_text() == "private\n"

    async def test_a_folder_that_became_a_link_is_not_written_through(
        self, user: User, tmp_path: Path
    ):
        """The tip has files in a folder that the Player made a link: they stay in the workspace."""
        outside = tmp_path / "outside"
        outside.mkdir()
        run = await Run(user).open()
        theirs = await run.play("1.2", {"src/new": "n\n"})
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        shutil.rmtree(workspace / "src")
        (workspace / "src").symlink_to(outside)
        mine = await run.save("1.1")
        await run.repository.prepare("1.1", 2, mine.commit, theirs.commit)
        assert list(outside.iterdir()) == []

    @pytest.mark.parametrize(
        "name",
        [
            b"caf\xe9",
            b"new\nline",
            b" space ",
            b"-dash",
            b"quote\"'",
            b"tab\t",
            b"esc\x1b[2J",
            "ü✓".encode(),
        ],
        ids=repr,
    )
    async def test_any_name_will_do(self, user: User, name: bytes):
        run, workspace = await prepared(user)
        path = os.fsdecode(name)
        write(workspace, {path: "odd\n", f"{path}-folder/{path}": "odd\n"})
        made = await run.save("1.1")
        assert user.files(made.commit) == {**BASE, path: "odd\n", f"{path}-folder/{path}": "odd\n"}
        for told in made.files:
            told.encode()  # what is told must be text that a journal can keep
            assert told.isprintable(), "and one line, wherever it is told"
        again = await run.repository.prepare("1.2", 1, made.commit, None)
        assert held(again)[path] == "odd\n"

    async def test_pipes_and_sockets_are_left_out(
        self, user: User, monkeypatch: pytest.MonkeyPatch
    ):
        run, workspace = await prepared(user)
        os.mkfifo(workspace / "pipe")
        with socket.socket(socket.AF_UNIX) as server:
            monkeypatch.chdir(workspace)  # a socket's address is short
            server.bind("socket")
            made = await run.save("1.1")
        assert (made.commit, made.changed) == (run.base, False)

    async def test_the_users_own_line_ends_are_respected(self, user: User):
        user.config("core.autocrlf=true")
        run, workspace = await prepared(user)
        assert (workspace / "README").read_bytes() == b"hello\r\n"
        write(workspace, {"new": b"one\r\ntwo\r\n"})
        made = await run.save("1.1")
        assert user.files(made.commit) == {**BASE, "new": "one\ntwo\n"}

    async def test_line_ends_stay_as_they_are_where_the_user_says_nothing(self, user: User):
        run, workspace = await prepared(user)
        write(workspace, {"new": b"one\r\ntwo\n"})
        assert user.files((await run.save("1.1")).commit)["new"] == "one\r\ntwo\n"

    async def test_modes_are_ignored_where_the_user_says_so(self, user: User):
        user.git("config", "core.filemode", "false")
        run, workspace = await prepared(user)
        (workspace / "README").chmod(0o755)
        assert not (await run.save("1.1")).changed

    async def test_more_paths_than_can_be_told_are_all_committed(self, user: User):
        run, workspace = await prepared(user)
        write(workspace, {f"many/{number}": "m\n" for number in range(150)})
        made = await run.save("1.1")
        assert len(made.files) == 100
        assert len(user.modes(made.commit)) == 154


class TestByProducts:
    MADE = (
        "__pycache__/a.pyc",
        "src/__pycache__/b.pyc",
        ".venv/bin/python",
        "node_modules/x/index.js",
        "deep/node_modules/y.js",
        ".pytest_cache/v",
        "x.egg-info/PKG-INFO",
        ".coverage",
        ".DS_Store",
        "kept/cache/big",
        "mine.swp",
        "local.txt",
        ".windlass/x",
    )
    """Windlass's own among them: it never is in a snapshot, other than the base has it."""

    def configure(self, user: User) -> None:
        (user.home / "ignore").write_text("# a remark\n*.swp\n")
        user.config("core.excludesFile=~/ignore")
        (user.repo / ".git/info/exclude").write_text("local.txt\n")

    async def test_they_are_not_in_a_snapshot(self, user: User):
        self.configure(user)
        run, workspace = await prepared(user, keep=("kept/cache",))
        write(workspace, dict.fromkeys(self.MADE, "x\n"))
        write(workspace, {"kept/else": "y\n", "real": "r\n"})
        (workspace / "web").mkdir()
        (workspace / "web/node_modules").symlink_to("../node_modules")
        made = await run.save("1.1")
        assert user.files(made.commit) == {**BASE, "kept/else": "y\n", "real": "r\n"}

    async def test_they_are_where_the_base_tracks_them(self, user: User):
        made = [path for path in self.MADE if path != ".windlass/x"]
        write(user.repo, dict.fromkeys(made, "tracked\n"))
        user.git("add", "-f", "-A")
        user.commit({}, "all of it")
        self.configure(user)
        run, workspace = await prepared(user, keep=("kept/cache",))
        write(workspace, dict.fromkeys(made, "changed\n"))
        write(workspace, {".venv/new": "n\n", "kept/cache/new": "n\n"})
        (workspace / "mine.swp").unlink()
        expected = {**BASE, **dict.fromkeys(made, "changed\n")}
        del expected["mine.swp"]
        assert user.files((await run.save("1.1")).commit) == expected

    async def test_those_that_the_tip_tracks_survive_a_conflict_round(self, user: User):
        run = await Run(user).open()
        workspace = await run.repository.prepare("1.2", 1, run.base, None)
        write(workspace, {"README": "theirs\n", ".gitignore": "!*.pyc\n", "kept.pyc": "k\n"})
        theirs = await run.save("1.2")
        assert "kept.pyc" in user.files(theirs.commit)
        mine = await run.play("1.1", {"README": "mine\n"})
        workspace = await run.repository.prepare("1.1", 2, mine.commit, theirs.commit)
        (workspace / ".gitignore").unlink()
        write(workspace, {"README": "both\n"})
        damage(run.folders.index("1.1"))  # and what is tracked is found again without the index
        made = await run.save("1.1", n=2, parents=(mine.commit, theirs.commit))
        assert user.files(made.commit) == {**BASE, "README": "both\n", "kept.pyc": "k\n"}


class TestRefusals:
    async def test_a_repository_inside_the_repository(self, user: User):
        run, workspace = await prepared(user)
        nested = workspace / "deep/nested"
        user.git("init", "-q", str(nested))
        assert await refused(run) == (
            "deep/nested/.git makes a repository inside the repository; remove that .git"
        )
        write(nested, {"x": "x\n"})
        user.git("add", "-A", cwd=nested)
        user.git("commit", "-q", "-m", "x", cwd=nested)
        assert "deep/nested/.git" in await refused(run)
        shutil.rmtree(nested / ".git")
        (nested / ".git").write_text(f"gitdir: {user.repo}/.git\n")
        assert "deep/nested/.git" in await refused(run)
        (nested / ".git").unlink()
        assert "deep/nested/x" in user.files((await run.save("1.1")).commit)

    @pytest.mark.parametrize("place", ["", "deep/nested/"])
    @pytest.mark.parametrize("name", GITS)
    @pytest.mark.parametrize("kind", ["folder", "file"])
    async def test_a_name_that_is_git_to_some_file_system(
        self, user: User, name: str, place: str, kind: str
    ):
        run, workspace = await prepared(user)
        write(
            workspace, {f"{place}{name}/hooks/x" if kind == "folder" else f"{place}{name}": "x\n"}
        )
        reason = await refused(run)
        assert "makes a repository inside the repository; remove that .git" in reason
        path = workspace / place / name
        shutil.rmtree(path) if kind == "folder" else path.unlink()
        assert not isinstance(await run.save("1.1"), Refused)

    async def test_one_among_tracked_files_hides_nothing(self, user: User):
        run, workspace = await prepared(user)
        user.git("init", "-q", str(workspace / "src"))
        write(workspace, {"src/new": "n\n", "src/a": "changed\n"})
        made = await run.repository.snapshot(author("1.1"), "snapshot", (run.base,))
        if not isinstance(made, Refused):
            assert user.files(made.commit) == {**BASE, "src/new": "n\n", "src/a": "changed\n"}

    async def test_one_in_an_ignored_folder_is_nobodys_business(self, user: User):
        run, workspace = await prepared(user)
        user.git("init", "-q", str(workspace / "node_modules/x"))
        assert not (await run.save("1.1")).changed

    async def test_a_file_that_is_too_large(self, user: User):
        run, workspace = await prepared(user, max_file_mb=0.5)
        write(workspace, {"big": b"x" * 700_000})
        assert await refused(run) == "big has 0.7 MB, more than the 0.5 MB a file may have"
        write(workspace, {"big": b"x" * 500_000})
        assert (await run.save("1.1")).changed

    async def test_a_large_by_product_is_none(self, user: User):
        run, workspace = await prepared(user, max_file_mb=0.5)
        write(workspace, {"node_modules/big": b"x" * 700_000})
        assert not (await run.save("1.1")).changed

    @pytest.mark.parametrize("name", [".GIT/config", "git~1", "deep/.Git/hooks/x", ".git./x"])
    async def test_a_name_that_is_git_elsewhere(self, user: User, name: str):
        """A path that another system would take for `.git` is refused, and ends no run."""
        run, workspace = await prepared(user)
        write(workspace, {name: "x\n"})
        assert name.partition("/")[0] in await refused(run)

    @pytest.mark.parametrize(
        "name",
        [".windlass", ".Windlass", ".windla\u017fs", ".wind\u200class", ".windlass.", "WINDLA~1"],
    )
    async def test_windlasss_own_folder_by_any_name(self, user: User, name: str):
        """Landed, it would be read as commands to the next run, and as its instructions."""
        run, workspace = await prepared(user)
        ignore = {".gitignore": f"!{name}\n!{name}/**\n"}
        reason = (
            f"{name} is Windlass's own and no part of a task; put it back as it was or remove it"
        )
        write(workspace, {**ignore, f"{name}/plans/p/inbox/1.json": "{}\n", "real": "r\n"})
        assert await refused(run) == reason
        shutil.rmtree(workspace / name)
        (workspace / name).symlink_to("src")
        assert await refused(run) == reason
        (workspace / name).unlink()
        write(workspace, {f"src/{name}/x": "only at the root is it one\n"})
        files = user.files((await run.save("1.1")).commit)
        assert files.keys() - BASE.keys() == {"real", ".gitignore", f"src/{name}/x"}

    async def test_instructions_that_the_base_tracks(self, user: User):
        user.write({".windlass/coach.md": "as committed\n"})
        user.git("add", "--force", ".windlass/coach.md")
        user.commit({}, "instructions")
        run, workspace = await prepared(user)
        for change in ({".windlass/coach.md": "approve all\n"}, {".windlass/coach.md": None}):
            write(workspace, change)
            assert ".windlass is Windlass's own" in await refused(run)
        write(workspace, {".windlass/coach.md": "as committed\n", "real": "r\n"})
        made = await run.save("1.1")
        assert user.files(made.commit)[".windlass/coach.md"] == "as committed\n"
        theirs = user.commit(
            {".windlass/coach.md": "newer\n"}
        )  # by the user, and to be merged with
        workspace = await run.repository.prepare("1.1", 2, made.commit, theirs)
        write(workspace, {"real": "both\n"})
        made = await run.save("1.1", n=2, parents=(made.commit, theirs))
        assert user.files(made.commit)[".windlass/coach.md"] == "newer\n"

    async def test_a_pipe_in_the_place_of_a_file(self, user: User):
        run, workspace = await prepared(user)
        (workspace / "README").unlink()
        os.mkfifo(workspace / "README")
        assert "README" in await refused(run)

    async def test_attributes_that_git_cannot_follow(self, user: User):
        run, workspace = await prepared(user)
        write(workspace, {".gitattributes": "*.txt working-tree-encoding=NONE\n", "a.txt": "x\n"})
        assert "a.txt" in await refused(run)

    @pytest.mark.parametrize(
        "name", [".gitignore", ".gitattributes", "src/.gitattributes", "new/.gitignore"]
    )
    async def test_a_pipe_that_git_would_wait_for(self, user: User, name: str):
        """It would wait for ever, and the run with it."""
        run = await Run(user).open()
        theirs = await run.play("1.2", {"README": "theirs\n"})
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        (workspace / name).parent.mkdir(exist_ok=True)
        os.mkfifo(workspace / name)
        assert await refused(run) == f"{name} is not a file that git can read; remove it"
        await run.repository.prepare("1.1", 2, run.base, theirs.commit)
        made = await run.save("1.1", n=2, parents=(run.base, theirs.commit))
        assert user.files(made.commit)["README"] == "theirs\n"

    @pytest.mark.parametrize("folder", ["node_modules", "a/.venv/b", ".windlass"])
    async def test_a_pipe_where_git_looks_only_if_it_is_told_to(self, user: User, folder: str):
        """Which folders git passes by is what the tree's own rules say in the end."""
        run, workspace = await prepared(user)
        (workspace / folder).mkdir(parents=True)
        os.mkfifo(workspace / folder / ".gitignore")
        write(workspace, {"out/x": "o\n", ".gitignore": "out\n"})
        os.mkfifo(workspace / "out/.gitattributes")
        made = await run.save("1.1")
        assert user.files(made.commit) == {**BASE, ".gitignore": "out\n"}
        write(workspace, {".gitignore": "out\n!node_modules\n!.venv\n!.windlass\n"})
        said = await refused(run)
        assert said == f"{folder}/.gitignore is not a file that git can read; remove it"

    @pytest.mark.parametrize("through", ["folder", "file", "link"])
    async def test_a_repository_that_git_would_wait_for(self, user: User, through: str):
        run, workspace = await prepared(user)
        nested = workspace / "deep/nested"
        inner = nested / ".git" if through == "folder" else workspace / ".git/inner"
        for folder in ("objects", "refs"):
            (inner / folder).mkdir(parents=True)
        os.mkfifo(inner / "HEAD")
        nested.mkdir(parents=True, exist_ok=True)
        if through == "file":
            (nested / ".git").write_text(f"gitdir: {inner}\n")
        elif through == "link":
            (nested / ".git").symlink_to(inner)
        assert await refused(run) == (
            "deep/nested/.git makes a repository inside the repository; remove that .git"
        )
        nested.rename(workspace / "node_modules")
        assert not (await run.save("1.1")).changed

    @pytest.mark.parametrize("name", [".gitignore", "src/.gitattributes", "new/.GitIgnore"])
    async def test_rules_that_git_could_not_hold(self, user: User, name: str):
        """It would run out of memory, in every process that takes the run up again."""
        run = await Run(user).open()
        theirs = await run.play("1.2", {"README": "theirs\n"})
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        write(
            workspace, {name: "", "out/.gitignore": b"x" * (MOST_RULES + 1), ".gitignore": "out\n"}
        )
        os.truncate(workspace / name, 2**35)
        assert await refused(run) == (
            f"{name} is too large: git's rules, with those in folders above, may have 1,048,576 "
            "bytes; shorten or remove it"
        )
        await run.repository.prepare("1.1", 2, run.base, theirs.commit)  # where git writes files
        write(workspace, {".gitignore": "out\n", name: "out\n"})
        made = await run.save("1.1", n=2, parents=(run.base, theirs.commit))
        assert user.files(made.commit)["README"] == "theirs\n"

    async def test_rules_count_with_those_above_and_not_with_those_beside(self, user: User):
        run, workspace = await prepared(user)
        half = b"x" * (MOST_RULES // 2)
        write(workspace, {f"{folder}/.gitignore": half for folder in ("a", "b", "c", "a/d/e")})
        assert (await run.save("1.1")).changed
        write(workspace, {"a/d/e/f/.gitattributes": "y\n"})
        assert (await refused(run)).startswith("a/d/e/f/.gitattributes is too large")

    async def test_a_workspace_that_git_cannot_look_at(
        self, user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        """Whatever it is: the next process would fail over it as well, and the next Player not."""
        shim, real = tmp_path / "bin/git", shutil.which("git")
        bomb = 'test ! -e bomb || { echo "fatal: it is too much" >&2; exit 128; }'
        lines = ("#!/bin/sh", f'case "$*" in *--all*) {bomb};; esac', f'exec {real} "$@"', "")
        write(tmp_path, {"bin/git": "\n".join(lines)})
        shim.chmod(0o755)
        monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
        run, workspace = await prepared(user)
        write(workspace, {"bomb": "b\n", "real": "r\n"})
        assert await refused(run) == "git cannot commit this: it is too much; remove or rename it"
        (workspace / "bomb").unlink()
        assert user.files((await run.save("1.1")).commit) == {**BASE, "real": "r\n"}

    async def test_a_link_that_git_would_follow(self, user: User, tmp_path: Path):
        os.mkfifo(tmp_path / "pipe")
        run, workspace = await prepared(user)
        (workspace / ".gitmodules").symlink_to(tmp_path / "pipe")
        assert ".gitmodules" in await refused(run)

    async def test_a_path_longer_than_any_path_may_be(
        self, user: User, monkeypatch: pytest.MonkeyPatch
    ):
        run, workspace = await prepared(user)
        monkeypatch.chdir(workspace)
        for _ in range(20):
            os.mkdir("d" * 250)  # noqa: PTH102  relative, for no path may be this long
            os.chdir("d" * 250)
        Path("file").touch()
        monkeypatch.undo()
        assert len(await refused(run)) < 1000
        await run.repository.release("1.1")

    async def test_a_reason_can_be_written_down(self, user: User):
        run, workspace = await prepared(user, max_file_mb=0.5)
        write(workspace, {os.fsdecode(b"caf\xe9\nx"): b"x" * 700_000})
        (await refused(run)).encode()

    async def test_a_repository_that_cannot_be_written_is_no_fault_of_the_player(self, user: User):
        run, workspace = await prepared(user)
        write(workspace, {"new": "n\n"})
        objects = user.repo / ".git/objects"
        objects.rename(objects.with_name("away"))
        with pytest.raises(GitFailed):
            await run.save("1.1")


class TestWithoutRoot:
    """Permissions that only bind others than root: this process becomes nobody for a while."""

    @pytest.fixture
    def place(self) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(prefix="windlass-nobody-"))
        root = os.getuid() == 0
        if root:
            os.chown(folder, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, 0)
        yield folder
        if root:
            os.setresuid(0, 0, 0)
        shutil.rmtree(folder)

    async def test_what_cannot_be_read_is_refused(self, place: Path):
        user = User(place)
        user.commit(BASE)
        run, workspace = await prepared(user)
        write(workspace, {"closed/file": "f\n"})
        cure = "cannot be read; give it back its permissions or remove it"
        for path in ("closed/file", "closed", "src", "src/a"):
            mode = (workspace / path).stat().st_mode
            (workspace / path).chmod(0)
            reason = await refused(run)
            assert reason.rstrip("/").startswith(path)
            assert reason.endswith(cure)
            (workspace / path).chmod(mode)
        assert "closed/file" in user.files((await run.save("1.1")).commit)

    async def test_what_cannot_be_entered_is_removed_all_the_same(self, place: Path):
        user = User(place)
        user.commit(BASE)
        run, workspace = await prepared(user)
        write(workspace, {"a/b/c/d": "d\n", ".git/x/y/z": "z\n"})
        for path in ("a/b/c", "a/b", "a", ".git/x/y", ".git/x", ".git"):
            (workspace / path).chmod(0)
        await run.repository.prepare("1.1", 2, run.base, None)
        workspace.chmod(0)
        await run.repository.release("1.1")
        assert not workspace.exists()


async def test_a_very_deep_folder_can_be_removed(user: User, monkeypatch: pytest.MonkeyPatch):
    run, workspace = await prepared(user)
    monkeypatch.chdir(workspace)
    for _ in range(3000):
        os.mkdir("d")  # noqa: PTH102  relative, for no path may be this long
        os.chdir("d")
    monkeypatch.undo()
    await run.repository.release("1.1")
    assert not workspace.exists()


def damage(index: Path) -> None:
    index.write_bytes(b"\0" * 100)


@pytest.mark.parametrize("path", [".gitattributes", "deep/down/.gitattributes"])
async def test_work_that_adds_lfs_is_refused_in_the_words_of_the_start(
    user: User, path: str
) -> None:
    """Git LFS would keep the content elsewhere; another filter changes nothing that is stored."""
    user.config("filter.strip.clean=cat")
    run = await Run(user).open()

    async def attempt(name: str) -> Snapshot | Refused:
        place = await run.repository.prepare("1", 1, run.base, None)
        write(place, {path: f"*.bin filter={name} -text\n", "big.bin": "content\n"})
        return await run.repository.snapshot(author("1"), "snapshot", (run.base,))

    made = await attempt("lfs")
    assert isinstance(made, Refused)
    assert made.reason == f"a .gitattributes uses Git LFS; {NO_FILTERS}"
    assert isinstance(await attempt("strip"), Snapshot)
