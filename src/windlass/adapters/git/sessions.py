"""Git processes that stay and answer one request after another: starting one is half a merge.

Law: between requests such a process holds no lock and no opinion. It ends when its input does, so
it cannot outlive whoever started it, however that one ends. One that failed is never used again. A
no that git has given a reason for is a no; one that was ended without a word, by whomever, has
answered nothing, and a fresh one is asked. So every request must be one that may be made twice.
"""

import contextlib
import os
import select
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import IO, TypeVar

from windlass.adapters.git.git import Git, stuck, whole
from windlass.errors import GitFailed

_CHUNK = 65536
_PATIENCE = 5.0
"""Seconds that a process whose input has ended may take to go."""
T = TypeVar("T")


class Session:
    """One process."""

    def __init__(self, git: Git, args: tuple[str, ...]) -> None:
        self._args = args
        self._timeout = git.timeout
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        try:
            self._process = git.stay(*args, stderr=self._said)
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


class Staying:
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
        return await whole(partial(self._ask, request))

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
