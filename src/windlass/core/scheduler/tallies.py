"""Whether a check ran fewer tests than it did before the work, by what it printed. Pure.

Law: a number that a tree prints never makes the gate more lenient. The number before the work is
Windlass's own reading of a tree that the task did not touch; the number after it is the tree's
claim. Read in the claim's favour, all summaries are a sum: where even that is less than before, or
where a runner says that it ran nothing, tests are gone. Read against it, a summary that was not
there before may be forged, and only the lowest of each runner count: where that is less than
before, the tests may be gone, and the Coach has to find out. So it has to where a runner of many
parts says more often than before that one of them has no test: a new package may have none.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence

from msgspec import Struct

from windlass.core.events.values import Absence, CheckResult, Suite


class Shortfall(Struct, frozen=True, kw_only=True):
    """A check that proves less than it did, or may do so."""

    command: str
    certain: bool
    """Whether it is so even in the best reading of what it printed."""
    reason: str
    """Both numbers, in a sentence's words."""


def shortfalls(
    results: Iterable[CheckResult],
    before: Mapping[str, CheckResult],
    skippable: Container[str],
) -> tuple[Shortfall, ...]:
    """What is short of what the same commands said before, in the order of the results.

    One that found nothing is short of something, unless it is `skippable`.
    """
    found = (
        shortfall(result, before.get(result.command)) or _nothing(result, skippable)
        for result in results
    )
    return tuple(each for each in found if each is not None)


def _nothing(now: CheckResult, skippable: Container[str]) -> Shortfall | None:
    if now.absence is not Absence.COLLECTED_NOTHING or now.command in skippable:
        return None
    return _short(now, certain=True, reason="it found no test to run")


def shortfall(now: CheckResult, before: CheckResult | None) -> Shortfall | None:
    """What a check that passed, or found nothing, is short of what it said before."""
    then = _known(before)
    if (now.tests or 0) < then:
        return _short(now, certain=True, reason=f"{_ran(now)}, and {then} before this work")
    reference = before.suites if before is not None else ()
    idle = _idle(now.suites)
    if now.tests and len(idle) > len(_idle(reference)):
        skipped = f" ({idle[0].skipped} skipped)" if idle[0].skipped else ""
        reason = f"{_ran(now)}, but {idle[0].name} among them ran none{skipped}"
        return _short(now, certain=True, reason=reason)
    if not reference:
        return None
    if (least := _least(now.suites, reference)) < then:
        reason = (
            f"{_ran(now)}, of which only {least} can be matched with the {then} before this work"
        )
        return _short(now, certain=False, reason=reason)
    if len(parts := _idle_parts(now.suites)) > len(_idle_parts(reference)):
        reason = f"{_ran(now)}, but {parts[0].name} says that a part of it ran none"
        return _short(now, certain=False, reason=reason)
    return None


def _known(before: CheckResult | None) -> int:
    """How many tests there were; what was ended by the clock had not said all."""
    if before is None or before.absence is Absence.TIMED_OUT:
        return 0
    return before.tests or 0


def _short(now: CheckResult, *, certain: bool, reason: str) -> Shortfall:
    return Shortfall(command=now.command, certain=certain, reason=reason)


def _ran(result: CheckResult) -> str:
    if result.tests is None:
        return "it does not say any more how many tests ran"
    return f"it ran {result.tests} {'test' if result.tests == 1 else 'tests'}"


def _idle(suites: Sequence[Suite]) -> list[Suite]:
    return [suite for suite in suites if not suite.tests and not suite.part]


def _idle_parts(suites: Sequence[Suite]) -> list[Suite]:
    return [suite for suite in suites if not suite.tests and suite.part]


def _least(now: Sequence[Suite], before: Sequence[Suite]) -> int:
    """How many tests stand against those before, where every larger number may be made up."""
    claimed = _by_name(now)
    return sum(
        sum(sorted(claimed.get(name, ()))[: len(numbers)])
        for name, numbers in _by_name(before).items()
    )


def _by_name(suites: Sequence[Suite]) -> Mapping[str, list[int]]:
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for suite in suites:
        numbers[suite.name].append(suite.tests)
    return numbers
