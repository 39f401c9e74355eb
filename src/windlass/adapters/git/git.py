"""The one place that runs git. Every call is hardened, durable and deaf to whoever configured it.

A tree can be hostile: git runs what its configuration, hooks, filters and drivers name. So no call
reads the user's or the system's configuration, hooks are off, and whatever looks at a working tree
does so from a git directory of Windlass's own, in which no filter or driver is known. Objects go
into the user's repository, where pins keep them; `core.fsync=committed` makes them survive a power
loss, which plain git does not.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
from msgspec import Struct

from windlass.errors import GitFailed

MINIMUM = (2, 38)
"""The first git whose merge-tree writes trees."""

_CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.fsync=committed",
    "core.fsyncMethod=batch",
    "core.quotePath=false",
    "core.untrackedCache=false",
    "core.logAllRefUpdates=false",
    "core.filesRefLockTimeout=5000",  # the user's own git may hold a ref for a moment
    "core.packedRefsTimeout=5000",
    "core.pager=cat",
    "core.editor=true",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "submodule.recurse=false",
)

TIMEOUT = 600
"""Seconds after which a git that does not end is taken for stuck: a tree can make it wait."""

_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}


_ELSEWHERE = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
    }
)
"""Variables that lead git to another repository than the one around a folder."""


class Output(Struct, frozen=True, kw_only=True):
    """What git answered."""

    code: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """The answer without its last newline."""
        return self.stdout.rstrip("\n")

    @property
    def fields(self) -> list[str]:
        """The answer of a command that ends its items with NUL."""
        return [field for field in self.stdout.split("\0") if field]


class Git:
    """Git with one git directory, one identity, and no surroundings."""

    def __init__(
        self,
        git_dir: Path,
        *,
        ceiling: Path,
        environment: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self.git_dir = git_dir
        self._timeout = timeout
        self._environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            **_ENVIRONMENT,
            "GIT_CEILING_DIRECTORIES": str(ceiling),
            "GIT_DIR": str(git_dir),
            **(environment or {}),
        }

    async def __call__(
        self,
        *args: str,
        stdin: str | None = None,
        ok: Sequence[int] = (0,),
        work_tree: Path | None = None,
        index: Path | None = None,
    ) -> Output:
        """Run `git ARGS` and return its answer; an exit code that is not `ok` raises."""
        environment = dict(self._environment)
        if work_tree is not None:
            environment["GIT_WORK_TREE"] = str(work_tree)
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        # Cancelled in the middle, git would leave its locks behind; every call here is short.
        with anyio.move_on_after(self._timeout, shield=True):
            try:
                done = await anyio.run_process(
                    argv(*args),
                    input=(stdin or "").encode(errors="surrogateescape"),
                    check=False,
                    env=environment,
                    cwd=work_tree or self.git_dir,
                )
            except OSError as error:  # no git, or no such folder any more
                raise GitFailed(args, -1, str(error)) from error
            return _answer(args, done, ok)
        raise GitFailed(args, -1, f"not done after {self._timeout:g} s, and ended")


def ask(
    *args: str,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    ok: Sequence[int] = (0,),
    stdin: str = "",
) -> Output:
    """Ask git one question before any run: with the user's own configuration, changing nothing."""
    harmless = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    # The folder decides which repository it is, not what a hook that called us was told.
    theirs = {k: v for k, v in (environment or os.environ).items() if k not in _ELSEWHERE}
    done = subprocess.run(
        ["git", *harmless, *args],
        cwd=cwd,
        env={**theirs, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        capture_output=True,
        check=False,
        input=stdin.encode(errors="surrogateescape"),
    )
    return _answer(args, done, ok)


def argv(*args: str) -> list[str]:
    """The hardened command line."""
    return ["git", *(part for item in _CONFIG for part in ("-c", item)), *args]


def _answer(
    args: tuple[str, ...], done: subprocess.CompletedProcess[bytes], ok: Sequence[int]
) -> Output:
    # Names in a tree need not be UTF-8; they come back as they were.
    stdout = done.stdout.decode(errors="surrogateescape")
    stderr = done.stderr.decode(errors="replace")
    if done.returncode not in ok:
        raise GitFailed(args, done.returncode, stderr)
    return Output(code=done.returncode, stdout=stdout, stderr=stderr)
