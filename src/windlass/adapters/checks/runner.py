"""Checks: Windlass runs them itself, on a throwaway checkout of exactly the commit under review.

Sandboxed, without secrets, and without network unless configured. A command never raises: it
passes, fails, or is absent, and absent never passes.
"""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from windlass.adapters.checks import syntax
from windlass.adapters.checks.summaries import Tally
from windlass.adapters.checks.test_output import collected_nothing
from windlass.adapters.files import make_folder, open_to_append
from windlass.adapters.git.checkouts import Throwaways
from windlass.adapters.git.pool import Shelf
from windlass.adapters.git.store import printable_line
from windlass.adapters.sandbox import Box, Sandbox
from windlass.adapters.sandbox import commands as processes
from windlass.core.events.model import Absence, CheckResult, Outcome, SetupFailure, Suite
from windlass.core.excerpts import READ, excerpt
from windlass.core.secrets import Redactor
from windlass.errors import SetupFailed

_NOTHING_FOUND = 4_000
"""Characters at the end of the output in which a runner says that it found no test."""

_CANNOT_START = frozenset({126, 127})
"""A shell's exit codes for a program that is missing or cannot run."""


class CommandChecks:
    """Runs real commands in a sandbox."""

    def __init__(
        self,
        throwaways: Throwaways,
        sandbox: Sandbox,
        *,
        timeout: float,
        network: bool,
        logs: Path,
        redactor: Redactor | None = None,
    ) -> None:
        self._throwaways = throwaways
        self._sandbox = sandbox
        self._timeout = timeout
        self._network = network
        self._logs = logs
        # With a network a check could pass an open file to a process that outlives it.
        self._then: Shelf = "players" if network else "judges"
        self._redactor = redactor or Redactor({})

    async def run(self, commit: str, commands: Sequence[str], log: str) -> tuple[CheckResult, ...]:
        """One result per command, in order, all in one checkout of the commit."""
        if not commands:
            return ()
        make_folder(self._logs)
        logs = self._logs / f"{log}.log"
        try:
            async with self._throwaways.checkout(commit, log, then=self._then) as place:
                return tuple([await self._one(command, place.path, logs) for command in commands])
        except SetupFailed as failure:
            return tuple(_unable(command, failure) for command in commands)

    async def parse(self, commit: str, paths: Sequence[str]) -> tuple[str, ...]:
        """A line for each of these files that does not parse, where a parser is available."""
        asked = syntax.parseable(printable_line(path) for path in paths)
        if not asked:
            return ()
        errors: list[str] = []
        wanted = asked | syntax.BESIDE
        folders = {str(folder) for path in asked for folder in PurePosixPath(path).parents}
        lent = self._throwaways.excerpt(commit, "syntax", wanted.__contains__, folders.__contains__)
        async with lent as excerpt:
            box = Box(checkout=excerpt.path, network=False)
            files = [path for path in excerpt.files if printable_line(path) in asked]
            for command in syntax.parsers_for(files):
                timeout = min(self._timeout, syntax.TIMEOUT)
                done = await processes.run(
                    self._sandbox,
                    box,
                    command,
                    timeout=timeout,
                    tail=syntax.TAIL,
                    redactor=self._redactor,
                )
                if done.started:  # else the parser is not installed
                    errors += syntax.syntax_errors(done.output)
        return tuple(errors)

    async def _one(self, command: str, checkout: Path, log: Path) -> CheckResult:
        with open_to_append(log) as file:
            file.write(f"$ {self._redactor.text(command)}\n".encode())
        return await run_check(
            self._sandbox,
            Box(checkout=checkout, network=self._network, env={"CI": "true"}, role="check"),
            command,
            timeout=self._timeout,
            redactor=self._redactor,
            log=log,
        )


async def run_check(
    sandbox: Sandbox,
    box: Box,
    command: str,
    *,
    timeout: float,  # noqa: ASYNC109 (must differ from the caller's own cancellation)
    redactor: Redactor,
    log: Path | None = None,
) -> CheckResult:
    """Run one command in the box, and judge it."""
    tally = Tally()
    done = await processes.run(
        sandbox,
        box,
        ("/bin/sh", "-c", command),
        timeout=timeout,
        tail=READ,
        log=log,
        redactor=redactor,
        on_output=tally.feed,
    )
    return _judged(command, done, tally.suites(done.output, green=done.exit_code == 0))


def _judged(command: str, done: processes.Finished, suites: tuple[Suite, ...]) -> CheckResult:
    tests = sum(suite.tests for suite in suites) if suites else None
    absence: Absence | None = None
    if done.timed_out:
        absence = Absence.TIMED_OUT
    elif not done.started or done.exit_code in _CANNOT_START:
        absence = Absence.UNABLE_TO_START
    elif (done.exit_code == 0 and tests == 0) or (
        not tests and collected_nothing(command, done.exit_code, done.output[-_NOTHING_FOUND:])
    ):
        absence = Absence.COLLECTED_NOTHING
    outcome = Outcome.PASS if done.exit_code == 0 else Outcome.FAIL
    return CheckResult(
        command=command,
        outcome=outcome if absence is None else Outcome.ABSENT,
        absence=absence,
        exit_code=done.exit_code,
        seconds=round(done.seconds, 3),
        output=excerpt(done.output, failed=outcome is Outcome.FAIL and absence is None),
        tests=tests,
        suites=suites,
    )


def _unable(command: str, failure: SetupFailed) -> CheckResult:
    """The result of a check in a checkout that could not be set up."""
    return CheckResult(
        command=command,
        outcome=Outcome.ABSENT,
        absence=Absence.UNABLE_TO_START,
        output=str(failure),
        setup=SetupFailure.of(failure),
    )
