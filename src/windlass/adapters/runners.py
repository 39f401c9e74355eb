"""Commands that are test runners, and how each says by its exit code that it found no test.

A runner that found nothing has proven nothing, whatever it exits with. What any command prints is
read in `summaries`; here a command that failed is told from one that had nothing to run.
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
