"""Runs one command in a sandbox to its end, and leaves nothing of it running.

Law: however this call ends, by the command, by the clock or by cancellation, every process that the
command started has ended before it returns. A command is never blocked by its output, and never
judged here: the exit code is passed on as it is.

Processes are started from the event loop's thread, because bubblewrap's --die-with-parent follows
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
"""Seconds between SIGTERM and SIGKILL."""

DRAIN = 2.0
"""Seconds to keep reading once all processes that could be found have ended."""

AT_ONCE = 1.0
"""Seconds in which the kernel ends a whole box; after that, each process is looked for."""

OUTPUT_LIMIT = 10_000_000
"""Bytes of output that a log keeps."""

ENDED = 137
"""The exit code of a command that exceeded its limits and still exited with 0: no success."""


class Finished(Struct, frozen=True, kw_only=True):
    exit_code: int | None
    """None if it was not started or timed out; 128 + n if signal n ended it."""
    timed_out: bool
    output: str
    """The end of its output, or why it could not be started."""
    seconds: float
    started: bool
    """False if the command itself never ran: a missing program, a sandbox that failed."""
    overran: str = ""
    """Which limit it exceeded, if it was ended for that."""


async def run(
    sandbox: Sandbox,
    box: Box,
    command: Sequence[str],
    *,
    timeout: float,  # noqa: ASYNC109 (must differ from the caller's own cancellation)
    tail: int,
    output_limit: int = OUTPUT_LIMIT,
    log: Path | None = None,
    redactor: Redactor | None = None,
    on_output: Callable[[bytes], None] | None = None,
) -> Finished:
    """Run the command in the box; return its exit code and the last `tail` characters of output.

    All output goes to `on_output`, without secrets.
    """
    begin = time.monotonic()
    bounds = sandbox.writable(box)
    output = _Output(tail=tail, limit=output_limit, redactor=redactor or Redactor({}))
    output.on_output = on_output
    async with AsyncExitStack() as held:
        walled = sandbox.level == "bwrap"
        status = held.enter_context(_Status(wanted=walled, launched=bool(bounds)))
        try:
            if log is not None:
                output.log = held.enter_context(open_to_append(log))
            inner = confined(command, bounds, tell=status.failures)
            entry = held.enter_context(sandbox.entered(box, inner))
            environment = entry.env | (QUIET if bounds else {})
            argv = status.reported(entry.argv)
            enters = walled or is_plain_program(argv[0], box.checkout, environment)
            group = held.enter_context(grouped(sandbox.limits)) if enters else None
            # A box with a door is held back there: it enters its group by itself.
            joins = group is not None and walled and entry.way_out is nullcontext
            latch = held.enter_context(_Latch(wanted=joins))
            argv = bounded(
                sandbox.level, sandbox.limits, latch.held(argv), None if joins else group
            )
            fds = (*status.passed, *latch.passed, *entry.inherited)
            process = await start(argv, box.checkout, environment, fds)
        except OSError as error:
            return _not_started(str(error), begin)
        status.handed_over()
        latch.handed_over()
        mark = environment[MARKER]
        end = partial(_end, sandbox.level, process, mark)
        held.push_async_callback(_close, process, end)
        try:
            if joins and group is not None and (first := await status.awaited_process()):
                with suppress(ProcessLookupError):  # it has ended; bubblewrap says why
                    await anyio.to_thread.run_sync(group.join, first)
                latch.lift()
        except OSError as error:
            return _not_started(f"its control group could not be joined: {error}", begin)
        try:
            await held.enter_async_context(entry.way_out())
        except OSError as error:
            return _not_started(f"its network could not be made: {error}", begin)
        # Bubblewrap cannot end gently: the first signal ends it and everything in it.
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
        if over.excess:
            output.keep(f"\n[windlass: ended: {over.excess}]\n".encode())
        elif not timed_out and code is not None and code >= 0 and not status.ran():
            return _not_started(output.end(), begin)
    return Finished(
        exit_code=None if timed_out else ENDED if over.excess and not code else _shell_code(code),
        timed_out=timed_out,
        output=output.end(),
        seconds=time.monotonic() - begin,
        started=True,
        overran=over.excess,
    )


async def _close(process: anyio.abc.Process, end: Callable[[], int]) -> None:
    """End every process of a command, started or not."""
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            await anyio.to_thread.run_sync(end)
        await process.aclose()


async def start(
    argv: list[str],
    folder: Path,
    environment: dict[str, str],
    fds: tuple[int, ...],
    *,
    stdin: int = subprocess.DEVNULL,
    stderr: int = subprocess.STDOUT,
) -> anyio.abc.Process:
    """Start a process in its own session."""
    # Shielded: between fork and return nothing could end the process.
    with anyio.CancelScope(shield=True):
        return await anyio.open_process(
            argv,
            stdin=stdin,
            stderr=stderr,
            cwd=folder,
            env=environment,
            start_new_session=True,
            pass_fds=fds,
        )
    raise AssertionError  # unreachable; the type checker cannot know


def _end(level: Level, process: anyio.abc.Process, mark: str, *, grace: float = 0.0) -> int:
    """End the command and all it started."""
    if level == "bwrap":
        # This ends everything in the box at once.
        with suppress(ProcessLookupError):
            process.kill()
    return end_leftovers(mark, session=process.pid, grace=grace)


def _end_rest(status: "_Status", end: Callable[[], int]) -> int:
    """End what an ended command left; a box is empty once its first process is gone."""
    first = status.first_process()
    return 0 if first is not None and is_gone(first, AT_ONCE) else end()


def _end_group(
    group: Group | None,
    disk: DiskWatch,
    limits: Limits,
    over: "_Overrun",
    end: Callable[[], int],
) -> int:
    """End what is left, and the group; check memory and disk a last time."""
    if group is not None:
        over.excess = over.excess or excess_of_group(limits, group) or ""
    ended = end()
    over.excess = over.excess or disk.excess(last=True) or ""
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
    """Read and wait, then end everything left; whether it timed out."""
    timed_out = True  # a cancelled command is ended as gently as one that timed out
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_pour, process, output)
        tasks.start_soon(over.watch)
        try:
            with anyio.move_on_after(timeout):
                await process.wait()
                timed_out = False
        finally:
            # Processes left by an ended command get no grace.
            over.stop()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(end if timed_out else rest)
                await process.wait()
        # No process should have the pipe open now; one that escaped must not block the run.
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
    # As bubblewrap and shells report it, so that all levels agree.
    return 128 - code if code is not None and code < 0 else code


class _Overrun:
    """Ends a box that exceeds its limits, and records which."""

    def __init__(self, excess: Callable[[], Awaitable[str]], end: Callable[..., int]) -> None:
        self.excess = ""
        self._excess = excess
        self._end = end
        self._scope = anyio.CancelScope()

    async def watch(self) -> None:
        """Wait for an excess, and end the box."""
        with self._scope:
            self.excess = await self._excess()
            await anyio.to_thread.run_sync(self._end)

    def stop(self) -> None:
        """Stop looking: the command has ended, and the rest is ended anyway."""
        self._scope.cancel()


class _Output:
    """Keeps the end of the output, and the beginning in a log; both without secrets.

    Secrets are removed before anything is cut: a part of one would not be recognised.
    """

    def __init__(self, *, tail: int, limit: int, redactor: Redactor) -> None:
        self._clean = redactor.stream()
        self.log: BinaryIO | None = None
        self.on_output: Callable[[bytes], None] | None = None
        self._characters = tail
        self._bytes = 4 * tail + 4  # a character has at most four bytes, and the first may be cut
        self._kept = bytearray()
        self._left = limit
        self._limit = limit

    def take(self, chunk: bytes) -> None:
        self.keep(self._clean.feed(chunk))

    def finish(self) -> None:
        """Take what the redactor held back: the output is complete."""
        self.keep(self._clean.end())

    def keep(self, chunk: bytes) -> None:
        """Keep redacted output; beyond the limit the log only says that there was more."""
        if self.on_output is not None:
            self.on_output(chunk)
        self._kept += chunk
        del self._kept[: -self._bytes]
        if self._left >= 0:
            self._write(chunk[: self._left])
            self._left -= len(chunk)
            if self._left < 0:
                self._write(f"\n[windlass: output beyond {self._limit} bytes dropped]\n".encode())

    def end(self) -> str:
        """The last characters of the output."""
        text = self._kept.decode(errors="replace")
        return text[-self._characters :] if self._characters else ""

    def _write(self, data: bytes) -> None:
        if self.log is not None:
            try:
                self.log.write(data)
            except OSError:  # a full disk must not fail the command
                self.log = None


class _Status:
    """Reads from bubblewrap whether the command itself ever ran.

    The exit code does not say: a box that could not be built ends with 1, like a failing test.
    """

    def __init__(self, *, wanted: bool, launched: bool) -> None:
        self._wanted = wanted
        self._launched = launched
        self._ends: list[int] = []
        self._received = b""
        self._over = False
        """Whether bubblewrap has closed its end: it will report nothing more."""

    def __enter__(self) -> "_Status":
        if self._wanted:
            self._ends = list(os.pipe())
            os.set_blocking(
                self._ends[0], False
            )  # a process that keeps the other end must not block us
            if self._launched:
                # Bubblewrap keeps its end to itself. The launcher has another, and closes it before
                # the command begins, which could otherwise forge a report.
                self._ends.append(os.dup(self._ends[1]))
        return self

    def __exit__(self, *_: object) -> None:
        while self._ends:
            os.close(self._ends.pop())

    @property
    def passed(self) -> tuple[int, ...]:
        return tuple(self._ends[1:])

    @property
    def failures(self) -> int:
        """The descriptor by which the launcher reports that it could not start the command."""
        return self._ends[2] if self._wanted and self._launched else -1

    def reported(self, argv: list[str]) -> list[str]:
        """Bubblewrap's command line, with a report to here."""
        if not self._wanted:
            return argv
        return [argv[0], "--json-status-fd", str(self._ends[1]), *argv[1:]]

    def handed_over(self) -> None:
        """Close the ends that the process now has."""
        while len(self._ends) > 1:
            os.close(self._ends.pop())

    def ran(self) -> bool:
        """Whether the command was reached: only then its exit is reported."""
        if not self._wanted:
            return True
        report = self._report()
        return b'"exit-code"' in report and b'"not-started"' not in report

    def first_process(self) -> int | None:
        """The pid of the first process of the box's pid namespace, if there is one."""
        found = re.search(rb'"child-pid": ?(\d+)\D', self._report()) if self._wanted else None
        return int(found[1]) if found else None

    async def awaited_process(self) -> int | None:
        """The same, once bubblewrap has made it; None if it ended before that."""
        while (first := self.first_process()) is None and not self._over:
            await anyio.wait_readable(self._ends[0])
        return first

    def _report(self) -> bytes:
        """Everything bubblewrap has reported so far."""
        with suppress(BlockingIOError):
            more = os.read(self._ends[0], 65_536)
            self._over = not more
            self._received += more
        return self._received


class _Latch:
    """Holds a box's command back until `lift`, while bubblewrap builds the box.

    Joining a control group takes several milliseconds, and so does building a box; with the latch
    both happen at once, and the command is in its group from its first instruction.
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
        return tuple(self._ends[:1])

    def held(self, argv: list[str]) -> list[str]:
        """Bubblewrap's command line, with a wait for the latch."""
        if not self._wanted:
            return argv
        return [argv[0], "--block-fd", str(self._ends[0]), *argv[1:]]

    def handed_over(self) -> None:
        if self._wanted:
            os.close(self._ends.pop(0))

    def lift(self) -> None:
        with suppress(BrokenPipeError):  # the box is gone already
            os.write(self._ends[-1], b"+")
