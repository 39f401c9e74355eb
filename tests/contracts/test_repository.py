"""Both repositories keep the promises of the port."""

import shutil
from collections.abc import Callable
from pathlib import Path, PurePath

import pytest

from repositories import Run, User, held, write
from windlass.ports import Repository
from windlass.testing.conformance.repository import Edits, Files, RepositoryContract
from windlass.testing.memory import MemoryRepository


class TestMemoryRepository(RepositoryContract):
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

    def spoil(self, repository: Repository, workspace: PurePath) -> Callable[[], None]:
        self.edit(repository, workspace, {"FORBIDDEN": ""})
        return lambda: self.edit(repository, workspace, {"FORBIDDEN": None})

    def discard(self, repository: Repository, workspace: PurePath) -> None:
        del _memory(repository).workspaces[str(workspace)]


class TestGitRepository(RepositoryContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.user = User(tmp_path)

    async def make(self, base: Files) -> Repository:
        self.user.commit(base)
        return await self._open()

    async def reopen(self, repository: Repository) -> Repository:
        del repository
        return await self._open()

    async def _open(self) -> Repository:
        return (await Run(self.user).open()).repository

    def base(self, repository: Repository) -> str:
        del repository
        return self.user.git("rev-parse", "main")

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

    def spoil(self, repository: Repository, workspace: PurePath) -> Callable[[], None]:
        del repository
        nested = Path(workspace) / "nested"
        self.user.git("init", "-q", str(nested))
        return lambda: shutil.rmtree(nested)

    def discard(self, repository: Repository, workspace: PurePath) -> None:
        del repository
        shutil.rmtree(workspace)


def _memory(repository: Repository) -> MemoryRepository:
    assert isinstance(repository, MemoryRepository)
    return repository
