"""A workspace that turns on its keeper: nothing in it is ever executed, and nothing of it escapes.

Every way in leads to a canary that would be written outside. The user's own configuration knows
the same drivers, for an attribute in a tree can call upon those as well.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import anyio
import pytest

from repositories import Run, User, author, write
from windlass.adapters.git.git import Git
from windlass.core.settings import WorkspaceSettings
from windlass.errors import GitFailed
from windlass.ports import Conflict, Snapshot

pytestmark = pytest.mark.anyio

BASE = {"README": "hello\n", "src/a": "a\n", "data.bin": "one\n"}
HOOKS = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout",
    "post-commit", "post-index-change", "post-merge", "post-rewrite", "pre-applypatch",
    "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase",
    "prepare-commit-msg", "proc-receive", "push-to-checkout", "reference-transaction",
    "sendemail-validate", "update",
)  # fmt: skip
ATTRIBUTES = "* filter=evil diff=evil merge=evil\n*.bin binary\n"


class Trap:
    """A user whose configuration names drivers that would leave a canary."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.canaries = root / "canaries"
        self.canaries.mkdir()
        self.user = User(root)
        self.user.commit(BASE)
        self.user.config(*self.settings("global"))
        for setting in self.settings("repository"):
            name, _, value = setting.partition("=")
            self.user.git("config", name, value)
        plant_hooks(self.user.repo / ".git/hooks", self.canary("user-hook"))
        plant_hooks(self.user.home / "hooks", self.canary("global-hook"))
        self.user.config(f"core.hooksPath={self.user.home}/hooks")

    def canary(self, name: str) -> str:
        """A command that gives itself away."""
        script = self.root / f"evil-{name}"
        script.write_text(f"#!/bin/sh\ntouch '{self.canaries}/{name}'\ncat\n")
        script.chmod(0o755)
        return str(script)

    def settings(self, where: str) -> list[str]:
        """Everything in a configuration that git would run."""
        return [
            f"core.fsmonitor={self.canary(f'{where}-fsmonitor')}",
            f"core.sshCommand={self.canary(f'{where}-ssh')}",
            f"core.editor={self.canary(f'{where}-editor')}",
            f"core.pager={self.canary(f'{where}-pager')}",
            f"core.gitProxy={self.canary(f'{where}-proxy')}",
            f"core.alternateRefsCommand={self.canary(f'{where}-alternates')}",
            f"gpg.program={self.canary(f'{where}-gpg')}",
            "commit.gpgSign=true",
            f"credential.helper={self.canary(f'{where}-credential')}",
            f"diff.external={self.canary(f'{where}-diff')}",
            f"filter.evil.clean={self.canary(f'{where}-clean')}",
            f"filter.evil.smudge={self.canary(f'{where}-smudge')}",
            f"filter.evil.process={self.canary(f'{where}-process')}",
            "filter.evil.required=true",
            f"diff.evil.textconv={self.canary(f'{where}-textconv')}",
            f"diff.evil.command={self.canary(f'{where}-diff-evil')}",
            f"merge.evil.driver={self.canary(f'{where}-merge')}",
        ]

    @property
    def sprung(self) -> list[str]:
        """What was executed."""
        return sorted(path.name for path in self.canaries.iterdir())

    def forget(self) -> None:
        """Canaries that the test's own git woke are not meant."""
        for path in self.canaries.iterdir():
            path.unlink()

    def elsewhere(self) -> Path:
        """A repository of the attacker's, full of traps."""
        other = self.root / "attacker"
        subprocess.run(["git", "init", "-q", str(other)], check=True, env=self.user.environment)
        git = other / ".git"
        for setting in self.settings("local"):
            name, _, value = setting.partition("=")
            self.user.git("config", name, value, cwd=other)
        plant_hooks(git / "hooks", self.canary("local-hook"))
        (git / "info").mkdir(exist_ok=True)
        (git / "info/attributes").write_text(ATTRIBUTES)
        (git / "objects/info/alternates").write_text(f"{self.root}/stolen/objects\n")
        self.user.git("config", "core.worktree", str(self.user.repo), cwd=other)
        self.user.git("config", "core.hooksPath", str(git / "hooks"), cwd=other)
        self.user.git("config", "include.path", str(self.user.home / ".gitconfig"), cwd=other)
        return git


def plant_hooks(folder: Path, command: str) -> None:
    folder.mkdir(exist_ok=True)
    for hook in HOOKS:
        shutil.copy(command, folder / hook)


def swap_folder(dot_git: Path, other: Path) -> None:
    shutil.rmtree(dot_git)
    shutil.copytree(other, dot_git)


def swap_file(dot_git: Path, other: Path) -> None:
    shutil.rmtree(dot_git)
    dot_git.write_text(f"gitdir: {other}\n")


def swap_link(dot_git: Path, other: Path) -> None:
    shutil.rmtree(dot_git)
    dot_git.symlink_to(other)


def swap_pipe(dot_git: Path, _other: Path) -> None:
    shutil.rmtree(dot_git)
    os.mkfifo(dot_git)


def swap_nothing(dot_git: Path, _other: Path) -> None:
    shutil.rmtree(dot_git)


def add_to_it(dot_git: Path, other: Path) -> None:
    shutil.copy(other / "config", dot_git / "config")
    shutil.copytree(other / "hooks", dot_git / "hooks")
    shutil.copy(other / "info/attributes", dot_git / "info/attributes")
    (dot_git / "objects/info/alternates").write_text("/nonexistent\n")


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


@pytest.mark.parametrize(
    "swap", [add_to_it, swap_folder, swap_file, swap_link, swap_pipe, swap_nothing]
)
async def test_nothing_of_a_workspace_is_executed(  # K0 G7
    trap: Trap, swap: Callable[[Path, Path], None]
):
    user = trap.user
    attacker = trap.elsewhere()
    before = sorted(str(path) for path in attacker.rglob("*"))
    run = await Run(user).open()
    trap.forget()
    planted = {".gitattributes": ATTRIBUTES, "src/.gitattributes": ATTRIBUTES}

    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    write(workspace, {**planted, "README": "mine\n", "new.bin": "n\n", "src/b": "b\n"})
    swap(workspace / ".git", attacker)
    mine = await run.save("1.1")
    again = await run.repository.prepare("1.1", 2, mine.commit, None)
    assert (again / ".git").is_dir()
    assert not (again / ".git").is_symlink()

    theirs = await run.play("1.2", {**planted, "README": "theirs\n", "data.bin": "two\n"})
    tip, _ = await run.land("1.2", 1, theirs.commit, run.base)
    told = await run.repository.merge(author("1.1"), 2, mine.commit, tip)
    assert isinstance(told, Conflict)
    await run.repository.prepare("1.1", 3, mine.commit, tip)
    swap(workspace / ".git", attacker)
    write(workspace, {"README": "both\n"})
    settled = await run.save("1.1", n=3, parents=(mine.commit, tip))
    last, _ = await run.land("1.1", 3, settled.commit, tip)
    await run.repository.release("1.1")

    assert trap.sprung == []
    assert sorted(str(path) for path in attacker.rglob("*")) == before, "a link was followed"
    assert user.files(last) == {
        **BASE,
        **planted,
        "README": "both\n",
        "data.bin": "two\n",
        "new.bin": "n\n",
        "src/b": "b\n",
    }
    assert trap.sprung == []


@pytest.mark.parametrize("kind", ["clone", "worktree"])
@pytest.mark.parametrize("then", ["saved", "refused", "adopted", "set aside"])
async def test_a_workspace_that_nobody_works_in_is_safe_to_look_at(
    trap: Trap, kind: Literal["clone", "worktree"], then: str
):
    """A person goes there with a git of their own, whatever became of the task."""
    user, settings = trap.user, WorkspaceSettings(kind=kind)
    shutil.rmtree(user.repo / ".git/hooks")  # a linked worktree has the user's own
    for name in ("core.fsmonitor", "core.pager", "diff.external"):
        user.git("config", "--unset", name)
    run = await Run(user, settings=settings).open()
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    write(workspace, {"new": "n\n"})
    if then == "refused":
        os.mkfifo(workspace / ".gitmodules")
    if then == "adopted":  # by a process after one that was killed before it could tell
        await run.save("1.1")
        run = await Run(user, settings=settings).open()
    (workspace / ".git").unlink() if kind == "worktree" else shutil.rmtree(workspace / ".git")
    shutil.copytree(trap.elsewhere(), workspace / ".git")
    user.git("config", "--unset", "core.worktree", cwd=workspace)
    made = None
    if then == "set aside":  # after a crash that nobody went on from
        run = await Run(user, run="r2", settings=settings).open()
        await run.repository.prepare("1.1", 1, run.base, None)
        workspace = run.folders.kept / "1.1.r1"
    else:
        made = await run.repository.snapshot(author("1.1"), "snapshot", (run.base,))
    trap.forget()
    (workspace / ".gitmodules").unlink(missing_ok=True)
    environment = {**user.environment, "GIT_CONFIG_GLOBAL": os.devnull}
    for asked in ("status --porcelain", "log -p -1", "add --all", "stash", "checkout -q -b mine"):
        argv = ["git", "-c", "user.name=p", "-c", "user.email=p", *asked.split()]
        done = await anyio.run_process(argv, cwd=workspace, env=environment)
        if asked.startswith("status"):
            assert done.stdout == (b"" if isinstance(made, Snapshot) else b"?? new\n")
    assert trap.sprung == []


async def test_a_link_to_the_users_own_git_directory_is_only_unlinked(trap: Trap):
    run = await Run(trap.user).open()
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    swap_link(workspace / ".git", trap.user.repo / ".git")
    write(workspace, {"new": "n\n"})
    made = await run.save("1.1")
    await run.repository.prepare("1.1", 2, made.commit, None)
    assert trap.user.git("cat-file", "-t", made.commit) == "commit"
    swap_link(workspace / ".git", trap.user.repo / ".git")
    await run.repository.release("1.1")
    assert trap.user.git("cat-file", "-t", made.commit) == "commit"


async def test_an_index_of_the_agents_own_counts_for_nothing(trap: Trap):
    """Neither what it hides (assume-unchanged, skip-worktree) nor what it claims is believed."""
    user = trap.user
    run = await Run(user).open()
    workspace = await run.repository.prepare("1.1", 1, run.base, None)
    git = workspace / ".git"
    clean = {**user.environment, "GIT_CONFIG_GLOBAL": os.devnull}
    for flag, path in (("--assume-unchanged", "README"), ("--skip-worktree", "src/a")):
        await anyio.run_process(["git", "update-index", flag, path], cwd=workspace, env=clean)
    write(workspace, {"README": "changed\n", "src/a": "changed\n", "data.bin": None})
    (git / "info/exclude").write_text("*\n")
    write(workspace, {"new": "n\n"})
    made = await run.save("1.1")
    assert user.files(made.commit) == {"README": "changed\n", "src/a": "changed\n", "new": "n\n"}


async def test_a_git_that_would_wait_for_ever_is_ended(trap: Trap):
    folder = trap.root / "folder"
    folder.mkdir()
    os.mkfifo(folder / ".gitignore")
    git = Git(trap.user.repo / ".git", ceiling=trap.root, timeout=0.3)
    with pytest.raises(GitFailed, match=r"not done after 0\.3 s"):
        await git("ls-files", "--others", "--exclude-standard", work_tree=folder)


async def test_variables_of_whoever_started_windlass_lead_nowhere(
    trap: Trap, monkeypatch: pytest.MonkeyPatch
):
    run = await Run(trap.user).open()
    attacker = trap.elsewhere()
    trap.forget()
    for name, value in {
        "GIT_DIR": str(attacker),
        "GIT_WORK_TREE": str(trap.root),
        "GIT_INDEX_FILE": str(attacker / "index"),
        "GIT_OBJECT_DIRECTORY": str(trap.root / "objects"),
        "GIT_EXTERNAL_DIFF": trap.canary("external"),
        "GIT_SSH_COMMAND": trap.canary("ssh"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": trap.canary("count"),
        "GIT_TRACE": str(trap.canaries / "trace"),
        "GIT_EXEC_PATH": str(trap.root),
    }.items():
        monkeypatch.setenv(name, value)
    made = await run.play("1.1", {"new": "n\n"})
    await run.land("1.1", 1, made.commit, run.base)
    assert trap.sprung == []
