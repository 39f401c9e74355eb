"""Test runners Windlass knows, and how each says how many tests it ran, or that it found none.

A runner that found nothing has proven nothing, whatever it exits with. What a tree prints can only
ever turn a pass into an absence here, never the other way round, so there is nothing to forge. How
many tests ran is a hint for whoever reviews the work, and nothing is approved for it.
"""

import re

from msgspec import Struct


class _Runner(Struct, frozen=True, kw_only=True):
    command: re.Pattern[str]
    code: int | None = None
    """The exit code that says so."""
    says: re.Pattern[str] | None = None
    """Or what it prints then."""
    unless: re.Pattern[str] | None = None
    """Printed where it did find some."""


_RUNNERS = (
    _Runner(command=re.compile(r"\b(pytest|py\.test|tox|nox)\b"), code=5),
    _Runner(command=re.compile(r"\bunittest\b"), code=5, says=re.compile(r"(?m)^Ran 0 tests in ")),
    _Runner(
        command=re.compile(r"\bgo\s+test\b"),
        says=re.compile(r"\[no test files\]|\bno tests to run\b"),
        unless=re.compile(r"(?m)^ok\s+\S+\s+(?!.*no tests to run)|^--- "),
    ),
    _Runner(
        command=re.compile(r"\bcargo\s+(nextest\s+run|test|t)\b"),
        says=re.compile(r"(?m)^running 0 tests$|\b0 tests run\b"),
        unless=re.compile(r"(?m)^running [1-9]\d* tests?$|\b[1-9]\d* tests? run\b"),
    ),
    _Runner(command=re.compile(r"\bnode\b.*--test\b"), says=re.compile(r"(?m)^\S tests 0$")),
    _Runner(
        command=re.compile(r"\b(jest|vitest|npm|npx|pnpm|yarn|bun)\b"),
        says=re.compile(r"(?m)^(?:No tests found|No test files found)\b"),
    ),
)


def collected_nothing(command: str, code: int | None, output: str) -> bool:
    """Whether this was a known runner that says it found no test."""
    return any(
        runner.command.search(command) and _says_so(runner, code, output) for runner in _RUNNERS
    )


def _says_so(runner: _Runner, code: int | None, output: str) -> bool:
    if runner.code is not None and code == runner.code:
        return True
    if runner.says is None or not runner.says.search(output):
        return False
    return runner.unless is None or not runner.unless.search(output)


_PYTEST = re.compile(r"(?m)^[= ]*((?:\d+ [a-z]+(?:, )?)+) in \d[\d.:]*m?s?\b.*$")
_RAN = re.compile(r"(\d+) (?:passed|failed|errors?|xfailed|xpassed)\b")
_UNITTEST = re.compile(r"(?m)^Ran (\d+) tests? in ")
_SKIPPED = re.compile(r"\bskipped=(\d+)")
_CARGO = re.compile(r"(?m)^test result: \w+\. (\d+) passed; (\d+) failed;")
_GO = re.compile(r"(?m)^\s*--- (?:PASS|FAIL): ")
_JEST = re.compile(r"(?m)^\s*Tests:?\s+(.*)$")
_NODE = re.compile(r"(?m)^\S (?:pass|fail) (\d+)$")
_MOCHA = re.compile(r"(?m)^\s*(\d+) (?:passing|failing)\b")


def how_many_ran(output: str) -> int | None:
    """How many tests a check says it ran; None where it says nothing that is known."""
    if summaries := _PYTEST.findall(output):
        return sum(map(int, _RAN.findall(summaries[-1])))
    if ran := _UNITTEST.findall(output):
        skipped = _SKIPPED.findall(output)
        return sum(map(int, ran)) - sum(map(int, skipped))
    if results := _CARGO.findall(output):
        return sum(int(passed) + int(failed) for passed, failed in results)
    if lines := _JEST.findall(output):
        return sum(map(int, _RAN.findall(lines[-1])))
    for counted in (_NODE, _MOCHA):
        if numbers := counted.findall(output):
            return sum(map(int, numbers))
    return len(_GO.findall(output)) or None
