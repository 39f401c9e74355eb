"""Checks: Windlass runs them itself, on a throwaway checkout of exactly the commit that is judged.

Sandboxed, without secrets, without network unless the configuration says so. What a command does
is never an exception: it passes, fails, or is absent, and absent never passes.
"""

from collections.abc import Sequence
from pathlib import Path

from windlass.adapters import processes
from windlass.adapters.git.throwaways import Throwaways
from windlass.adapters.runners import collected_nothing
from windlass.adapters.sandbox import Box, Sandbox
from windlass.errors import SetupFailed
from windlass.events.model import Absence, CheckResult, Outcome

TAIL = 4000
"""Characters of output that a result carries; the log has the whole."""

_CANNOT_START = frozenset({126, 127})
"""What a shell answers for a program that is not there or is none."""


class CommandChecks:
    """Real commands behind the port."""

    def __init__(
        self,
        throwaways: Throwaways,
        sandbox: Sandbox,
        *,
        timeout: float,
        network: bool,
        logs: Path,
    ) -> None:
        self._throwaways = throwaways
        self._sandbox = sandbox
        self._timeout = timeout
        self._network = network
        self._logs = logs

    async def run(self, commit: str, commands: Sequence[str], log: str) -> tuple[CheckResult, ...]:
        """One result for each command, in order, all in one checkout of the commit."""
        if not commands:
            return ()
        self._logs.mkdir(parents=True, exist_ok=True)
        logs = self._logs / f"{log}.log"
        try:
            async with self._throwaways.lend(commit, log) as place:
                return tuple([await self._one(command, place.path, logs) for command in commands])
        except SetupFailed as failure:
            return tuple(_unable(command, str(failure)) for command in commands)

    async def _one(self, command: str, checkout: Path, log: Path) -> CheckResult:
        with log.open("a", encoding="utf-8") as file:
            file.write(f"$ {command}\n")
        done = await processes.run(
            self._sandbox,
            Box(checkout=checkout, network=self._network, env={"CI": "true"}),
            ("/bin/sh", "-c", command),
            timeout=self._timeout,
            tail=TAIL,
            log=log,
        )
        return _judged(command, done)


def _judged(command: str, done: processes.Finished) -> CheckResult:
    absence: Absence | None = None
    if done.timed_out:
        absence = Absence.TIMED_OUT
    elif not done.started or done.exit_code in _CANNOT_START:
        absence = Absence.UNABLE_TO_START
    elif collected_nothing(command, done.exit_code, done.output):
        absence = Absence.COLLECTED_NOTHING
    outcome = Outcome.PASS if done.exit_code == 0 else Outcome.FAIL
    return CheckResult(
        command=command,
        outcome=outcome if absence is None else Outcome.ABSENT,
        absence=absence,
        exit_code=done.exit_code,
        seconds=round(done.seconds, 3),
        output=done.output,
    )


def _unable(command: str, why: str) -> CheckResult:
    return CheckResult(
        command=command, outcome=Outcome.ABSENT, absence=Absence.UNABLE_TO_START, output=why
    )
