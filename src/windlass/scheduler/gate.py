"""The gate: evidence in, judgement out. Nothing else in Windlass can approve anything.

Every signal has three values; absent never passes. Read from the top, the first line that fits:

| evidence about the commit                     | judgement                                      |
|-----------------------------------------------|------------------------------------------------|
| the Player changed nothing                    | return                                         |
| a check was never run on this tree            | run it                                         |
| a check could not start                       | run it again, twice; then ask a person         |
| a check timed out                             | run it again, once; then return                |
| a check failed                                | return                                         |
| a check collected nothing, and policy is skip | as if it were not there                        |
| a check collected nothing                     | return                                         |
| every check passed, or there are none         | approve                                        |
"""

import enum
from collections.abc import Sequence

from msgspec import Struct

from windlass.events.model import Absence, CheckResult, Outcome

_RUNS = {Absence.UNABLE_TO_START: 3, Absence.TIMED_OUT: 2}
"""How often checks may run on one tree before an absence of this kind counts."""


class Judgement(enum.Enum):
    """What is to be done with the commit."""

    APPROVE = "approve"
    RETURN = "return"
    RUN = "run"
    ASK = "ask"


class Verdict(Struct, frozen=True, kw_only=True):
    """A judgement, and the words that go with it."""

    judgement: Judgement
    reason: str = ""
    rerun: tuple[str, ...] = ()


def judge(
    checks: Sequence[str], said: Sequence[CheckResult], *, runs: int, skip_absent: bool
) -> Verdict:
    """Judge a tree by what its checks said; `said` has at most one result for each check."""
    results = {result.command: result for result in said}
    missing = tuple(check for check in checks if check not in results)
    if missing:
        return Verdict(judgement=Judgement.RUN, rerun=missing)
    bad = [
        result for result in results.values() if _stands_in_the_way(result, skip_absent=skip_absent)
    ]
    again = tuple(
        r.command for r in bad if r.absence is not None and runs < _RUNS.get(r.absence, 0)
    )
    if again:
        return Verdict(judgement=Judgement.RUN, rerun=again)
    unable = [result for result in bad if result.absence is Absence.UNABLE_TO_START]
    if unable:
        return Verdict(judgement=Judgement.ASK, reason=could_not_start(unable))
    if bad:
        return Verdict(judgement=Judgement.RETURN, reason=feedback(bad))
    return Verdict(judgement=Judgement.APPROVE)


def feedback(bad: Sequence[CheckResult]) -> str:
    """What a Player needs to know of checks that did not pass."""
    return "\n\n".join(f"{_headline(result)}\n{_quoted(result.output)}".rstrip() for result in bad)


def could_not_start(unable: Sequence[CheckResult]) -> str:
    """What a person needs to know of checks that could not even start."""
    commands = ", ".join(f"`{result.command}`" for result in unable)
    return f"{commands} could not start here; install what is missing or mend the command"


def _stands_in_the_way(result: CheckResult, *, skip_absent: bool) -> bool:
    if result.outcome is Outcome.PASS:
        return False
    return not (skip_absent and result.absence is Absence.COLLECTED_NOTHING)


def _headline(result: CheckResult) -> str:
    match result.absence:
        case Absence.COLLECTED_NOTHING:
            return f"Check `{result.command}` found no test to run; add one that proves the work."
        case Absence.TIMED_OUT:
            return f"Check `{result.command}` did not end within {result.seconds:.0f} s, twice."
        case _:
            return f"Check `{result.command}` failed with exit code {result.exit_code}."


def _quoted(output: str) -> str:
    return "\n".join(f"    {line}" for line in output.splitlines())
