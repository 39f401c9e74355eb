"""Real repositories for tests: a user with a home, and runs of Windlass in their repository."""

import itertools
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from windlass.adapters.checks.setup_cache import SetupCache
from windlass.adapters.git import inspect
from windlass.adapters.git.layout import Folders, Refs
from windlass.adapters.git.repository import GitRepository
from windlass.adapters.git.store import Store
from windlass.adapters.sandbox import Box, Sandbox
from windlass.adapters.sandbox.plain import Plain
from windlass.app.wiring import Project
from windlass.core.settings import Settings, WorkspaceSettings
from windlass.ports import Authorship, Merged, Snapshot

NOBODY = 65534
_MOMENTS = itertools.count(1_700_000_000)


class User:
    """A user with a home, a git configuration and a repository."""

    def __init__(self, root: Path, *init: str) -> None:
        self.home = root / "home"
        self.home.mkdir()
        self.repo = root / "project"
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C",
        }
        self.config("user.name=Ann User", "user.email=ann@example.org")
        self.git("init", "-q", "-b", "main", *init, str(self.repo), cwd=root)

    def config(self, *settings: str) -> None:
        """Set the user's own configuration."""
        lines = [setting.partition("=") for setting in settings]
        text = "".join(
            f"[{_section(name)}]\n\t{name.rpartition('.')[2]} = {value}\n"
            for name, _, value in lines
        )
        with (self.home / ".gitconfig").open("a") as file:
            file.write(text)

    def git(self, *args: str, cwd: Path | None = None, stdin: str = "") -> str:
        """Run the user's git; returns its output."""
        done = subprocess.run(
            ["git", *args],
            cwd=cwd or self.repo,
            env=self.environment,
            input=stdin.encode(errors="surrogateescape"),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (args, done.stderr.decode(errors="replace"))
        return done.stdout.decode(errors="surrogateescape").rstrip("\n")

    def write(self, files: Mapping[str, str | bytes | None]) -> None:
        """Change the user's checkout."""
        write(self.repo, files)

    def commit(self, files: Mapping[str, str | bytes | None], message: str = "user") -> str:
        """Commit everything in the user's checkout."""
        self.write(files)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def refs(self, *prefixes: str) -> dict[str, str]:
        """The commits of refs, by name."""
        listed = self.git("for-each-ref", "--format=%(refname) %(objectname)", *prefixes)
        return dict(line.split() for line in listed.splitlines())

    def files(self, commit: str) -> dict[str, str]:
        """The files of a commit."""
        listed = self.git("ls-tree", "-r", "-z", "--name-only", commit).split("\0")[:-1]
        return {path: self.show(f"{commit}:{path}") for path in listed}

    def modes(self, commit: str) -> dict[str, str]:
        """The modes of the files of a commit."""
        entries = self.git("ls-tree", "-r", "-z", commit).split("\0")[:-1]
        return {entry.partition("\t")[2]: entry.split()[0] for entry in entries}

    def show(self, blob: str) -> str:
        """The content of a blob."""
        done = subprocess.run(
            ["git", "cat-file", "blob", blob],
            cwd=self.repo,
            env=self.environment,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode(errors="surrogateescape")


class Run:
    """One process of one run in a user's repository, composed as wiring does it."""

    def __init__(
        self,
        user: User,
        *,
        run: str = "r1",
        directory: Path | None = None,
        settings: WorkspaceSettings | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        self.user = user
        git = inspect.UserGit(directory or user.repo, user.environment)
        # Every process has its own time, so that two commits are never the same by chance.
        date = f"{next(_MOMENTS)} +0000"
        identity = {
            **inspect.identity(git),
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_DATE": date,
        }
        self.origin = replace(inspect.locate(git), identity=identity)
        self.folders = Folders(self.origin.root / ".windlass", "p")
        self.refs = Refs("p", run)
        self.store = Store(self.origin, self.folders)
        settings = settings or WorkspaceSettings()
        self.sandbox = sandbox or Plain("checkout", home=user.home, environment={}, marker=run)
        self.setup_cache = SetupCache(self.store, self.refs, self.sandbox, settings)
        self.notices: list[str] = []
        self.repository = GitRepository(
            self.store,
            self.refs,
            setup=self.setup_cache,
            settings=settings,
            environment=user.environment,
            notice=self.notices.append,
        )
        self.base = user.git("rev-parse", "HEAD", cwd=directory)

    async def open(self) -> "Run":
        """Open the repository as wiring does at the start of a process."""
        self.folders.root.mkdir(exist_ok=True)
        (self.folders.root / ".gitignore").write_text("*\n")
        self.store.open(self.setup_cache.exclude_text())
        await self.repository.open(self.base)
        return self

    async def play(
        self, task: str, files: Mapping[str, str | bytes | None], *, n: int = 1
    ) -> Snapshot:
        """Prepare from the base, write, snapshot."""
        workspace = await self.repository.prepare(task, n, self.base, None)
        write(workspace, files)
        return await self.save(task, n=n)

    async def save(self, task: str, *, n: int = 1, parents: Sequence[str] = ()) -> Snapshot:
        """A snapshot that is not refused."""
        made = await self.repository.snapshot(
            author(task, n), "snapshot", tuple(parents) or (self.base,)
        )
        assert isinstance(made, Snapshot), made
        return made

    async def land(self, task: str, number: int, commit: str, tip: str) -> tuple[str, str]:
        """Merge and move the tip; returns the new tip and the message of the move."""
        made = await self.repository.merge(author(task), number, commit, tip)
        assert isinstance(made, Merged), made
        return made.commit, await self.repository.move_tip(tip, made.commit)


def inside_walls(user: User, checkout: Path, command: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a checkout, in the sandbox of an agent, composed as wiring does it."""
    environment = {**user.environment, "GIT_CONFIG_GLOBAL": "/dev/null"}
    settings = Settings(workspace=WorkspaceSettings(kind="worktree"))
    sandbox = Project(user.repo, environment).walls.sandbox(settings, "test")
    if sandbox.level != "bwrap":
        pytest.skip("bubblewrap does not work here")
    box = Box(checkout=checkout, network=False)
    with sandbox.entered(box, ["/bin/sh", "-c", command]) as entry:
        return subprocess.run(
            entry.argv,
            env=entry.env,
            pass_fds=entry.inherited,
            cwd=checkout,
            capture_output=True,
            check=False,
        )


def author(task: str, n: int = 1) -> Authorship:
    return Authorship(task=task, title=f"Do {task}", n=n, turn=n)


def write(folder: Path, files: Mapping[str, str | bytes | None]) -> None:
    """Write files into a folder; None removes one."""
    for name, content in files.items():
        path = folder / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def held(folder: Path) -> dict[str, str]:
    """The files of a checkout, without its `.git`."""
    files = (path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    ours = {str(path.relative_to(folder)): path for path in files}
    return {
        name: path.read_bytes().decode(errors="surrogateescape")
        for name, path in ours.items()
        if name != ".git" and not name.startswith(".git/")
    }


def _section(name: str) -> str:
    section, *middle, _ = name.split(".")
    return f'{section} "{".".join(middle)}"' if middle else section
