"""An agent's program in its box: start it, limit it, watch it, and end everything it started.

Rule 1: the program's environment is exactly what the sandbox gives. Rule 2: however a call ends, no
process it started is left. Rule 3: if the program cannot start, that is a report, not an exception.
"""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from subprocess import PIPE
from typing import TypeAlias
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from anyio.abc import Process
from msgspec.structs import replace

from windlass.adapters.processes.cgroups import Group, grouped, is_plain_program
from windlass.adapters.processes.leftovers import MARKER, end_leftovers
from windlass.adapters.processes.limits import DiskWatch, bounded, excess_of_group, overrun
from windlass.adapters.sandbox.box import Box, Sandbox
from windlass.adapters.sandbox.commands import start
from windlass.adapters.sandbox.network import METER_URL
from windlass.core.events.model import Failure
from windlass.core.hosts import HostEntry
from windlass.ports import Report

Converse: TypeAlias = Callable[[Process], Awaitable[Report]]
"""Talks to the program over its standard streams until there is a report."""


async def run_program(
    sandbox: Sandbox, box: Box, command: Sequence[str], converse: Converse
) -> Report:
    """Start the program in the box, let `converse` talk to it, and leave no process of it."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            entry = stack.enter_context(sandbox.entered(box, command))
            enters = sandbox.level == "bwrap" or is_plain_program(
                entry.argv[0], box.checkout, entry.env
            )
            group = stack.enter_context(grouped(sandbox.limits)) if enters else None
            argv = bounded(sandbox.level, sandbox.limits, entry.argv, group)
            running = _running(argv, entry.env, box.checkout, entry.inherited)
            process = await stack.enter_async_context(running)
            await stack.enter_async_context(entry.way_out())
        except OSError as error:
            message = f"the agent could not be started: {error.strerror or error}"
            return Report(failure=Failure.ENVIRONMENT, message=message)
        disk = DiskWatch(box.checkout, sandbox.limits.disk)
        looks = partial(overrun, group=group, disk=disk)
        return await _watched(sandbox, process, entry.env[MARKER], converse, looks, group)


def hosts_of(url: str) -> tuple[str, ...]:
    """The host that an agent's box must reach for its model; none for the meter's address."""
    address = urlsplit(url)
    if address.hostname is None or address.geturl() == METER_URL:
        return ()
    port = address.port or (443 if address.scheme == "https" else 80)
    return (str(HostEntry(address.hostname, port)),)


async def _watched(
    sandbox: Sandbox,
    process: Process,
    mark: str,
    converse: Converse,
    looks: Callable[..., Awaitable[str]],
    group: Group | None,
) -> Report:
    """Converse, and end a program that exceeds its limits."""
    excess: list[str] = []
    report = Report()

    async def look() -> None:
        excess.append(await looks(sandbox.level, sandbox.limits, process.pid, mark))
        with contextlib.suppress(ProcessLookupError):  # it may just have ended
            process.kill()  # inside a sandbox this ends everything in it
        await anyio.to_thread.run_sync(partial(end_leftovers, mark, session=process.pid))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        report = await converse(process)
        tasks.cancel_scope.cancel()
    if not excess and group is not None:
        excess += filter(None, [excess_of_group(sandbox.limits, group)])
    if not excess:
        return report
    message = f"the agent was ended: {excess[0]}"
    return replace(report, failure=Failure.CRASHED, message=message)


@contextlib.asynccontextmanager
async def _running(
    argv: list[str], env: dict[str, str], cwd: Path, fds: tuple[int, ...]
) -> AsyncGenerator[Process]:
    """Run the program in its own session; on exit, end every process of it."""
    mark = env[MARKER]
    process = await start(argv, cwd, env, fds, stdin=PIPE, stderr=PIPE)
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            # The pid of an ended process may belong to another by now.
            session = process.pid if process.returncode is None else None
            # By the mark: tools have their own sessions and outlive the program.
            await anyio.to_thread.run_sync(partial(end_leftovers, mark, session=session))
            await process.aclose()
