"""Whether a check ran fewer tests than before the work, by its output. Pure.

Law: a number that a tree prints never makes the gate more lenient. The number before the work is
Windlass's own reading of a tree that the task did not touch; the number after it is the tree's
claim. In the best reading all summaries add up: if even the sum is less than before, or a runner
reports no tests, tests are gone. In the worst reading new summaries are forged, and only the lowest
of each runner count: if that is less than before, tests may be gone, and the Coach must find out.
The Coach is also asked if a runner with many parts reports more parts without tests than before: a
new package may have none.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence

from msgspec import Struct

from windlass.core.events.values import Absence, CheckResult, Suite


class Shortfall(Struct, frozen=True, kw_only=True):
    """A check that proves less than before, or may do so."""

    command: str
    certain: bool
    """Whether it is so even in the best reading of its output."""
    reason: str
    """Both numbers, as a phrase."""


def shortfalls(
    results: Iterable[CheckResult],
    before: Mapping[str, CheckResult],
    skippable: Container[str],
) -> tuple[Shortfall, ...]:
    """The results that prove less than before, in order.

    A check that found no test counts, unless it is `skippable`.
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
    """The shortfall of a check that passed, or found no test."""
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
    """How many tests ran before; a check that timed out had not reported all."""
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
    """How many tests match those before, if every larger number may be forged."""
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
