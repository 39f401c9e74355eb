"""How many tests ran is read from what a check prints, whatever started the runner."""  # B2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.adapters.checks.summaries import MOST_BYTES, MOST_SUITES, Tally
from windlass.adapters.checks.test_output import SHAPES, literal
from windlass.core.events.values import Suite

UNITTEST = "..\n----------------------------------------------------------------------\n"
NODE = "ok 1 - a\n1..1\n# tests 4\n# suites 0\n# pass 3\n# fail 1\n# cancelled 0\n# skipped 0\n"
CARGO = """\
     Running unittests src/lib.rs (target/debug/deps/mine-5e1f)

running 2 tests
test a ... ok
test b ... FAILED

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/more.rs (target/debug/deps/more-77aa)

running 3 tests
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests mine

running 0 tests

test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
GO = (
    "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/one (0.00s)\nPASS\n"
    "ok  \tex/a\t0.1s\n"
)
GO_JSON = """\
{"Time":"t","Action":"run","Package":"ex/a","Test":"TestA"}
{"Time":"t","Action":"output","Package":"ex/a","Test":"TestA","Output":"--- PASS: TestA (0.00s)\\n"}
{"Time":"t","Action":"pass","Package":"ex/a","Test":"TestA","Elapsed":0}
{"Time":"t","Action":"skip","Package":"ex/a","Test":"TestB","Elapsed":0}
{"Time":"t","Action":"pass","Package":"ex/a","Elapsed":0.1}
{"Time":"t","Action":"skip","Package":"ex/none","Elapsed":0}
"""
XCTEST = """\
Test Suite 'MyTests' passed at 2026-01-01 00:00:00.000.
\t Executed 3 tests, with 0 failures (0 unexpected) in 0.002 (0.003) seconds
Test Suite 'All tests' passed at 2026-01-01 00:00:00.000.
\t Executed 3 tests, with 1 test skipped and 0 failures (0 unexpected) in 0.002 (0.004) seconds
"""

OUTPUTS = {
    "pytest": ("....\n4 passed in 0.01s\n", 4, 0),
    "pytest, all words": ("=== 2 failed, 3 passed, 4 skipped, 1 xfailed in 12.30s ===\n", 6, 4),
    "pytest, deselected": ("== 1 passed, 2 deselected in 0.1s ==\n", 1, 0),
    "pytest, all deselected": ("2 deselected in 0.01s\n", 0, 0),
    "pytest, all skipped": ("=== 7 skipped in 0.10s ===\n", 0, 7),
    "pytest, minutes": ("== 5 passed, 1 warning in 61.00s (0:01:01) ==\n", 5, 0),
    "pytest, subtests": ("2 passed, 9 subtests passed in 0.02s\n", 2, 0),
    "pytest, none": ("no tests ran in 0.01s\n", 0, 0),
    "pytest, only collected": ("========== 3 tests collected in 0.02s ==========\n", 0, 0),
    "pytest, some collected": ("1/3 tests collected (2 deselected) in 0.02s\n", 0, 0),
    "pytest, coloured": (
        "\x1b[32m\x1b[32m\x1b[1m3 passed\x1b[0m, \x1b[33m1 skipped\x1b[0m\x1b[32m in 0.03s\x1b[0m",
        3,
        1,
    ),
    "pytest-xdist": ("bringing up nodes...\n.... [100%]\n4 passed in 1.42s\n", 4, 0),
    "tox": ("py311: commands[0]> pytest -q\n3 passed in 0.10s\n  py311: OK (1.2 seconds)\n", 3, 0),
    "unittest": (UNITTEST + "Ran 5 tests in 0.001s\n\nOK (skipped=2)\n", 3, 2),
    "unittest, all skipped": (UNITTEST + "Ran 2 tests in 0.000s\n\nOK (skipped=2)\n", 0, 2),
    "unittest, failed": (UNITTEST + "Ran 3 tests in 0.001s\n\nFAILED (failures=1)\n", 3, 0),
    "unittest, none": ("\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n", 0, 0),
    "unittest, a class that skips itself": (
        "Ran 0 tests in 0.0s\n\nNO TESTS RAN (skipped=1)\n",
        0,
        1,
    ),
    "nose2": ("..\nRan 2 tests in 0.000s\n\nOK\n", 2, 0),
    "trial": ("Ran 3 tests in 0.010s\n\nPASSED (skips=1, successes=2)\n", 2, 1),
    "stestr": (
        "======\nTotals\n======\nRan: 4 tests in 0.1 sec.\n - Passed: 3\n - Failed: 1\n",
        4,
        0,
    ),
    "jest": ("Tests:       1 failed, 2 skipped, 3 passed, 6 total\n", 4, 2),
    "jest, coloured": (
        "\x1b[1mTests:       \x1b[22m\x1b[1m\x1b[32m3 passed\x1b[39m\x1b[22m, 3 total\n",
        3,
        0,
    ),
    "jest, empty": ("Tests:       0 total\n", 0, 0),
    "jest, none": ("No tests found, exiting with code 0\n", 0, 0),
    "vitest": (
        " Test Files  1 passed (1)\n      Tests  1 failed | 3 passed | 2 skipped (6)\n",
        4,
        2,
    ),
    "vitest, skipped": (" Test Files  1 skipped (1)\n      Tests  3 skipped (3)\n", 0, 3),
    "vitest, none": ("\n Test Files  no tests\n      Tests  no tests\n", 0, 0),
    "vitest, no files": ("No test files found, exiting with code 0\n", 0, 0),
    "playwright": ("Running 5 tests using 2 workers\n\n  1 skipped\n  4 passed (2.1s)\n", 4, 1),
    "mocha": ("  12 passing (1s)\n  2 pending\n  1 failing\n", 13, 0),
    "mocha, none": ("\n\n  0 passing (1ms)\n\n", 0, 0),
    "ava": ("  ─\n\n  3 tests passed\n  1 test skipped\n", 3, 0),
    "ava, all skipped": ("  ─\n\n  2 tests skipped\n", 0, 2),
    "node, tap": (NODE, 4, 0),
    "node, spec": (
        "\u2139 tests 3\n\u2139 suites 0\n\u2139 pass 2\n\u2139 fail 0\n\u2139 skipped 1\n",
        2,
        1,
    ),
    "node, none": ("TAP version 13\n1..0\n# tests 0\n# suites 0\n# pass 0\n", 0, 0),
    "tape": ("TAP version 13\n# a\nok 1 x\nok 2 y\n\n1..2\n# tests 2\n# pass  2\n", 2, 0),
    "tap": ("1..3\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP no network\n", 2, 1),
    "tap, none": ("1..0 # SKIP nothing to do\n", 0, 0),
    "prove": ("t/a.t .. ok\nAll tests successful.\nFiles=1, Tests=3,  0 wallclock secs\n", 3, 0),
    "bats": ("a.bats\n ✓ one\n\n2 tests, 0 failures, 1 skipped\n", 1, 1),
    "cargo": (CARGO, 4, 1),
    "cargo, none": ("running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored;\n", 0, 0),
    "cargo, ignored": (
        "running 2 tests\n\ntest result: ok. 0 passed; 0 failed; 2 ignored;\n",
        0,
        2,
    ),
    "nextest": ("     Summary [   0.012s] 3 tests run: 3 passed, 1 skipped\n", 3, 0),
    "nextest, none": ("    Starting 0 tests across 0 binaries\nerror: no tests to run\n", 0, 0),
    "go": ("ok  \tex/a\t0.1s\n?   \tex/b\t[no test files]\nok  \tex/c\t(cached)\n", 2, 0),
    "go, verbose": (GO, 2, 0),
    "go, all skipped": ("=== RUN   TestA\n--- SKIP: TestA (0.0s)\nPASS\nok  \tex/a\t0.1s\n", 0, 1),
    "go, json": (GO_JSON, 1, 1),
    "go, no files": ("?   \tex/a\t[no test files]\n?   \tex/b\t[no test files]\n", 0, 0),
    "go, none to run": ("ok  \tex/a\t0.1s [no tests to run]\n", 0, 0),
    "go, coverage": ("\tex/a\t\tcoverage: 0.0% of statements\n", 0, 0),
    "gotestsum": ("✓  ex/a (10ms)\n\nDONE 5 tests, 1 skipped in 0.123s\n", 4, 1),
    "surefire": (
        (
            "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in A\n"
            "[INFO] Results:\n[INFO]\n"
            "[WARNING] Tests run: 5, Failures: 0, Errors: 0, Skipped: 1\n"
        ),
        4,
        1,
    ),
    "surefire, none": ("[INFO] --- surefire:3.2.5:test @ a ---\n[INFO] No tests to run.\n", 0, 0),
    "ant": (
        "    [junit] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.1 sec\n",
        2,
        1,
    ),
    "gradle": ("> Task :app:compileTestJava\n> Task :app:test\n\nBUILD SUCCESSFUL in 2s\n", 1, 0),
    "gradle, none": (
        "> Task :compileTestJava NO-SOURCE\n> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s\n",
        0,
        0,
    ),
    "gradle, failed": ("3 tests completed, 1 failed, 1 skipped\n", 2, 1),
    "rspec": ("Finished in 0.01 seconds\n3 examples, 0 failures, 1 pending\n", 2, 1),
    "rspec, none": ("No examples found.\n\n0 examples, 0 failures\n", 0, 0),
    "minitest": ("3 runs, 5 assertions, 0 failures, 0 errors, 1 skips\n", 2, 1),
    "test-unit": (
        "3 tests, 5 assertions, 0 failures, 0 errors, 1 pendings, 1 omissions, 0 notifications\n",
        1,
        2,
    ),
    "phpunit": ("OK (3 tests, 5 assertions)\n", 3, 0),
    "phpunit, skipped": (
        "OK, but some tests were skipped!\nTests: 3, Assertions: 0, Skipped: 3.\n",
        0,
        3,
    ),
    "phpunit, failed": ("FAILURES!\nTests: 3, Assertions: 5, Failures: 1, Skipped: 1.\n", 2, 1),
    "phpunit, none": ("No tests executed!\n", 0, 0),
    "pest": ("\n  Tests:    1 skipped, 2 passed (2 assertions)\n  Duration: 0.1s\n", 2, 1),
    "dotnet": (
        "Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 5 ms\n",
        3,
        0,
    ),
    "dotnet, skipped": (
        "Skipped! - Failed:     0, Passed:     0, Skipped:     2, Total:     2, Duration: 5 ms\n",
        0,
        0,
    ),
    "dotnet, summary": (
        "Test summary: total: 3, failed: 0, succeeded: 2, skipped: 1, duration: 1.2s\n",
        2,
        1,
    ),
    "dotnet, lines": ("Test run summary: Passed!\n  total: 3\n  failed: 0\n  skipped: 1\n", 2, 1),
    "dotnet, old": ("Total tests: 3\n     Passed: 2\n    Skipped: 1\n", 2, 1),
    "dotnet, none": ("No test is available in /x/y.dll. Make sure that\n", 0, 0),
    "ctest": ("100% tests passed, 0 tests failed out of 3\n", 3, 0),
    "ctest, skipped": (
        (
            "100% tests passed, 0 tests failed out of 2\n\nTotal Test time (real) =   0.01 sec\n\n"
            "The following tests did not run:\n\t  1 - a (Skipped)\n\t  2 - b (Disabled)\n"
        ),
        0,
        2,
    ),
    "ctest, none": ("No tests were found!!!\n", 0, 0),
    "gtest": (
        (
            "[==========] 3 tests from 1 test suite ran. (0 ms total)\n[  PASSED  ] 2 tests.\n"
            "[  SKIPPED ] 1 test, listed below:\n"
        ),
        2,
        1,
    ),
    "catch2": ("All tests passed (5 assertions in 3 test cases)\n", 3, 0),
    "doctest": ("[doctest] test cases:  3 |  2 passed | 1 failed | 0 skipped\n", 3, 0),
    "meson": ("Ok:                 3\nExpected Fail:      0\nFail:               1\n", 4, 0),
    "bazel": ("Executed 1 out of 3 tests: 3 tests pass.\n", 3, 0),
    "exunit": ("\nFinished in 0.1 seconds\n1 doctest, 3 tests, 0 failures, 1 skipped\n", 2, 1),
    "exunit, none": ("There are no tests to run\n", 0, 0),
    "xctest": (XCTEST, 2, 1),
    "swift testing": ("✔ Test run with 3 tests in 1 suite passed after 0.001 seconds.\n", 3, 0),
    "swift, both": (
        XCTEST.replace("3 tests", "0 tests").replace("1 test skipped and ", "")
        + "✔ Test run with 3 tests passed after 0.001 seconds.\n",
        3,
        0,
    ),
    "deno": ("ok | 3 passed (2 steps) | 0 failed | 1 ignored (5ms)\n", 3, 0),
    "deno, none": ("error: No test modules found\n", 0, 0),
    "bun": (" 3 pass\n 1 skip\n 1 fail\nRan 5 tests across 1 file. [5.00ms]\n", 4, 0),
    "bun, none": (" 0 pass\n 0 fail\nRan 0 tests across 1 file. [5.00ms]\n", 0, 0),
    "karma": (
        (
            "Chrome: Executed 1 of 3 SUCCESS (0 secs / 0.01 secs)\r"
            "Chrome: Executed 3 of 3 SUCCESS (0.1 secs / 0.01 secs)\n"
        ),
        3,
        0,
    ),
    "jasmine": ("3 specs, 0 failures, 1 pending spec\n", 2, 1),
    "dart": ("00:00 +1: a\n00:01 +3 ~1: All tests passed!\n", 3, 0),
    "scalatest": (
        (
            "[info] Tests: succeeded 3, failed 0, canceled 0, ignored 0, pending 0\n"
            "[info] Passed: Total 3, Failed 0, Errors 0, Passed 3\n"
        ),
        3,
        0,
    ),
    "tasty": ("All 3 tests passed (0.00s)\n", 3, 0),
    "clojure": ("Ran 3 tests containing 5 assertions.\n0 failures, 0 errors.\n", 3, 0),
    "testthat": ("[ FAIL 0 | WARN 0 | SKIP 1 | PASS 3 ]\n", 3, 0),
    "busted": ("3 successes / 0 failures / 0 errors / 1 pending : 0.01 seconds\n", 3, 0),
    "behave": (
        "1 feature passed, 0 failed, 0 skipped\n3 scenarios passed, 0 failed, 1 skipped\n",
        3,
        0,
    ),
    "cucumber": ("3 scenarios (1 failed, 2 passed)\n9 steps (9 passed)\n", 3, 0),
    "cucumber, none": ("0 scenarios\n0 steps\n", 0, 0),
    "two suites": ("3 passed in 1s\n\n> web\n> jest\n\nTests:       2 passed, 2 total\n", 5, 0),
    "turbo": ("web:test:  Tests  3 passed (3)\napi:test: 4 passed in 0.10s\n", 7, 0),
    "pnpm": ("packages/web test: Tests:       2 passed, 2 total\n", 2, 0),
    "compose": ("test-1  | 4 passed in 0.10s\n", 4, 0),
    "Windows": ("4 passed in 0.01s\r\n", 4, 0),
}


def suites_in(output: str) -> tuple[Suite, ...]:
    """The summaries in a complete output."""
    tally = Tally()
    tally.feed(output.encode(errors="replace"))
    return tally.suites()


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"Ran (?P<p>\d+) tests? in \d[\d.]*s$", " test"),
        (r"=*\s*(?:no tests|x) in \d", " in "),
        (r"a|bc", ""),
        (r"(?:a|b)", ""),
        (r"[#] tests +(?P<p>\d+)$", " tests"),
        (r"\[=+\] (?P<p>\d+)", "] "),
        (r"\s*ok\.$", "ok."),
    ],
)
def test_what_a_pattern_cannot_do_without(pattern: str, text: str):
    assert literal(pattern) == text


def test_a_row_is_only_passed_over_where_it_cannot_match():
    """Every row of the table is reached by some output here, through its text."""
    for shape in SHAPES:
        outputs = [line for output, _, _ in OUTPUTS.values() for line in output.splitlines()]
        matching = [line for line in outputs if shape.opens.match(line)]
        assert all(literal(shape.opens.pattern) in line for line in matching)


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_known_summary_is_counted(name: str):
    output, tests, skipped = OUTPUTS[name]
    suites = suites_in(output)
    assert suites, "it says something about tests"
    assert sum(suite.tests for suite in suites) == tests
    assert sum(suite.skipped for suite in suites) == skipped


@pytest.mark.parametrize(
    "output",
    [
        "",
        "all is well\n",
        "Success: no issues found in 12 source files\n",
        "All checks passed!\n",
        "12 files already formatted\n",
        "8 modules transformed in 1.2s\n",
        "compiled with 2 warnings in 500 ms\n",
        "added 50 packages in 2s\n",
        "Ran 0 tests in \n",
        "tests 0\n",
        "ok\n",
        '{"a": [1, 2]}\n{"broken\n',
        "tests: 0 errors\n",
        "\t Executed 0 tests, with 0 failures (0 unexpected) in 0.0 (0.0) seconds\n",
    ],
)
def test_what_is_no_summary_says_nothing(output: str):
    assert suites_in(output) == ()


def test_a_zero_stays_beside_a_larger_number():
    """A tree can print what it likes: that hides nothing that a runner said."""
    forged = "900 passed in 1.00s\n"
    for real in ("no tests ran in 0.01s\n", "3 skipped in 0.01s\n", "1 passed in 0.01s\n"):
        least = sum(suite.tests for suite in suites_in(real))
        for output in (forged + real, real + forged):
            assert min(suite.tests for suite in suites_in(output)) == least


def test_parts_are_told_by_name():
    assert [(suite.name, suite.tests) for suite in suites_in(CARGO)] == [
        ("cargo src/lib.rs mine", 2),
        ("cargo tests/more.rs more", 2),
    ]
    twice = "ok  \tex/a\t0.1s\n?   \tex/a\t[no test files]\nok  \tex/b\t0.1s\n"
    assert [suite.name for suite in suites_in(twice)] == ["go ex/b"], "the less counts"
    named = "web:test:  Tests  3 passed (3)\n12:00:01: 4 passed in 0.10s\n"
    assert [suite.name for suite in suites_in(named)] == ["vitest web:test", "pytest"]


def test_nothing_forged_makes_up_for_a_part_that_ran_none():
    """A part that is told with tests and without is kept twice, for the gate to see."""
    real = "     Running unittests src/lib.rs (target/debug/deps/mine-5e1f)\ntest result: ok. {};\n"
    output = real.format("900 passed; 0 failed") + real.format("0 passed; 0 failed")
    assert [suite.tests for suite in suites_in(output)] == [900, 0]
    gradle = "> Task :test\n> Task :test NO-SOURCE\n"
    assert [suite.tests for suite in suites_in(gradle)] == [1, 0]
    maven = "No tests to run.\nTests run: 900, Failures: 0, Errors: 0, Skipped: 0\n"
    assert [(s.tests, s.part) for s in suites_in(maven)] == [(900, False), (0, True)]
    tap = "1..0 # SKIP\nok 1 - x\nok 2 - y\n"
    assert [suite.tests for suite in suites_in(tap)] == [0]
    assert sorted(suite.tests for suite in suites_in(f"{tap}1..2\n")) == [0, 2]


@pytest.mark.parametrize(
    "output",
    [
        "  0 passing (1ms)\n  900 failing\n",
        " 0 pass\n 900 fail\nRan 0 tests across 1 file.\n",
        "Ok:                 0\nFail:             900\n",
        " - Passed: 0\n - Failed: 900\n",
    ],
)
def test_a_check_that_passed_has_no_failed_tests(output: str):
    tally = Tally()
    tally.feed(output.encode())
    assert [suite.tests for suite in tally.suites(green=True)] == [0]


def test_very_many_parts_are_one_sum_in_the_end():
    lines = "".join(f"ok  \tex/{n:04}\t0.1s\n" for n in range(MOST_SUITES + 50))
    suites = suites_in(lines)
    assert len(suites) == MOST_SUITES
    assert sum(suite.tests for suite in suites) == MOST_SUITES + 50


def test_of_an_endless_output_the_end_is_read():
    tally = Tally()
    line = b"x" * 999 + b"\n"
    for _ in range(MOST_BYTES // 1_000_000 + 1):
        tally.feed(line * 1000)
    tally.feed(b"9 passed in 1s\n")
    assert tally.suites("cut off\n3 skipped in 0.1s\n")[0].tests == 0


@given(st.sampled_from(sorted(OUTPUTS)), st.lists(st.integers(1, 40), max_size=30))
def test_it_does_not_matter_in_which_pieces_it_comes(name: str, sizes: list[int]):
    data = OUTPUTS[name][0].encode()
    tally, rest = Tally(), data
    for size in sizes:
        tally.feed(rest[:size])
        rest = rest[size:]
    tally.feed(rest)
    assert tally.suites() == suites_in(data.decode())


@given(st.text())
def test_nothing_that_is_printed_breaks_it(output: str):
    assert all(suite.tests >= 0 for suite in suites_in(output))
