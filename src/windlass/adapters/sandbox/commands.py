"""Runs one command in a sandbox to its end, and leaves nothing of it running.

Law: however this call ends, by the command, by the clock, by cancellation, every process the
command started has ended before it returns. A command is never held up by what it prints, and
never judged here: an exit code is handed on as it is.

Processes are started from the event loop's own thread, for bubblewrap's --die-with-parent follows
the thread that started it, and a worker thread may end long before the run does.
"""

import os
import re
import subprocess
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

import anyio
import anyio.abc
import anyio.to_thread
from msgspec import Struct

from windlass.adapters.files import open_to_append
from windlass.adapters.processes.cgroups import Group, grouped, is_plain_program
from windlass.adapters.processes.leftovers import MARKER, end_leftovers, is_gone
from windlass.adapters.processes.limits import DiskWatch, Limits, bounded, excess_of_group, overrun
from windlass.adapters.sandbox.box import Box, Sandbox
from windlass.adapters.sandbox.landlock import QUIET, confined
from windlass.core.secrets import Redactor
from windlass.core.settings import Level

GRACE = 2.0
"""Seconds between asking a process to end and ending it."""

DRAIN = 2.0
"""Seconds to go on reading when all that could be found has ended."""

AT_ONCE = 1.0
"""Seconds in which the kernel has ended a whole box; else it is looked for, process by process."""

OUTPUT_LIMIT = 10_000_000
"""Bytes of output that a log keeps."""


ENDED = 137
"""The exit code of what had too much and came to a good end all the same: that is no success."""


class Finished(Struct, frozen=True, kw_only=True):
    """What came of a command."""

    exit_code: int | None
    """None when it was not started or was ended by the clock; 128 + n when signal n ended it."""
    timed_out: bool
    output: str
    """The end of what it printed, or why it could not be started."""
    seconds: float
    started: bool
    """False when the command itself never ran: a missing program, a sandbox that failed."""
    overran: str = ""
    """What it had too much of, where it was ended for that."""


async def run(
    sandbox: Sandbox,
    box: Box,
    command: Sequence[str],
    *,
    timeout: float,  # noqa: ASYNC109 (to be told from the caller's own cancellation)
    tail: int,
    output_limit: int = OUTPUT_LIMIT,
    log: Path | None = None,
    redactor: Redactor | None = None,
    heard: Callable[[bytes], None] | None = None,
) -> Finished:
    """Run the command in the box; give its exit code and the last `tail` characters it printed.

    All that it prints goes to `heard`, without secrets.
    """
    begin = time.monotonic()
    bounds = sandbox.writable(box)
    output = _Output(tail=tail, limit=output_limit, redactor=redactor or Redactor({}))
    output.heard = heard
    async with AsyncExitStack() as held:
        walled = sandbox.level == "bwrap"
        status = held.enter_context(_Status(wanted=walled, launched=bool(bounds)))
        try:
            if log is not None:
                output.log = held.enter_context(open_to_append(log))
            inner = confined(command, bounds, tell=status.told)
            entry = held.enter_context(sandbox.entered(box, inner))
            environment = entry.env | (QUIET if bounds else {})
            argv = status.reported(entry.argv)
            enters = walled or is_plain_program(argv[0], box.checkout, environment)
            group = held.enter_context(grouped(sandbox.limits)) if enters else None
            # A box with a door is held back at the door: it enters its group by itself.
            joins = group is not None and walled and entry.way_out is nullcontext
            latch = held.enter_context(_Latch(wanted=joins))
            argv = bounded(
                sandbox.level, sandbox.limits, latch.held(argv), None if joins else group
            )
            fds = (*status.passed, *latch.passed, *entry.inherited)
            process = await _start(argv, box.checkout, environment, fds)
        except OSError as error:
            return _not_started(str(error), begin)
        status.handed_over()
        latch.handed_over()
        mark = environment[MARKER]
        end = partial(_end, sandbox.level, process, mark)
        held.push_async_callback(_close, process, end)
        try:
            if joins and group is not None and (first := await status.awaited_process()):
                with suppress(ProcessLookupError):  # gone already; bubblewrap says why
                    await anyio.to_thread.run_sync(group.join, first)
                latch.lift()
        except OSError as error:
            return _not_started(f"its control group could not be joined: {error}", begin)
        try:
            await held.enter_async_context(entry.way_out())
        except OSError as error:
            return _not_started(f"its network could not be made: {error}", begin)
        # Bubblewrap cannot be asked to end: the first signal ends it, and all in it.
        grace = 0.0 if walled else GRACE
        rest = partial(_end_rest, status, partial(end, grace=0.0))
        look = partial(overrun, sandbox.level, sandbox.limits, process.pid, mark)
        disk = DiskWatch(box.checkout, sandbox.limits.disk)
        over = _Overrun(partial(look, group=group, disk=disk), end)
        left = partial(_end_group, group, disk, sandbox.limits, over)
        timed_out = await _attend(
            process,
            output,
            timeout,
            partial(left, partial(end, grace=grace)),
            partial(left, rest),
            over,
        )
        output.finish()
        code = process.returncode
        if over.said:
            output.keep(f"\n[windlass: ended: {over.said}]\n".encode())
        elif not timed_out and code is not None and code >= 0 and not status.ran():
            return _not_started(output.end(), begin)
    return Finished(
        exit_code=None if timed_out else ENDED if over.said and not code else _shell_code(code),
        timed_out=timed_out,
        output=output.end(),
        seconds=time.monotonic() - begin,
        started=True,
        overran=over.said,
    )


async def _close(process: anyio.abc.Process, end: Callable[[], int]) -> None:
    """Leave nothing of a command, whether or not it was let begin."""
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            await anyio.to_thread.run_sync(end)
        await process.aclose()


async def _start(
    argv: list[str], folder: Path, environment: dict[str, str], fds: tuple[int, ...]
) -> anyio.abc.Process:
    # Shielded: between fork and return there is nobody yet who could end the process.
    with anyio.CancelScope(shield=True):
        return await anyio.open_process(
            argv,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,
            pass_fds=fds,
        )
    raise AssertionError  # a shield swallows nothing; the type checker cannot know


def _end(level: Level, process: anyio.abc.Process, mark: str, *, grace: float = 0.0) -> int:
    """End the command and all it started."""
    if level == "bwrap":
        # With bubblewrap goes all that is in it, at once and however much it is.
        with suppress(ProcessLookupError):
            process.kill()
    return end_leftovers(mark, session=process.pid, grace=grace)


def _end_rest(status: "_Status", end: Callable[[], int]) -> int:
    """End what a command left that ended by itself; of a box all is gone with its first process."""
    first = status.first_process()
    return 0 if first is not None and is_gone(first, AT_ONCE) else end()


def _end_group(
    group: Group | None,
    disk: DiskWatch,
    limits: Limits,
    over: "_Overrun",
    end: Callable[[], int],
) -> int:
    """End what is left, and the group with it; look a last time at what it had and wrote."""
    if group is not None:
        over.said = over.said or excess_of_group(limits, group) or ""
    ended = end()
    over.said = over.said or disk.excess(last=True) or ""
    if group is not None:
        group.end()
    return ended


async def _attend(
    process: anyio.abc.Process,
    output: "_Output",
    timeout: float,  # noqa: ASYNC109 (as above)
    end: Callable[[], int],
    rest: Callable[[], int],
    over: "_Overrun",
) -> bool:
    """Read and wait, then end whatever is left; tell whether the clock ended it."""
    timed_out = True  # what is cancelled is ended as gently as what took too long
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_pour, process, output)
        tasks.start_soon(over.watch)
        try:
            with anyio.move_on_after(timeout):
                await process.wait()
                timed_out = False
        finally:
            # What a command that has ended left behind has had its time.
            over.stop()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(end if timed_out else rest)
                await process.wait()
        # Nobody should have the pipe open now; whoever slipped away must not keep the run.
        tasks.cancel_scope.deadline = anyio.current_time() + DRAIN
    return timed_out


async def _pour(process: anyio.abc.Process, output: "_Output") -> None:
    if process.stdout is not None:
        async for chunk in process.stdout:
            output.take(chunk)


def _not_started(why: str, begin: float) -> Finished:
    return Finished(
        exit_code=None,
        timed_out=False,
        output=why,
        seconds=time.monotonic() - begin,
        started=False,
    )


def _shell_code(code: int | None) -> int | None:
    # As bubblewrap and shells say it, so that all levels speak alike.
    return 128 - code if code is not None and code < 0 else code


class _Overrun:
    """Ends the box when it has too much of something, and remembers of what."""

    def __init__(self, excess: Callable[[], Awaitable[str]], end: Callable[..., int]) -> None:
        self.said = ""
        self._excess = excess
        self._end = end
        self._scope = anyio.CancelScope()

    async def watch(self) -> None:
        """Look until there is nothing left to look at."""
        with self._scope:
            self.said = await self._excess()
            await anyio.to_thread.run_sync(self._end)

    def stop(self) -> None:
        """Look no more: the command has ended, and who is left is ended anyway."""
        self._scope.cancel()


class _Output:
    """Keeps the end of what is printed, and the beginning in a log; of secrets, neither.

    They are taken out before anything is cut, for what is left of one could not be told any more.
    """

    def __init__(self, *, tail: int, limit: int, redactor: Redactor) -> None:
        self._clean = redactor.stream()
        self.log: BinaryIO | None = None
        self.heard: Callable[[bytes], None] | None = None
        self._characters = tail
        self._bytes = 4 * tail + 4  # a character has at most four, and the first may be cut
        self._kept = bytearray()
        self._left = limit
        self._limit = limit

    def take(self, chunk: bytes) -> None:
        """Take what was printed."""
        self.keep(self._clean.feed(chunk))

    def finish(self) -> None:
        """Take what was held back: nothing more will be printed."""
        self.keep(self._clean.end())

    def keep(self, chunk: bytes) -> None:
        """Keep what holds no secret; beyond the limit the log only says that there was more."""
        if self.heard is not None:
            self.heard(chunk)
        self._kept += chunk
        del self._kept[: -self._bytes]
        if self._left >= 0:
            self._write(chunk[: self._left])
            self._left -= len(chunk)
            if self._left < 0:
                self._write(f"\n[windlass: output beyond {self._limit} bytes dropped]\n".encode())

    def end(self) -> str:
        """Give the last characters."""
        text = self._kept.decode(errors="replace")
        return text[-self._characters :] if self._characters else ""

    def _write(self, data: bytes) -> None:
        if self.log is not None:
            try:
                self.log.write(data)
            except OSError:  # a full disk is no reason to fail the command
                self.log = None


class _Status:
    """Hears from bubblewrap whether the command itself ever ran.

    Its exit code cannot tell: a box that could not be built ends with 1, like a failing test.
    """

    def __init__(self, *, wanted: bool, launched: bool) -> None:
        self._wanted = wanted
        self._launched = launched
        self._ends: list[int] = []
        self._heard = b""
        self._over = False
        """Whether bubblewrap has closed its end: it will report no more."""

    def __enter__(self) -> "_Status":
        if self._wanted:
            self._ends = list(os.pipe())
            os.set_blocking(self._ends[0], False)  # whoever keeps the other end must not hold us
            if self._launched:
                # Bubblewrap keeps its end to itself. The launcher has another, and closes it before
                # the command begins, which could else report what it likes.
                self._ends.append(os.dup(self._ends[1]))
        return self

    def __exit__(self, *_: object) -> None:
        while self._ends:
            os.close(self._ends.pop())

    @property
    def passed(self) -> tuple[int, ...]:
        """The descriptors that the process inherits."""
        return tuple(self._ends[1:])

    @property
    def told(self) -> int:
        """The descriptor by which the launcher of a command says that it could not start it."""
        return self._ends[2] if self._wanted and self._launched else -1

    def reported(self, argv: list[str]) -> list[str]:
        """Make bubblewrap's command line one that reports here."""
        if not self._wanted:
            return argv
        return [argv[0], "--json-status-fd", str(self._ends[1]), *argv[1:]]

    def handed_over(self) -> None:
        """Let go of the ends that the process now has."""
        while len(self._ends) > 1:
            os.close(self._ends.pop())

    def ran(self) -> bool:
        """Tell whether the command was reached: only then its exit is reported."""
        if not self._wanted:
            return True
        said = self._said()
        return b'"exit-code"' in said and b'"not-started"' not in said

    def first_process(self) -> int | None:
        """The number of the process with which its whole pid namespace ends, where there is one."""
        found = re.search(rb'"child-pid": ?(\d+)\D', self._said()) if self._wanted else None
        return int(found[1]) if found else None

    async def awaited_process(self) -> int | None:
        """The same, as soon as bubblewrap has made it; None where it ended before that."""
        while (first := self.first_process()) is None and not self._over:
            await anyio.wait_readable(self._ends[0])
        return first

    def _said(self) -> bytes:
        """All that bubblewrap has reported so far."""
        with suppress(BlockingIOError):
            more = os.read(self._ends[0], 65_536)
            self._over = not more
            self._heard += more
        return self._heard


class _Latch:
    """Holds a box's command back, while bubblewrap builds the box, until it is lifted.

    Joining a control group takes the kernel several milliseconds, and so does building a box; with
    the latch both happen at once, and the command is in its group from its first instruction.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._ends: list[int] = []

    def __enter__(self) -> "_Latch":
        if self._wanted:
            self._ends = list(os.pipe())
        return self

    def __exit__(self, *_: object) -> None:
        while self._ends:
            os.close(self._ends.pop())

    @property
    def passed(self) -> tuple[int, ...]:
        """The descriptor that bubblewrap inherits."""
        return tuple(self._ends[:1])

    def held(self, argv: list[str]) -> list[str]:
        """Make bubblewrap's command line one that waits here."""
        if not self._wanted:
            return argv
        return [argv[0], "--block-fd", str(self._ends[0]), *argv[1:]]

    def handed_over(self) -> None:
        """Close the end that bubblewrap now has."""
        if self._wanted:
            os.close(self._ends.pop(0))

    def lift(self) -> None:
        """Let the command begin."""
        with suppress(BrokenPipeError):  # the box is gone already
            os.write(self._ends[-1], b"+")
