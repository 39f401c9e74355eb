"""Both repositories keep the promises of the port, the real one with either kind of workspace."""

import shutil
from collections.abc import Callable
from pathlib import Path, PurePath

import pytest

from repositories import Run, User, held, inside_walls, write
from windlass.core.settings import WorkspaceSettings
from windlass.ports import Repository
from windlass.testing.conformance.repository import Edits, Files
from windlass.testing.conformance.workspaces import WorkspaceContract
from windlass.testing.memory import MemoryRepository


class TestMemoryRepository(WorkspaceContract):
    can_commit = False

    def commit(self, repository: Repository, workspace: PurePath) -> bool:
        del repository, workspace
        return False  # there is no git in it

    async def make(self, base: Files) -> Repository:
        return MemoryRepository(base)

    async def reopen(self, repository: Repository) -> Repository:
        later = MemoryRepository({})
        later.__dict__.update(_memory(repository).__dict__)
        return later

    def base(self, repository: Repository) -> str:
        return _memory(repository).base

    def files(self, repository: Repository, commit: str) -> Files:
        return _memory(repository).files(commit)

    def parents(self, repository: Repository, commit: str) -> tuple[str, ...]:
        return _memory(repository).commits[commit].parents

    def look(self, repository: Repository, workspace: PurePath) -> Files | None:
        return _memory(repository).workspaces.get(str(workspace))

    def edit(self, repository: Repository, workspace: PurePath, edits: Edits) -> None:
        files = _memory(repository).workspaces[str(workspace)]
        for path, content in edits.items():
            if content is None:
                del files[path]
            else:
                files[path] = content

    def add_forbidden(self, repository: Repository, workspace: PurePath) -> Callable[[], None]:
        self.edit(repository, workspace, {"FORBIDDEN": ""})
        return lambda: self.edit(repository, workspace, {"FORBIDDEN": None})

    def discard(self, repository: Repository, workspace: PurePath) -> None:
        del _memory(repository).workspaces[str(workspace)]

    def commit_in(self, repository: Repository, workspace: PurePath, message: str) -> str:
        return _memory(repository).commit_in(str(workspace), message)

    def subject(self, repository: Repository, commit: str) -> str:
        return _memory(repository).commits[commit].message

    def branch(self, repository: Repository, name: str) -> str | None:
        return _memory(repository).branches.get(name)

    def commit_as_user(self, repository: Repository, edits: Edits) -> str:
        memory = _memory(repository)
        main = memory.branches["main"]
        files = {k: v for k, v in {**memory.files(main), **edits}.items() if v is not None}
        memory.branches["main"] = memory._commit(files, (main,), "mine")
        return memory.branches["main"]

    def change_uncommitted(self, repository: Repository, path: str) -> None:
        del path
        _memory(repository).dirty.add("main")

    def replace_branch(self, repository: Repository) -> str:
        memory = _memory(repository)
        memory.branches["main"] = memory._commit({"other": "o\n"}, (), "anew")
        return memory.branches["main"]

    def remove_branch(self, repository: Repository) -> None:
        del _memory(repository).branches["main"]


class TestGitRepository(WorkspaceContract):
    can_commit = True
    settings = WorkspaceSettings(kind="clone")

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.user = User(tmp_path)

    def commit(self, repository: Repository, workspace: PurePath) -> bool:
        del repository
        told = "git add -A && git -c user.name=p -c user.email=p@x commit -qm mine"
        return inside_walls(self.user, Path(workspace), told).returncode == 0

    async def make(self, base: Files) -> Repository:
        self._base = self.user.commit(base)
        return await self._open()

    async def reopen(self, repository: Repository) -> Repository:
        del repository
        return await self._open()

    async def _open(self) -> Repository:
        return (await Run(self.user, settings=self.settings).open()).repository

    def base(self, repository: Repository) -> str:
        del repository
        return self._base

    def files(self, repository: Repository, commit: str) -> Files:
        del repository
        return self.user.files(commit)

    def parents(self, repository: Repository, commit: str) -> tuple[str, ...]:
        del repository
        return tuple(self.user.git("rev-list", "--parents", "-1", commit).split()[1:])

    def look(self, repository: Repository, workspace: PurePath) -> Files | None:
        del repository
        return held(Path(workspace)) if Path(workspace).exists() else None

    def edit(self, repository: Repository, workspace: PurePath, edits: Edits) -> None:
        del repository
        write(Path(workspace), edits)

    def add_forbidden(self, repository: Repository, workspace: PurePath) -> Callable[[], None]:
        del repository
        nested = Path(workspace) / "nested"
        self.user.git("init", "-q", str(nested))
        return lambda: shutil.rmtree(nested)

    def discard(self, repository: Repository, workspace: PurePath) -> None:
        del repository
        shutil.rmtree(workspace)

    def commit_in(self, repository: Repository, workspace: PurePath, message: str) -> str:
        del repository
        other = ("-c", "user.name=Bea Guest", "-c", "user.email=bea@example.org")
        self.user.git("add", "--all", cwd=Path(workspace))
        self.user.git(*other, "commit", "-q", "-m", message, cwd=Path(workspace))
        return self.user.git("rev-parse", "HEAD", cwd=Path(workspace))

    def subject(self, repository: Repository, commit: str) -> str:
        del repository
        return self.user.git("show", "-s", "--format=%s", commit)

    def branch(self, repository: Repository, name: str) -> str | None:
        del repository
        return self.user.refs(f"refs/heads/{name}").get(f"refs/heads/{name}")

    def commit_as_user(self, repository: Repository, edits: Edits) -> str:
        del repository
        return self.user.commit(edits)

    def change_uncommitted(self, repository: Repository, path: str) -> None:
        del repository
        self.user.write({path: "mine, and not committed\n"})

    def replace_branch(self, repository: Repository) -> str:
        del repository
        commit = self.user.git("commit-tree", "-m", "anew", "HEAD^{tree}")
        self.user.git("update-ref", "refs/heads/main", commit)
        return commit

    def remove_branch(self, repository: Repository) -> None:
        del repository
        self.user.git("switch", "-q", "--detach")
        self.user.git("branch", "-q", "-D", "main")


class TestLinkedWorktrees(TestGitRepository):  # G7
    can_commit = False
    settings = WorkspaceSettings(kind="worktree")


def _memory(repository: Repository) -> MemoryRepository:
    assert isinstance(repository, MemoryRepository)
    return repository
