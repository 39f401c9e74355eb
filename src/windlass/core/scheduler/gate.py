"""The gate: evidence in, judgement out. Nothing else in Windlass can approve anything.

Every signal has three values; absent never passes. First the checks, read from the top:

| what a check said of this tree                | judgement                                      |
|-----------------------------------------------|------------------------------------------------|
| it was never run                              | run it                                         |
| it could not start                            | run it again, twice; then ask a person         |
| it timed out                                  | run it again, once; then return                |
| it passed and failed on this very tree        | run it again until it says the same twice,     |
|                                               | at most five times; it is named as flaky       |
| it failed, where the code is not suspect      | run it again, once; then return                |
| it failed                                     | return                                         |
| it ran fewer tests than before this work,     | return, with both numbers; where the task says |
| or a part of it ran none                      | that tests go away the Coach is asked about it |
| it collected nothing, and policy is skip      | as if it were not there                        |
| it collected nothing                          | return                                         |
| it passed, as did all others, or there is none| pass: the Coach may look                       |

Then the Coach's answer about the same commit:

| what the Coach said                           | judgement                                      |
|-----------------------------------------------|------------------------------------------------|
| nothing by schema, or about another commit    | inconclusive: ask another Coach, 3 times       |
| it has a question for a person                | ask                                            |
| its decision is feedback                      | return                                         |
| an issue is must_fix                          | return                                         |
| its own tests failed                          | return                                         |
| its evidence says that a criterion is not met | return                                         |
| it approved, and has no evidence for a        | inconclusive, as above: the fault is the       |
| criterion, or does not name a file it was not | Coach's, and costs the Player no turn          |
| shown or such a check                         |                                                |
| it approved and ran no tests, and there are   | inconclusive, as above                         |
| no checks                                     |                                                |
| none of these                                 | pass: approved                                 |

A turn in which the Player changed nothing comes to neither. The code is not suspect where the same
check passed on the parts: on a merged tree, and on the tip.
"""

import enum
import re
from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, assert_never

from msgspec import Struct

from windlass.core.events.review import CriterionEvidence, Issue, Review
from windlass.core.events.values import Absence, CheckResult, Outcome
from windlass.core.excerpts import indented
from windlass.core.scheduler.tallies import Shortfall, shortfall
from windlass.core.state.model import stands_in_the_way
from windlass.errors import MEND_SETUP

_RUNS: Mapping[Absence, int] = MappingProxyType(
    {Absence.UNABLE_TO_START: 3, Absence.TIMED_OUT: 2, Absence.COLLECTED_NOTHING: 0}
)
"""How often checks may run on one tree before an absence of this kind counts."""

MOST_ANSWERS = 5
"""How often a flaky check runs on one tree before it counts as failed."""

_UNTESTED = "- no check and no test run of the Coach shows that this works"


class Judgement(enum.Enum):
    """What to do with the commit."""

    PASS = "pass"  # noqa: S105  no password
    RETURN = "return"
    RUN = "run"
    """Run checks, or ask another Coach."""
    ASK = "ask"


class Verdict(Struct, frozen=True, kw_only=True):
    """A judgement with its reason."""

    judgement: Judgement
    reason: str = ""
    rerun: tuple[str, ...] = ()


class Rules(Struct, frozen=True, kw_only=True):
    """The rules by which checks are judged."""

    skippable: Container[str] = ()
    """Commands that may find no test."""
    doubted: bool = False
    """Whether a failure may be the check's fault, because the code passed before."""
    before: Mapping[str, CheckResult] | None = None
    """The results before the work; None if numbers of tests are not compared."""
    removing: bool = False
    """Whether the task removes tests; then the Coach is asked instead of returning the work."""
    flaky: Literal["name", "ask"] = "name"
    """What to do about a flaky check: name it and go on, or ask a person."""


def judge_checks(
    checks: Sequence[str], said: Sequence[CheckResult], *, runs: int, rules: Rules
) -> Verdict:
    """Judge a tree by its check results; `said` has at most one result for each check."""
    results = {result.command: result for result in said}
    missing = tuple(check for check in checks if check not in results)
    if missing:
        return Verdict(judgement=Judgement.RUN, rerun=missing)
    again = tuple(r.command for r in results.values() if _is_open(r, runs, rules))
    if again:
        return Verdict(judgement=Judgement.RUN, rerun=again)
    flaky = [result for result in results.values() if result.wavers]
    if flaky and rules.flaky == "ask":
        return Verdict(judgement=Judgement.ASK, reason=wavering(flaky))
    bad = [result for result in results.values() if _holds_task(result, rules)]
    unable = [result for result in bad if result.absence is Absence.UNABLE_TO_START]
    if unable:
        return Verdict(judgement=Judgement.ASK, reason=could_not_start(unable))
    if bad:
        short = {result.command: _short(result, rules) for result in bad}
        return Verdict(judgement=Judgement.RETURN, reason=feedback(bad, short))
    return Verdict(judgement=Judgement.PASS)


def _is_open(result: CheckResult, runs: int, rules: Rules) -> bool:
    """Whether the check must run again before its result counts."""
    if result.absence is not None:
        return runs < _RUNS[result.absence]
    answers = result.answers
    if result.wavers:
        return answers[-1] is not answers[-2] and len(answers) < MOST_ANSWERS
    return rules.doubted and result.outcome is Outcome.FAIL and len(answers) <= 1


def judge_review(
    review: Review, *, criteria: int, checked: bool, points: Sequence[str] = ()
) -> Verdict:
    """Judge a commit whose checks passed by the Coach's review.

    `points` must be named by its evidence: files it was not shown, checks that prove less.
    """
    if review.question:
        return Verdict(judgement=Judgement.ASK, reason=review.question)
    against = [*_decided_against(review), *_must_fix(review), *_failed_tests(review)]
    unmet = _unmet(review, criteria)
    if against or any(not item.met for item in review.evidence if item.criterion in unmet):
        return Verdict(judgement=Judgement.RETURN, reason="\n".join((*against, *unmet.values())))
    missing = [
        *unmet.values(),
        *(f"- no evidence names {point}" for point in unnamed(review, points)),
        *([] if checked or review.test_results.passed else [_UNTESTED]),
    ]
    if missing:
        reason = "\n".join(("it approved without evidence:", *missing))
        return Verdict(judgement=Judgement.RUN, reason=reason)
    return Verdict(judgement=Judgement.PASS)


def unnamed(review: Review, points: Sequence[str]) -> tuple[str, ...]:
    """The points that an approval has no evidence about; a review with feedback needs none."""
    if review.decision != "approve":
        return ()
    named = {_bare(item.name) for item in review.seen if item.evidence.strip()}
    texts = [item.evidence for item in (*review.evidence, *review.seen)]
    return tuple(
        point
        for point in points
        if _bare(point) not in named and not any(_names(text, point) for text in texts)
    )


def _bare(name: str) -> str:
    return name.strip().strip("`").removeprefix("./").rstrip("/")


def _names(text: str, point: str) -> bool:
    """Whether the text names exactly this file or command, not a longer one."""
    pattern = rf"(?<![\w/.-])(?:\./)?{re.escape(_bare(point))}/?(?![\w/-]|\.\w)"
    return re.search(pattern, text) is not None


def _decided_against(review: Review) -> list[str]:
    if review.decision == "approve":
        return []
    return [f"The Coach did not approve: {review.feedback or review.summary}"]


def _must_fix(review: Review) -> list[str]:
    return [_described(issue) for issue in review.issues if issue.severity == "must_fix"]


def _described(issue: Issue) -> str:
    where = f" ({issue.file})" if issue.file else ""
    cure = f" Suggestion: {issue.suggestion}" if issue.suggestion else ""
    return f"- must fix{where}: {issue.description}{cure}"


def _failed_tests(review: Review) -> list[str]:
    results = review.test_results
    if results.passed is not False and not results.failures:
        return []
    failures = "; ".join(results.failures) or "it does not say which"
    return [f"The Coach's own test run failed: {failures}"]


def _unmet(review: Review, criteria: int) -> dict[int, str]:
    """Criteria without evidence that they are met, or with any evidence against, by number."""
    by_number = {
        number: [e for e in review.evidence if e.criterion == number]
        for number in range(1, criteria + 1)
    }
    return {
        number: f"- no evidence that criterion {number} is met" + _denied(said)
        for number, said in by_number.items()
        if not said or any(not (item.met and item.evidence.strip()) for item in said)
    }


def _denied(said: list[CriterionEvidence]) -> str:
    against = next((item.evidence for item in said if not item.met and item.evidence.strip()), "")
    return f": {against}" if against else ""


def feedback(bad: Sequence[CheckResult], short: Mapping[str, Shortfall | None]) -> str:
    """The feedback for a Player about checks that did not pass."""
    return "\n\n".join(
        f"{_headline(result, short[result.command])}\n{indented(result.output)}".rstrip()
        for result in bad
    )


def could_not_start(unable: Sequence[CheckResult]) -> str:
    """The message for a person about checks that could not start, with what they printed."""
    outputs = dict.fromkeys(each.setup.output if each.setup else each.output for each in unable)
    return "\n".join((not_started(unable), *filter(None, map(indented, outputs))))


def not_started(unable: Sequence[CheckResult]) -> str:
    """The same in one line, without the output."""
    why = dict.fromkeys(each.setup.sentence for each in unable if each.setup is not None)
    codes = dict.fromkeys(each.exit_code for each in unable if each.exit_code is not None)
    commands = ", ".join(f"`{result.command}`" for result in unable)
    if why:
        return f"{commands} could not start here: {'; '.join(why)}; {MEND_SETUP}"
    code = f" (exit code {', '.join(map(str, codes))})" if codes else ""
    return f"{commands} could not start here{code}; install what is missing or fix the command"


def wavering(flaky: Sequence[CheckResult]) -> str:
    """The message for a person about flaky checks."""
    results = (f"`{r.command}` ({', '.join(r.answers)} on the same tree)" for r in flaky)
    return f"flaky: {'; '.join(results)}; fix or remove the unstable part"


def _holds_task(result: CheckResult, rules: Rules) -> bool:
    """Whether a check keeps the task from continuing: it is red, short of tests or undecided."""
    if not rules.removing and _short(result, rules) is not None:
        return True
    needs_tests = not (rules.removing or result.command in rules.skippable)
    empty = result.absence is Absence.COLLECTED_NOTHING
    undecided = not empty and result.wavers and result.answers[-1] is not result.answers[-2]
    return undecided or stands_in_the_way(result, needs_tests=needs_tests)


def _short(result: CheckResult, rules: Rules) -> Shortfall | None:
    """The certain shortfall of a check that passed or found no test."""
    says_nothing_else = result.outcome is Outcome.PASS or (
        result.absence is Absence.COLLECTED_NOTHING
    )
    if rules.before is None or not says_nothing_else:
        return None
    found = shortfall(result, rules.before.get(result.command))
    return found if found is not None and found.certain else None


def _headline(result: CheckResult, short: Shortfall | None) -> str:
    if short is not None:
        return (
            f"Check `{result.command}` proves less than before: {short.reason}. Bring back the "
            "tests that are missing, and let them run. Where the plan wants tests to go away, a "
            "person says so in the task with `**Removes tests:**`."
        )
    match result.absence:
        case Absence.COLLECTED_NOTHING if skipped := sum(s.skipped for s in result.suites):
            return (
                f"Check `{result.command}` found no test to run: {skipped} skipped; "
                "let one run that proves the work."
            )
        case Absence.COLLECTED_NOTHING:
            return f"Check `{result.command}` found no test to run; add one that proves the work."
        case Absence.TIMED_OUT:
            return f"Check `{result.command}` did not end within {result.seconds:.0f} s, twice."
        case Absence.UNABLE_TO_START | None if result.wavers:
            answers = ", ".join(result.answers)
            return (
                f"Check `{result.command}` is flaky: {answers} on the same files; make it stable."
            )
        case Absence.UNABLE_TO_START | None:
            return f"Check `{result.command}` failed with exit code {result.exit_code}."
        case _:
            assert_never(result.absence)
