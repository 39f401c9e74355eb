"""The one place that runs git: every call is hardened, durable and ignores configuration.

A tree can be hostile: git runs what its configuration, hooks, filters and drivers name. So no call
reads the user's or the system's configuration, hooks are off, and a call that looks at a working
tree does so from Windlass's own git directory, which knows no filter or driver. Objects go into the
user's repository, where pins keep them; `core.fsync=committed` makes them survive a power loss,
which plain git does not.

Two git processes stay and answer one request after another, because starting one costs half a
merge. Between requests such a process holds no lock and no state. It ends when its input ends, so
it never outlives Windlass. A process that failed is not used again. If git gave a reason, the
request failed; if git ended without a word, a fresh process is asked. So every request must be safe
to repeat.
"""

import contextlib
import os
import select
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

import anyio
import anyio.to_thread
from msgspec import Struct

from windlass.errors import GitFailed

T = TypeVar("T")

SUBMODULE = "160000"
"""The mode of a submodule in a tree."""

MINIMUM = (2, 38)
"""The first git whose merge-tree writes trees."""

_CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.fsync=committed",
    "core.fsyncMethod=batch",
    "core.quotePath=false",
    "core.protectHFS=true",  # a commit is checked out on other systems too
    "core.protectNTFS=true",
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
        "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX",
    }
)  # fmt: skip
"""Variables that lead git to another repository than the one around a folder."""


_HARMLESS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""What even the user's own git must not run when Windlass calls it."""

_LASTING = tuple(
    part
    for item in (
        "core.fsync=committed",
        "core.fsyncMethod=batch",
        "core.quotePath=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "submodule.recurse=false",
    )
    for part in ("-c", item)
)
"""What holds when it writes: a power loss takes nothing back, and nothing goes on behind it."""

_UNASKED = {"GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true"}
"""Nobody sits there to be asked."""


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
        self.timeout = timeout
        self._environment = {
            "PATH": absolute(os.environ.get("PATH", os.defpath)),
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
        excludes: Path | None = None,
    ) -> Output:
        """Run `git ARGS` and return its answer; an exit code that is not `ok` raises.

        `excludes` holds patterns of by-products beside those that hold for every work tree.
        """
        environment = dict(self._environment)
        if work_tree is not None:
            environment["GIT_WORK_TREE"] = str(work_tree)
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        run = partial(
            subprocess.run,
            argv(*(("-c", f"core.excludesFile={excludes}") if excludes else ()), *args),
            stdin=subprocess.DEVNULL if stdin is None else None,
            input=None if stdin is None else stdin.encode(errors="surrogateescape"),
            capture_output=True,
            check=False,
            timeout=self.timeout,
            env=environment,
            cwd=work_tree or self.git_dir,
            process_group=0,
        )
        try:
            done = await to_its_end(run)
        except OSError as error:  # no git, or no such folder any more
            raise GitFailed(args, -1, str(error)) from error
        except subprocess.TimeoutExpired:
            raise stuck(args, self.timeout) from None
        return _answer(args, done, ok)

    def start(self, *args: str, stderr: IO[bytes]) -> "subprocess.Popen[bytes]":
        """Start `git ARGS`, to be fed and asked until its input ends."""
        return subprocess.Popen(
            argv(*args),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
            env=self._environment,
            cwd=self.git_dir,
            # A Ctrl-C at the terminal is for Windlass, which ends its own work in order.
            process_group=0,
        )


async def to_its_end(work: Callable[[], T]) -> T:
    """Have a thread do something with git, to its end: cancelled, git would leave its locks behind.

    A thread that waits costs a third of what the event loop takes to watch a process.
    """
    with anyio.CancelScope(shield=True):
        return await anyio.to_thread.run_sync(work)
    raise AssertionError("nobody cancels a scope that nobody knows")


def ask(
    *args: str,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    ok: Sequence[int] = (0,),
    stdin: str = "",
) -> Output:
    """Ask git one question before any run: with the user's own configuration, changing nothing."""
    done = subprocess.run(
        ["git", *_HARMLESS, *args],
        cwd=cwd,
        env={**_user_environment(environment or os.environ), "GIT_OPTIONAL_LOCKS": "0"},
        capture_output=True,
        check=False,
        input=stdin.encode(errors="surrogateescape"),
    )
    return _answer(args, done, ok)


async def run_user_git(
    *args: str,
    cwd: Path,
    environment: Mapping[str, str],
    within: Mapping[str, str] | None = None,
    stdin: str = "",
    held: Sequence[int] = (),
    ok: Sequence[int] = (0,),
) -> Output:
    """Let the user's own git do something at their word, with their configuration.

    It asks nobody anything, runs no hook, leaves no process behind, and is not cut short: not by
    a signal to Windlass either, for half of it would be left in the user's files. `within` names
    another git directory or index than those of the folder. Git keeps the files `held` open for as
    long as it lives, also when Windlass dies first.
    """
    run = partial(
        subprocess.run,
        ["git", *_HARMLESS, *_LASTING, *args],
        stdin=None if stdin else subprocess.DEVNULL,
        input=stdin.encode(errors="surrogateescape") if stdin else None,
        capture_output=True,
        check=False,
        cwd=cwd,
        env={**_user_environment(environment), **_UNASKED, **(within or {})},
        pass_fds=held,
        process_group=0,
    )
    try:
        return _answer(args, await to_its_end(run), ok)
    except OSError as error:  # no git, or no such folder any more
        raise GitFailed(args, -1, str(error)) from error


def run_remote_git(
    *args: str,
    cwd: Path,
    environment: Mapping[str, str],
    attended: bool,
    ok: Sequence[int] = (0,),
    timeout: float = TIMEOUT,
    held: Sequence[int] = (),
) -> Output:
    """Let the user's own git speak with a remote at their word: their login, their pre-push hook.

    A hook of theirs that keeps something from leaving is not passed by. Where nobody sits there it
    has no terminal to ask anything at, and ends instead of waiting.
    """
    asks = {} if attended else {"GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            # What is known of the remote afterwards is to outlast a power loss, too.
            ["git", "-c", "core.fsmonitor=false", "-c", "core.fsync=committed,reference", *args],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            cwd=cwd,
            env={**_user_environment(environment), **asks},
            timeout=timeout,
            pass_fds=held,
            # A login may be asked for at the terminal, which only its own group may read.
            start_new_session=not attended,
        )
    except OSError as error:
        raise GitFailed(args, -1, str(error)) from error
    except subprocess.TimeoutExpired:
        raise stuck(args, timeout) from None
    return _answer(args, done, ok)


def _user_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The folder decides which repository it is, not what a hook that called us was told."""
    theirs = {name: value for name, value in environment.items() if name not in _ELSEWHERE}
    return {**theirs, "PATH": absolute(theirs.get("PATH", os.defpath)), "LC_ALL": "C"}


def stuck(args: tuple[str, ...], timeout: float) -> GitFailed:
    """A git that did not end in time."""
    return GitFailed(args, -1, f"not done after {timeout:g} s, and ended")


def absolute(path: str) -> str:
    """PATH without entries such as `.` or `node_modules/.bin`.

    They would be looked up in the folder git works in, where an agent may have put a `git`.
    """
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.startswith("/"))


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


_CHUNK = 65536
_PATIENCE = 5.0
"""Seconds that a process whose input has ended may take to go."""


class Session:
    """One process."""

    def __init__(self, git: Git, args: tuple[str, ...]) -> None:
        self._args = args
        self._timeout = git.timeout
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        try:
            self._process = git.start(*args, stderr=self._said)
        except OSError as error:
            self._said.close()
            raise GitFailed(args, -1, str(error)) from error
        self._input, self._output = _pipes(self._process)
        self._held = bytearray()
        self._answers = select.poll()
        self._answers.register(self._output, select.POLLIN)
        # Also when nobody thinks of closing it.
        self.end = weakref.finalize(self, _end, self._process, self._said)

    def tell(self, request: bytes) -> None:
        """Feed it. Not more than it is sure to read before it answers."""
        self._said.seek(0)  # it writes on from here: what it said before was no reason to fail
        self._said.truncate()
        try:
            while request:
                request = request[os.write(self._input.fileno(), request) :]
        except OSError:
            raise self._failure() from None

    def line(self) -> str:
        """The next line it answers, without its end."""
        while (end := self._held.find(b"\n")) < 0:
            self._more()
        text = self._held[:end].decode(errors="surrogateescape")
        del self._held[: end + 1]
        return text

    def exactly(self, size: int) -> bytes:
        """The next so many bytes of its answer."""
        while len(self._held) < size:
            self._more()
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    def _more(self) -> None:
        deadline = time.monotonic() + self._timeout
        while not self._answers.poll(max(0.0, deadline - time.monotonic()) * 1000):
            if time.monotonic() >= deadline:
                self._process.kill()
                self.end()
                raise stuck(self._args, self._timeout)
        read = os.read(self._output.fileno(), _CHUNK)
        if not read:
            raise self._failure()
        self._held += read

    def _failure(self) -> GitFailed:
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            code = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._said.seek(0)
        said = self._said.read().decode(errors="replace")
        self.end()
        return GitFailed(self._args, code, said)


class PersistentGit:
    """A process that is there when it is needed, for one request at a time."""

    def __init__(self, git: Git, *args: str, sight: Callable[[], object] = lambda: None) -> None:
        self._git = git
        self._args = args
        self._sight = sight
        """What the process saw when it was started; it is started anew once that is another."""
        self._seen: object = None
        self._session: Session | None = None
        self._using = threading.Lock()

    async def ask(self, request: Callable[[Session], T]) -> T:
        """Have a request answered, whole: half of one would leave half an answer."""
        return await to_its_end(partial(self._ask, request))

    def close(self) -> None:
        """End the process; another request starts another."""
        with self._using:
            self._drop()

    def _ask(self, request: Callable[[Session], T]) -> T:
        with self._using:
            seen = self._sight()
            if seen != self._seen:
                self._drop()
            self._seen = seen
            stayed = self._session is not None
            try:
                return self._answer(request)
            except GitFailed as failure:
                if not stayed or failure.stderr.strip():
                    raise
            return self._answer(request)

    def _answer(self, request: Callable[[Session], T]) -> T:
        if self._session is None:
            self._session = Session(self._git, self._args)
        try:
            return request(self._session)
        except BaseException:
            self._drop()  # nobody knows what it would answer next
            raise

    def _drop(self) -> None:
        gone, self._session = self._session, None
        if gone is not None:
            gone.end()


def _pipes(process: "subprocess.Popen[bytes]") -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:
        message = "a process that stays has pipes"
        raise AssertionError(message)
    return process.stdin, process.stdout


def _end(process: "subprocess.Popen[bytes]", said: IO[bytes]) -> None:
    for pipe in _pipes(process):
        with contextlib.suppress(OSError):
            pipe.close()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    said.close()
