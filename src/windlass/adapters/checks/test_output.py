"""What each test runner prints: its summary, and how it says that it found no test.

One row per runner. A row has the line that opens a summary, and where needed the lines that add to
it or take from it. Groups of the opening line whose name begins with `p` are tests, with `m` tests
among them that did not run; `s` are skipped tests on top of them, `name` names the part. A line of
words (`3 passed, 1 skipped`) is read by its words. A line is matched from its first character.

A runner that found no test has proven nothing, whatever its exit code.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

Numbers: TypeAlias = tuple[int, int]
"""Tests that ran, and tests that were skipped."""

_RAN = frozenset({"passed", "failed", "error", "errors", "xfailed", "xpassed"})
_SKIPPED = frozenset({"skipped", "pending", "todo", "incomplete"})
_WORDS = re.compile(r"(\d+) (?:tests? )?([a-z]+)")
_SUBTESTS = re.compile(r"\d+ subtests [a-z]+(?:, )?")


def _by_groups(match: re.Match[str]) -> Numbers:
    found = match.groupdict().items()
    groups = {name: int(value) for name, value in found if value and name != "name"}
    ran = sum(value for name, value in groups.items() if name.startswith("p"))
    less = sum(value for name, value in groups.items() if name.startswith("m"))
    return ran - less, less + groups.get("s", 0)


def _one(_match: re.Match[str]) -> Numbers:
    return 1, 0


def _by_words(match: re.Match[str]) -> Numbers:
    words = [(int(n), word) for n, word in _WORDS.findall(_SUBTESTS.sub("", match["words"]))]
    ran = sum(number for number, word in words if word in _RAN)
    return ran, sum(number for number, word in words if word in _SKIPPED)


class Shape(Struct, frozen=True, kw_only=True, eq=False):
    """The form of one runner's summary."""

    kind: str
    opens: re.Pattern[str]
    adds: re.Pattern[str] | None = None
    takes: re.Pattern[str] | None = None
    """Tests that were counted but did not run; a line without a number counts as one."""
    heads: re.Pattern[str] | None = None
    """A line that names the next summary."""
    wants_heading: bool = False
    """Whether a summary without a heading repeats others and is skipped."""
    part: bool = False
    """Whether a run prints many of these, and some may have no tests."""
    yields_to: frozenset[str] = frozenset()
    """Kinds that report the same tests better."""
    numbers: Callable[[re.Match[str]], Numbers] = _by_groups


def _shape(
    kind: str,
    opens: str,
    *,
    adds: str | None = None,
    takes: str | None = None,
    heads: str | None = None,
    part: bool = False,
    wants_heading: bool = False,
    yields_to: tuple[str, ...] = (),
    one: bool = False,
) -> Shape:
    by_pattern = _by_words if "(?P<words>" in opens else _by_groups
    return Shape(
        kind=kind,
        opens=re.compile(opens),
        adds=re.compile(adds) if adds else None,
        takes=re.compile(takes) if takes else None,
        heads=re.compile(heads) if heads else None,
        part=part,
        wants_heading=wants_heading,
        yields_to=frozenset(yields_to),
        numbers=_one if one else by_pattern,
    )


_TIME = r"\d[\d.,:]* ?(?:ms|m|s|us|ns|secs?|seconds?|minutes?)?"
_PYTEST = r"\d+ (?:subtests )?[a-z]+"
_PYTEST_RAN = r"\b(?:passed|failed|skipped|deselected|xfailed|xpassed)\b"

SHAPES: tuple[Shape, ...] = (
    _shape(
        "pytest",
        rf"=*\s*(?=.*{_PYTEST_RAN})(?P<words>{_PYTEST}(?:, {_PYTEST})*) in {_TIME}\b.*$",
    ),
    _shape(
        "pytest",
        rf"=*\s*(?:no tests (?:ran|collected).*|\d+(?:/\d+)? tests? collected.*) in {_TIME}\b.*$",
    ),
    _shape(
        "unittest",
        r"Ran (?P<p>\d+) tests? in \d[\d.]*s$",
        takes=r"(?:OK|FAILED|PASSED|NO TESTS RAN) \(.*?\bskip(?:ped|s)=(\d+)",
    ),
    _shape("stestr", r" - Passed: (?P<p>\d+)$", adds=r" - Failed: (\d+)$"),
    _shape("jest", r"\s*Tests:\s+(?P<words>(?:\d+ [a-z]+, )*\d+ total)$"),
    _shape("pest", r"\s*Tests:\s+(?P<words>\d+ [a-z]+(?:, \d+ [a-z]+)*) \(\d+ assertions?\)$"),
    _shape("vitest", r"\s*Tests\s+(?P<words>\d+ [a-z]+(?: \| \d+ [a-z]+)*) \(\d+\)$"),
    _shape("vitest", r"\s*Tests\s+no tests$"),
    _shape("jest", r"(?:[A-Z]\w*: )?No tests? (?:files )?found(?:!|\.|,|$)(?!.*\bRunning only\b)"),
    _shape(
        "playwright",
        r"Running (?P<p>\d+) tests? using \d+ workers?",
        takes=r"\s+(\d+) (?:skipped|did not run|interrupted)$",
    ),
    _shape("mocha", r"\s*(?P<p>\d+) passing\b(?: \(.*\))?$", adds=r"\s*(\d+) failing$"),
    _shape(
        "ava",
        r"\s+(?:[✔✖] )?(?P<p>\d+) tests? passed$",
        adds=r"\s+(?:[✔✖] )?(\d+) (?:tests?|known) fail\w*$",
    ),
    _shape("ava", r"\s+(?:✖|✘) (?:No tests found|Couldn.t find any files to test)"),
    _shape("ava-skipped", r"\s+(?:[✔✖] )?(?P<s>\d+) tests? (?:skipped|todo)$", yields_to=("ava",)),
    _shape(
        "node",
        r"[#\u2139] tests +(?P<p>\d+)$",
        takes=r"[#\u2139] (?:skipped|cancelled|todo|skip) +(\d+)$",
    ),
    _shape("node-tap", r"\s*(?:#\s*)?Asserts:\s+(?P<p1>\d+) pass\s+(?P<p2>\d+) fail"),
    _shape(
        "cargo",
        r"test result: \w+\. (?P<p1>\d+) passed; (?P<p2>\d+) failed;(?: (?P<s>\d+) ignored)?",
        heads=r"\s+Running (?:unittests )?(\S+) \((?:\S*/)?(\S+)-[0-9a-f]+\)$|\s+Doc-tests (\S+)$",
        part=True,
    ),
    _shape("nextest", r"\s*Summary \[\s*[\d.]+s\]\s+(?P<p>\d+)(?:/\d+)? tests? run:", part=False),
    _shape("nextest", r"(?:error|warning): no tests to run$"),
    _shape(
        "gotestsum",
        r"(?:=* ?)DONE(?: \d+ runs,)? (?P<p>\d+) tests?(?:, (?P<m>\d+) skipped)?.* in [\d.]+s",
    ),
    _shape(
        "surefire",
        (
            r"(?:\[\w+\] )?Tests run: (?P<p>\d+), Failures: \d+, Errors: \d+"
            r"(?:, Skipped: (?P<m>\d+))?$"
        ),
    ),
    _shape("surefire", r"(?:\[\w+\] )?No tests to run\.?$", part=True),
    _shape(
        "junit",
        (
            r"\s*(?:\[\w+\] )*Tests run: (?P<p>\d+), Failures: \d+, Errors: \d+"
            r"(?:, Skipped: (?P<m>\d+))?, Time elapsed:"
        ),
        part=True,
        yields_to=("surefire",),
    ),
    _shape("gradle", r"> Task (?P<name>:\S*[tT]est) NO-SOURCE$", part=True),
    _shape(
        "gradle",
        r"> Task (?P<name>:\S*[tT]est)(?: UP-TO-DATE| FROM-CACHE| FAILED)?$",
        part=True,
        one=True,
    ),
    _shape(
        "gradle",
        r"(?P<p>\d+) tests? completed(?:, \d+ failed)?(?:, (?P<m>\d+) skipped)?$",
    ),
    _shape(
        "gradle",
        r"(?:SUCCESS|FAILURE): Executed (?P<p>\d+) tests? in .*?(?:\((?P<m>\d+) skipped\))?$",
    ),
    _shape(
        "rspec",
        r"(?P<p>\d+) examples?, \d+ failures?(?:, \d+ errors?)?(?:, (?P<m>\d+) pending)?(?:,.*)?$",
    ),
    _shape(
        "minitest",
        (
            r"(?P<p>\d+) (?:runs|tests), \d+ assertions, \d+ failures, \d+ errors"
            r"(?:, (?P<m1>\d+) (?:skips|pendings))?(?:, (?P<m2>\d+) omissions)?(?:,.*)?$"
        ),
    ),
    _shape("phpunit", r"OK \((?P<p>\d+) tests?, \d+ assertions?\)$"),
    _shape(
        "phpunit",
        (
            r"Tests: (?P<p>\d+), Assertions: \d+(?:, (?!Skipped|Incomplete)[A-Z][\w ]*: \d+)*"
            r"(?:, Skipped: (?P<m1>\d+))?(?:, Incomplete: (?P<m2>\d+))?(?:, [A-Z][\w ]*: \d+)*\.$"
        ),
    ),
    _shape("phpunit", r"No tests executed!$"),
    _shape(
        "dotnet",
        r"\s*(?:Passed|Failed|Skipped)!\s+- Failed:\s+(?P<p1>\d+), Passed:\s+(?P<p2>\d+), Skipped:",
    ),
    _shape("dotnet", r"\s*Total tests: (?P<p>\d+)$", takes=r"\s+Skipped: (\d+)$"),
    _shape(
        "dotnet",
        (
            r"\s*(?:Test (?:run )?summary: )?total: (?P<p>\d+), failed: \d+, succeeded: \d+, "
            r"skipped: (?P<m>\d+)"
        ),
    ),
    _shape(
        "dotnet",
        r"\s+total: (?P<p>\d+)$",
        takes=r"\s+skipped: (\d+)$",
        heads=r"Test run (summary):",
        wants_heading=True,
    ),
    _shape("dotnet", r"\s*No test (?:is available in|matches the given)\b", part=True),
    _shape(
        "ctest",
        r"\d+% tests passed, \d+ tests? failed out of (?P<p>\d+)$",
        takes=r"\s*\d+ - .* \((?:Skipped|Disabled|Not Run)\)$",
    ),
    _shape("ctest", r"No tests were found!!!$"),
    _shape(
        "gtest",
        r"\[=+\] (?P<p>\d+) tests? from \d+ test (?:suites?|cases?) ran\.",
        takes=r"\[  SKIPPED \] (\d+) tests?, listed below:$",
    ),
    _shape("catch2", r"All tests passed \(\d+ assertions? in (?P<p>\d+) test cases?\)$"),
    _shape(
        "catch2",
        r"(?:\[doctest\] )?test cases:\s+\d+ \|\s+(?P<p1>\d+) passed(?: \|\s+(?P<p2>\d+) failed)?",
    ),
    _shape("catch2", r"No tests ran$"),
    _shape("meson", r"Ok:\s+(?P<p>\d+)$", adds=r"(?:Fail|Expected Fail|Unexpected Pass):\s+(\d+)$"),
    _shape("bazel", r"Executed \d+ out of (?P<p>\d+) tests?[:.]", part=False),
    _shape("bazel", r"(?:ERROR: )?No test targets were found"),
    _shape(
        "exunit",
        (
            r"(?:\d+ doctests?, )?(?:\d+ propert(?:y|ies), )?(?P<p>\d+) tests?, \d+ failures?"
            r"(?:, \d+ (?:invalid|excluded))*(?:, (?P<m>\d+) skipped)?(?: \(.*\))?$"
        ),
    ),
    _shape("exunit", r"There are no tests to run$"),
    _shape(
        "xctest",
        r"\s*Executed (?P<p>\d+) tests?, with (?:(?P<m>\d+) tests? skipped and )?\d+ failures?",
        heads=r"Test Suite '(All tests|Selected tests)' (?:passed|failed)",
        wants_heading=True,
        part=True,
    ),
    _shape("swift", r"\S+\s+Test run with (?P<p>\d+) tests?(?: in \d+ suites?)? (?:passed|failed)"),
    _shape("deno", r"(?:ok|FAILED) \| (?P<p1>\d+) passed(?: \(.*?\))? \| (?P<p2>\d+) failed"),
    _shape("deno", r"error: No test modules found"),
    _shape("bun", r"\s*(?P<p>\d+) pass$", adds=r"\s*(\d+) fail$"),
    _shape("bun-none", r"Ran (?P<p>0) tests across", yields_to=("bun",)),
    _shape(
        "karma",
        r".*\bExecuted (?P<p>\d+) of (?:(?P=p)\b|\d+ \(skipped \d+\)).*\(.*secs",
    ),
    _shape("jasmine", r"(?P<p>\d+) specs?, \d+ failures?(?:, (?P<m>\d+) pending specs?)?$"),
    _shape("jasmine", r"Incomplete: No specs found"),
    _shape("dart", r"\d\d:\d\d \+(?P<p1>\d+)(?: ~\d+)?(?: -(?P<p2>\d+))?: (?:All|Some) tests \w+"),
    _shape("dart", r"No tests ran\.$"),
    _shape("scalatest", r"(?:\[\w+\] )?Tests: succeeded (?P<p1>\d+), failed (?P<p2>\d+),"),
    _shape(
        "sbt",
        r"(?:\[\w+\] )?(?:Passed|Failed): Total (?P<p>\d+),.*?(?:, Skipped (?P<m>\d+))?$",
        yields_to=("scalatest",),
    ),
    _shape("sbt", r"(?:\[\w+\] )?No tests were executed", part=True),
    _shape("tasty", rf"(?:All )?(?P<p>\d+) tests? passed \({_TIME}\)$"),
    _shape("tasty", r"\d+ out of (?P<p>\d+) tests failed"),
    _shape("zig", r"All (?P<p>\d+) tests passed\.$"),
    _shape("zig", r"Build Summary: .*\b(?P<p>\d+)/\d+ tests passed"),
    _shape("clojure", r"Ran (?P<p>\d+) tests? containing \d+ assertions?\.$"),
    _shape("testthat", r"\[ FAIL (?P<p1>\d+) \| WARN \d+ \| SKIP \d+ \| PASS (?P<p2>\d+) \]$"),
    _shape("prove", r"Files=\d+, Tests=(?P<p>\d+),"),
    _shape(
        "busted",
        r"(?P<p1>\d+) success(?:es)? / (?P<p2>\d+) failures? / (?P<p3>\d+) errors? / \d+ pending",
    ),
    _shape(
        "robot", r"(?P<p>\d+) tests?, \d+ passed, \d+ failed(?:, (?P<m>\d+) skipped)?$", part=True
    ),
    _shape("behave", r"(?P<p1>\d+) scenarios? passed, (?P<p2>\d+) failed, \d+ skipped"),
    _shape("cucumber", r"0 scenarios$"),
    _shape(
        "cucumber",
        (
            r"\d+ scenarios? \((?:(?P<p1>\d+) failed(?:, )?)?(?:\d+ \w+, )*"
            r"(?:(?P<p2>\d+) passed)?.*\)$"
        ),
    ),
    _shape("alcotest", r"Test Successful in [\d.]+s\. (?P<p>\d+) tests? run\.$"),
)
"""Rows in the order they are tried; the first that matches a line wins."""


_QUANTIFIERS = frozenset("?*+{")


def literal(pattern: str) -> str:
    """The longest text that every matching line must contain; empty if there is none for sure."""
    runs, depth, at = [""], 0, 0
    while at < len(pattern):
        step = 2 if pattern[at] == "\\" else 1
        sign, at = pattern[at : at + step], at + step
        if sign == "[":
            sign, at = "", pattern.index("]", at + 1) + 1
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth == 0 and sign == "|":
            return ""
        plain = sign[-1:] if sign.isalnum() or sign == " " or _is_escaped_sign(sign) else ""
        optional = pattern[at : at + 1] in _QUANTIFIERS
        if depth == 0 and plain and not optional:
            runs[-1] += plain
        else:
            runs.append("")
    return max(runs, key=len)


def _is_escaped_sign(sign: str) -> bool:
    return len(sign) > 1 and not sign[1].isalnum()


TRIED: tuple[tuple[str, Shape], ...] = tuple(
    dict.fromkeys(
        (literal(pattern.pattern), shape)
        for shape in SHAPES
        for pattern in (shape.opens, shape.heads, shape.adds, shape.takes)
        if pattern is not None
    )
)
"""Each row with a text that its line must contain: most lines have none, and are skipped fast."""


class _Runner(Struct, frozen=True, kw_only=True):
    command: re.Pattern[str]
    code: int | None = None
    """The exit code for no tests."""
    says: re.Pattern[str] | None = None
    """Or the output for no tests."""
    unless: re.Pattern[str] | None = None
    """Output that shows it did find some."""


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
    """Whether a known runner says that it found no test."""
    return any(
        runner.command.search(command) and _says_so(runner, code, output) for runner in _RUNNERS
    )


def _says_so(runner: _Runner, code: int | None, output: str) -> bool:
    if runner.code is not None and code == runner.code:
        return True
    if runner.says is None or not runner.says.search(output):
        return False
    return runner.unless is None or not runner.unless.search(output)
