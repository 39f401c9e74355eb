"""For levels without walls: compare refs and trees before and after; a difference stops the run.

This cannot prevent a change, only detect it; so it detects every change: a commit of the user's own
while an agent works stops the run too, because its author is not known.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path, PurePath

from windlass.adapters.git.git import Git
from windlass.adapters.git.store import Origin
from windlass.core.events.model import CheckResult
from windlass.errors import GitFailed, Trespass
from windlass.ports import Agent, Brief, Checks, Report, Watch

_WATCHED = (
    "HEAD",
    "config",
    "config.worktree",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "objects/info/alternates",
)
"""Files of the git directory that change what git does, apart from hooks."""


class Guard:
    """Fingerprints the user's repository, without what Windlass itself writes there."""

    def __init__(self, origin: Origin, own: tuple[str, ...]) -> None:
        self._origin = origin
        self._own = own
        """Paths below the root that Windlass writes: its folder and its projections."""
        self._git = Git(origin.git_dir, ceiling=origin.root.parent)

    async def fingerprint(self) -> dict[str, str]:
        """What must not change while an agent works."""
        listed = await self._git("for-each-ref", "--format=%(objectname) %(refname)")
        refs = [
            line
            for line in listed.stdout.splitlines()
            if " refs/windlass/" not in line and " refs/heads/windlass/" not in line
        ]
        status = await self._git(
            "status",
            "--porcelain=v1",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignore-submodules",
            work_tree=self._origin.root,
        )
        dirty = [entry for entry in status.fields if not self._is_own(entry[3:])]
        hooks = sorted((self._origin.git_dir / "hooks").glob("*"))
        return {
            "refs": "\n".join(refs),
            "files": "\n".join(f"{entry} {self._stamp(entry[3:])}" for entry in dirty),
            "hooks": "\n".join(f"{hook.name} {_digest(hook)}" for hook in hooks),
            **{name: _digest(self._origin.git_dir / name) for name in _WATCHED},
        }

    def _is_own(self, path: str) -> bool:
        """Whether Windlass writes there itself; a projection starts as a temporary file."""
        temporary = PurePath(path).match(".windlass-*.tmp")
        return path.startswith(self._own) or temporary

    def _stamp(self, path: str) -> str:
        """Tells two versions of a changed file apart without reading it."""
        try:
            found = os.lstat(self._origin.root / path)
        except OSError:
            return "gone"
        return f"{found.st_size} {found.st_mtime_ns}"

    async def compare(self, before: dict[str, str], who: str) -> None:
        """Raise if anything has changed."""
        try:
            after = await self.fingerprint()
        except GitFailed as failure:
            after = dict.fromkeys(before, str(failure))
        changed = [name for name in before if before[name] != after[name]]
        if changed:
            raise Trespass(
                f"{', '.join(changed)} of {self._origin.root.name} changed while {who} ran",
                hint="look at what changed; if it was you, resume; a sandbox (bubblewrap) would "
                "have kept an agent out",
            )


class GuardedAgent:
    """Compares the repository before and after an agent."""

    def __init__(self, agent: Agent, guard: Guard) -> None:
        self._agent = agent
        self._guard = guard

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        before = await self._guard.fingerprint()
        report = await self._agent.work(brief, workspace, watch)
        await self._guard.compare(before, f"the {brief.role.capitalize()} of {brief.task}")
        return report


class GuardedChecks:
    """Compares the repository before and after checks."""

    def __init__(self, checks: Checks, guard: Guard) -> None:
        self._checks = checks
        self._guard = guard

    async def run(self, commit: str, commands: Sequence[str], log: str) -> tuple[CheckResult, ...]:
        before = await self._guard.fingerprint()
        results = await self._checks.run(commit, commands, log)
        await self._guard.compare(before, f"the checks of {log}")
        return results

    async def parse(self, commit: str, paths: Sequence[str]) -> tuple[str, ...]:
        """Parse without comparing: no project code runs."""
        return await self._checks.parse(commit, paths)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "absent"
