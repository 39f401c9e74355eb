"""The one place that runs git: every call is hardened, durable and ignores configuration.

A tree can be hostile: git runs what its configuration, hooks, filters and drivers name. So no call
reads the user's or the system's configuration, hooks are off, and a call that looks at a working
tree does so from Windlass's own git directory, which knows no filter or driver. Objects go into the
user's repository, where pins keep them; `core.fsync=committed` makes them survive a power loss,
which git's default does not.

Some git processes stay alive and answer one request after another, because starting one costs half
a merge. Between requests such a process holds no lock and no state. It ends when its input ends, so
it never outlives Windlass. A process that failed is not used again. If git gave a reason, the
request failed; if git ended without a message, a fresh process is asked. So every request must be
safe to repeat.
"""

import contextlib
import os
import select
import signal
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
"""Seconds after which a git call counts as stuck: a tree can make git wait."""

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
"""Variables that point git at another repository than the one around a folder."""

_HARMLESS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""The user's own git must not run these when Windlass calls it."""

_LASTING = (
    *("-c", "core.fsync=committed", "-c", "core.fsyncMethod=batch", "-c", "core.quotePath=false"),
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "submodule.recurse=false"),
)
"""For the user's git when it writes: durable, and no maintenance in the background."""

_UNASKED = {"GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true"}
"""Git must not wait for an answer from a person."""


class Output(Struct, frozen=True, kw_only=True):
    code: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """The output without its last newline."""
        return self.stdout.rstrip("\n")

    @property
    def fields(self) -> list[str]:
        """The items of a command that ends each with NUL."""
        return [field for field in self.stdout.split("\0") if field]


class Git:
    """Git with one git directory, and nothing of the user's environment but PATH."""

    def __init__(
        self,
        git_dir: Path,
        *,
        ceiling: Path,
        environment: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
        own_session: bool = False,
    ) -> None:
        """With `own_session`, no process of a call can use the terminal or outlive the call."""
        self.git_dir = git_dir
        self.timeout = timeout
        self._own_session = own_session
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
        """Run `git ARGS` in a thread, as `run` does."""
        call = partial(
            self.run,
            *args,
            stdin=stdin,
            ok=ok,
            work_tree=work_tree,
            index=index,
            excludes=excludes,
        )
        return await run_uncancelled(call)

    def run(
        self,
        *args: str,
        stdin: str | None = None,
        ok: Sequence[int] = (0,),
        work_tree: Path | None = None,
        index: Path | None = None,
        excludes: Path | None = None,
    ) -> Output:
        """Run `git ARGS`; an exit code that is not in `ok` raises GitFailed.

        `excludes` is a file with more patterns of by-products, for this work tree alone.
        """
        environment = dict(self._environment)
        if work_tree is not None:
            environment["GIT_WORK_TREE"] = str(work_tree)
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        more = ("-c", f"core.excludesFile={excludes}") if excludes else ()
        return _run(
            args,
            _hardened(*more, *args),
            stdin=stdin,
            ok=ok,
            timeout=self.timeout,
            env=environment,
            cwd=work_tree or self.git_dir,
            process_group=None if self._own_session else 0,
            start_new_session=self._own_session,
        )

    def start(self, *args: str, stderr: IO[bytes]) -> "subprocess.Popen[bytes]":
        """Start `git ARGS` as a process that answers requests until its input ends."""
        return subprocess.Popen(
            _hardened(*args),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
            env=self._environment,
            cwd=self.git_dir,
            # A Ctrl-C at the terminal is for Windlass, which ends its own work in order.
            process_group=0,
        )


async def run_uncancelled(work: Callable[[], T]) -> T:
    """Run a git call in a thread, not cancellable: a cancelled git would leave its locks behind.

    A thread that waits costs a third of what the event loop takes to watch a process.
    """
    with anyio.CancelScope(shield=True):
        return await anyio.to_thread.run_sync(work)
    raise AssertionError("this scope is never cancelled")


def ask(
    *args: str,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    ok: Sequence[int] = (0,),
    stdin: str = "",
) -> Output:
    """Run a read-only command of the user's own git, with their configuration.

    Raises FileNotFoundError where git is not installed.
    """
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
    """Run the user's own git with their configuration, for a command of theirs.

    It never prompts, runs no hook, leaves no process behind, and is never cut short, not even by a
    signal to Windlass: that would leave half of its work in the user's files. `within` sets another
    git directory or index than the folder's. Git keeps the files `held` open until it ends, also if
    Windlass dies first.
    """
    call = partial(
        _run,
        args,
        ["git", *_HARMLESS, *_LASTING, *args],
        stdin=stdin or None,
        ok=ok,
        cwd=cwd,
        env={**_user_environment(environment), **_UNASKED, **(within or {})},
        pass_fds=held,
        process_group=0,
    )
    return await run_uncancelled(call)


def run_remote_git(
    *args: str,
    cwd: Path,
    environment: Mapping[str, str],
    attended: bool,
    ok: Sequence[int] = (0,),
    timeout: float = TIMEOUT,
    held: Sequence[int] = (),
) -> Output:
    """Run the user's own git against a remote, with their login and their pre-push hook.

    If no person attends, git has no terminal to prompt at, and fails instead of waiting.
    """
    asks = {} if attended else {"GIT_TERMINAL_PROMPT": "0"}
    return _run(
        args,
        # What git notes of the remote afterwards must survive a power loss, too.
        ["git", "-c", "core.fsmonitor=false", "-c", "core.fsync=committed,reference", *args],
        ok=ok,
        timeout=timeout,
        cwd=cwd,
        env={**_user_environment(environment), **asks},
        pass_fds=held,
        # Git may prompt for a login at the terminal, which only its own process group may read.
        start_new_session=not attended,
    )


def _user_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Without the variables of a hook that called Windlass: the folder decides the repository."""
    theirs = {name: value for name, value in environment.items() if name not in _ELSEWHERE}
    return {**theirs, "PATH": absolute(theirs.get("PATH", os.defpath)), "LC_ALL": "C"}


def absolute(path: str) -> str:
    """PATH without entries such as `.` or `node_modules/.bin`.

    They are relative to the folder git works in, where an agent may have put a `git`.
    """
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.startswith("/"))


def _hardened(*args: str) -> list[str]:
    return ["git", *(part for item in _CONFIG for part in ("-c", item)), *args]


def _run(
    args: tuple[str, ...],
    command: list[str],
    *,
    ok: Sequence[int],
    cwd: Path,
    env: Mapping[str, str],
    stdin: str | None = None,
    timeout: float | None = None,
    pass_fds: Sequence[int] = (),
    process_group: int | None = None,
    start_new_session: bool = False,
) -> Output:
    given = None if stdin is None else stdin.encode(errors="surrogateescape")
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=env,
            pass_fds=pass_fds,
            process_group=process_group,
            start_new_session=start_new_session,
        )
    except OSError as error:  # git is not there, or the folder is gone
        raise GitFailed(args, -1, str(error)) from error
    with process:
        try:
            stdout, stderr = process.communicate(given, timeout=timeout)
        except subprocess.TimeoutExpired:
            _kill(process, whole=start_new_session)
            raise _stuck(args, timeout or 0) from None
        except BaseException:
            _kill(process, whole=start_new_session)
            raise
    done = subprocess.CompletedProcess(command, process.returncode, stdout, stderr)
    return _answer(args, done, ok)


def _kill(process: "subprocess.Popen[bytes]", *, whole: bool) -> None:
    """End git; `whole`: with every process of its session, such as one that asks a person."""
    if whole:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _stuck(args: tuple[str, ...], timeout: float) -> GitFailed:
    return GitFailed(args, -1, f"not done after {timeout:g} s, and stopped")


def _answer(
    args: tuple[str, ...], done: subprocess.CompletedProcess[bytes], ok: Sequence[int]
) -> Output:
    # Names in a tree need not be UTF-8; surrogates keep their bytes.
    stdout = done.stdout.decode(errors="surrogateescape")
    stderr = done.stderr.decode(errors="replace")
    if done.returncode not in ok:
        raise GitFailed(args, done.returncode, stderr)
    return Output(code=done.returncode, stdout=stdout, stderr=stderr)


_CHUNK = 65536
_PATIENCE = 5.0
"""Seconds that a process may take to exit after its input ended."""


class Session:
    """One git process that answers requests."""

    def __init__(self, git: Git, args: tuple[str, ...]) -> None:
        self._args = args
        self._timeout = git.timeout
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        try:
            self._process = git.start(*args, stderr=self._stderr)
        except OSError as error:
            self._stderr.close()
            raise GitFailed(args, -1, str(error)) from error
        self._input, self._output = _pipes(self._process)
        self._unread = bytearray()
        self._answers = select.poll()
        self._answers.register(self._output, select.POLLIN)
        # Also when no caller closes it.
        self.end = weakref.finalize(self, _end, self._process, self._stderr)

    def send(self, request: bytes) -> None:
        """Send a request, no longer than git is sure to read before it answers."""
        self._stderr.seek(0)  # earlier messages did not make it fail
        self._stderr.truncate()
        try:
            while request:
                request = request[os.write(self._input.fileno(), request) :]
        except OSError:
            raise self._failure() from None

    def line(self) -> str:
        """The next line of the answer, without its newline."""
        while (end := self._unread.find(b"\n")) < 0:
            self._read()
        text = self._unread[:end].decode(errors="surrogateescape")
        del self._unread[: end + 1]
        return text

    def exactly(self, size: int) -> bytes:
        """The next `size` bytes of the answer."""
        while len(self._unread) < size:
            self._read()
        taken = bytes(self._unread[:size])
        del self._unread[:size]
        return taken

    def _read(self) -> None:
        deadline = time.monotonic() + self._timeout
        while not self._answers.poll(max(0.0, deadline - time.monotonic()) * 1000):
            if time.monotonic() >= deadline:
                self._process.kill()
                self.end()
                raise _stuck(self._args, self._timeout)
        read = os.read(self._output.fileno(), _CHUNK)
        if not read:
            raise self._failure()
        self._unread += read

    def _failure(self) -> GitFailed:
        with contextlib.suppress(OSError):
            self._input.close()
        code = _wait(self._process)
        self._stderr.seek(0)
        message = self._stderr.read().decode(errors="replace")
        self.end()
        return GitFailed(self._args, code, message)


class PersistentGit:
    """A git process that is started when it is needed, for one request at a time."""

    def __init__(self, git: Git, *args: str, version: Callable[[], object] = lambda: None) -> None:
        """`version` names the state that the process reads at its start; a new one restarts it."""
        self._git = git
        self._args = args
        self._version = version
        self._started_at: object = None
        self._session: Session | None = None
        self._using = threading.Lock()

    async def ask(self, request: Callable[[Session], T]) -> T:
        """Run a request, not cancellable: half of one would leave half an answer."""
        return await run_uncancelled(partial(self._ask, request))

    def close(self) -> None:
        """End the process; the next request starts another."""
        with self._using:
            self._drop()

    def _ask(self, request: Callable[[Session], T]) -> T:
        with self._using:
            version = self._version()
            if version != self._started_at:
                self._drop()
            self._started_at = version
            reused = self._session is not None
            try:
                return self._answer(request)
            except GitFailed as failure:
                if not reused or failure.stderr.strip():
                    raise
            return self._answer(request)

    def _answer(self, request: Callable[[Session], T]) -> T:
        if self._session is None:
            self._session = Session(self._git, self._args)
        try:
            return request(self._session)
        except BaseException:
            self._drop()  # its next answer could be the rest of this one
            raise

    def _drop(self) -> None:
        gone, self._session = self._session, None
        if gone is not None:
            gone.end()


def _pipes(process: "subprocess.Popen[bytes]") -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:
        raise AssertionError("the process was started without pipes")
    return process.stdin, process.stdout


def _end(process: "subprocess.Popen[bytes]", stderr: IO[bytes]) -> None:
    for pipe in _pipes(process):
        with contextlib.suppress(OSError):
            pipe.close()
    _wait(process)
    stderr.close()


def _wait(process: "subprocess.Popen[bytes]") -> int:
    try:
        return process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
