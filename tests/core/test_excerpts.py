"""The part of an output that matters is found by its structure; progress never is."""  # B16

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.excerpts import KEPT, excerpt, gist, indented

DOTS = "." * 70 + "F" + "." * 8

PYTEST = f"""\
{DOTS} [ 80%]
....... [100%]
=================================== FAILURES ===================================
__________________________________ test_total __________________________________

    def test_total():
>       assert total([1, 2]) == 4
E       assert 3 == 4

tests/test_cart.py:5: AssertionError
=============================== warnings summary ===============================
tests/test_cart.py::test_old
  a warning
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_total - assert 3 == 4
1 failed, 86 passed in 0.42s
"""
COLLECTING = """\
==================================== ERRORS ====================================
______________________ ERROR collecting tests/test_cart.py _____________________
E   ModuleNotFoundError: No module named 'cart'
"""
QUIET = """\
..F
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_total
"""
UNITTEST = """\
Creating test database...
..F.
======================================================================
FAIL: test_total (test_cart.Cart.test_total)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "test_cart.py", line 8, in test_total
    self.assertEqual(total([1, 2]), 4)
AssertionError: 3 != 4

----------------------------------------------------------------------
Ran 4 tests in 0.001s

FAILED (failures=1)
make: *** [Makefile:2: test] Error 1
"""
JEST = """\
PASS src/a.test.js
FAIL src/cart.test.js
  Cart
    ✕ adds up (3 ms)
    ✓ is empty

  ● Cart \u203a adds up

    expect(received).toBe(expected)

    Expected: 4
    Received: 3
PASS src/b.test.js

Tests:       1 failed, 7 passed, 8 total
npm ERR! Test failed.  See above for more details.
"""
VITEST = """\
 ✓ src/a.test.ts (3)
⎯⎯⎯⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯⎯⎯⎯
 FAIL  src/cart.test.ts > adds up
AssertionError: expected 3 to be 4
"""
MOCHA = """\
> mocha
  \u2024\u2024\u2024\u2024\u2024\u2024\u2024!\u2024\u2024

  8 passing (12ms)
  1 failing

  1) Cart
       adds up:
     AssertionError: expected 3 to equal 4
      at Context.<anonymous> (test/cart.js:7:12)
"""
NODE = """\
✔ is empty (0.4ms)
✖ adds up (1.2ms)
✖ failing tests:

test at test/cart.test.js:4:1
✖ adds up (1.2ms)
  AssertionError [ERR_ASSERTION]: 3 !== 4
"""
TAP = """\
TAP version 13
ok 1 - is empty
not ok 2 - later # TODO not yet
not ok 3 - adds up
  ---
  error: '3 !== 4'
  ...
ok 4 - goes on
1..4
"""
CARGO = """\
   Compiling cart v0.1.0
warning: unused variable: `x`
running 2 tests
test tests::empty ... ok
test tests::adds_up ... FAILED

failures:

---- tests::adds_up stdout ----
thread 'tests::adds_up' panicked at src/lib.rs:12:9:
assertion `left == right` failed
  left: 3
 right: 4

failures:
    tests::adds_up

test result: FAILED. 1 passed; 1 failed; 0 ignored
error: test failed, to rerun pass `--lib`
"""
RUSTC = """\
   Compiling cart v0.1.0
error[E0425]: cannot find value `x` in this scope
 --> src/lib.rs:3:5
  |
3 |     x
"""
GO = """\
ok  \texample.com/a\t0.002s
?   \texample.com/b\t[no test files]
--- FAIL: TestTotal (0.00s)
    cart_test.go:9: got 3, want 4
FAIL
FAIL\texample.com/cart\t0.003s
"""
GO_VERBOSE = """\
=== RUN   TestEmpty
--- PASS: TestEmpty (0.00s)
=== RUN   TestTotal
    cart_test.go:9: got 3, want 4
--- FAIL: TestTotal (0.00s)
FAIL
"""
GO_VET = """\
# example.com/cart
./cart.go:7:2: undefined: sum
FAIL\texample.com/cart [build failed]
"""
RSPEC = """\
..F

Failures:

  1) Cart adds up
     Failure/Error: expect(total).to eq(4)
"""
PHPUNIT = """\
PHPUnit 10.5

..F.                                                4 / 4 (100%)

There was 1 failure:

1) CartTest::testTotal
Failed asserting that 3 matches expected 4.
"""
MAVEN = """\
[INFO] Running CartTest
[ERROR] Tests run: 2, Failures: 1, Errors: 0 <<< FAILURE! -- in CartTest
[INFO] more
[ERROR]   CartTest.total:9 expected: <4> but was: <3>
"""
GRADLE = """\
> Task :test
CartTest > total() FAILED
    org.opentest4j.AssertionFailedError: expected: <4> but was: <3>
"""
MYPY = """\
checking
cart/total.py:3: error: Incompatible return value type  [return-value]
Found 1 error in 1 file (checked 4 source files)
"""
RUFF = """\
cart.py:1:8: F401 [*] `os` imported but unused
Found 1 error.
"""
RUFF_NEW = """\
F401 [*] `os` imported but unused
 --> cart.py:1:8
  |
1 | import os
"""
TSC = "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.\n"
TSC_PRETTY = "src/a.ts:3:5 - error TS2322: Type 'string' is not assignable.\n"
ESLINT = """\
> eslint .

/app/src/cart.js
  1:10  error  'x' is defined but never used  no-unused-vars

✖ 1 problem (1 error, 0 warnings)
"""
GCC = """\
gcc -c a.c
a.c:1:1: warning: old style
a.c:3:5: error: expected ';' before 'return'
"""
TRACEBACK = """\
INFO starting
Traceback (most recent call last):
  File "a.py", line 1, in <module>
KeyError: 'logged, and survived'
INFO going on
Traceback (most recent call last):
  File "b.py", line 2, in <module>
ValueError: first

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "b.py", line 4, in <module>
RuntimeError: last
"""
NODE_ERROR = """\
loading
Error: Cannot find module './cart'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1140:15)
"""
MAKE = """\
compiling
sh: 1: cc1: not found
make: *** [Makefile:4: cart.o] Error 127
another job goes on
"""


@pytest.mark.parametrize(
    ("output", "first", "has", "lacks"),
    [
        (PYTEST, "FAILURES", "FAILED tests/test_cart.py::test_total", "%]"),
        (COLLECTING, "ERRORS", "No module named 'cart'", ""),
        (QUIET, "short test summary info", "test_total", "..F"),
        (UNITTEST, "====", "AssertionError: 3 != 4", "make:"),
        (JEST, "● Cart \u203a adds up", "Received: 3", "npm ERR"),
        (JEST, "● Cart \u203a adds up", "1 failed, 7 passed", "PASS src/b"),
        (VITEST, "Failed Tests 1", "expected 3 to be 4", "✓"),
        (MOCHA, "1 failing", "expected 3 to equal 4", "\u2024\u2024"),
        (NODE, "✖ failing tests:", "3 !== 4", "is empty"),
        (TAP, "not ok 3 - adds up", "error: '3 !== 4'", "goes on"),
        (CARGO, "failures:", "left: 3", "Compiling"),
        (RUSTC, "error[E0425]", "src/lib.rs:3:5", "Compiling"),
        (GO, "--- FAIL: TestTotal", "got 3, want 4", "example.com/a"),
        (GO_VERBOSE, "    cart_test.go:9", "--- FAIL: TestTotal", "TestEmpty"),
        (GO_VET, "./cart.go:7:2", "build failed", "# example.com"),
        (RSPEC, "Failures:", "expect(total).to eq(4)", "..F"),
        (PHPUNIT, "There was 1 failure:", "Failed asserting", "4 / 4"),
        (MAVEN, "[ERROR] Tests run: 2", "CartTest.total:9", "[INFO]"),
        (GRADLE, "CartTest > total() FAILED", "expected: <4>", "Task"),
        (MYPY, "cart/total.py:3: error", "Found 1 error", "checking\n"),
        (RUFF, "cart.py:1:8: F401", "Found 1 error", ""),
        (RUFF_NEW, "F401 [*]", "import os", ""),
        (TSC, "src/a.ts(3,5)", "TS2322", ""),
        (TSC_PRETTY, "src/a.ts:3:5", "TS2322", ""),
        (ESLINT, "/app/src/cart.js", "no-unused-vars", "> eslint"),
        (GCC, "a.c:3:5: error", "expected ';'", "warning"),
        (TRACEBACK, "Traceback", "RuntimeError: last", "survived"),
        (NODE_ERROR, "Error: Cannot find module", "_resolveFilename", "loading"),
        (MAKE, "compiling", "cc1: not found", "another job"),
    ],
)
def test_the_section_of_each_runner_is_found(output: str, first: str, has: str, lacks: str):
    found = excerpt(output)
    assert first in found.splitlines()[0]
    assert has in found
    assert not lacks or lacks not in found
    colour = "\n".join(f"\x1b[31m{line}\x1b[0m" for line in output.splitlines())
    assert excerpt(colour) == found


def test_the_output_of_a_go_test_is_read_out_of_its_json():
    said = ["=== RUN   TestTotal\n", "    a_test.go:9: got 3\n", "--- FAIL: TestTotal (0.00s)\n"]
    events = [{"Action": "start", "Package": "p"}]
    events += [{"Action": "output", "Package": "p", "Output": text} for text in said]
    output = "\n".join(map(json.dumps, events))
    assert excerpt(output) == "    a_test.go:9: got 3\n--- FAIL: TestTotal (0.00s)"
    other = '{"level": "error"}\n{"broken\n{"list": [1]}'
    assert excerpt(other) == other


def test_without_a_section_the_end_is_shown_and_never_the_dots():
    output = "\n".join(["." * 80] * 50 + ["tests/test_a.py ....s..  [ 12%]", "the cause", ""])
    assert excerpt(output) == "the cause"
    assert excerpt("....\n..") == "..", "the last sign of life, if there is nothing else"
    assert excerpt("") == ""
    lines = [f"line {n}" for n in range(1000)]
    end = excerpt("\n".join(lines))
    assert end.endswith("line 998\nline 999")
    assert len(end) <= KEPT
    assert all(line in lines for line in end.splitlines()), "no line is cut"


def test_progress_that_was_written_over_is_gone():
    assert excerpt("10%\r50%\rall read\r\nfailed: no space\r\n") == "all read\nfailed: no space"
    assert excerpt("[====>      ] 3/9\nno route") == "no route"


def test_of_a_long_section_the_beginning_and_the_end_are_kept():
    middle = "\n".join(f"E   difference {n}" for n in range(5000))
    output = PYTEST.replace("E       assert 3 == 4", middle)
    found = excerpt(output)
    assert len(found) <= KEPT
    assert "FAILURES" in found.splitlines()[0]
    assert "difference 0\n" in found
    assert found.endswith("1 failed, 86 passed in 0.42s")
    assert " lines left out …" in found


def test_what_did_not_fail_ends_as_it_ends():
    assert excerpt(PYTEST, failed=False).splitlines()[-1] == "1 failed, 86 passed in 0.42s"
    assert excerpt(MAKE, failed=False).endswith("another job goes on")


def test_code_in_one_line_is_cut():
    [line] = excerpt("x" * 10_000).splitlines()
    assert line.endswith("x…")
    assert len(line) < 1000


def test_a_few_lines_say_what_failed():
    digest = gist(excerpt(PYTEST), 4)
    assert digest.lines == (
        "FAILED tests/test_cart.py::test_total - assert 3 == 4",
        "1 failed, 86 passed in 0.42s",
    )
    assert digest.left > 0
    head = gist(excerpt(MOCHA), 3)
    assert head.lines == ("  1 failing", "  1) Cart", "       adds up:")
    tail = gist("\n".join(map(str, range(10))), 3)
    assert tail.lines == ("7", "8", "9")
    assert tail.left == 7
    assert gist("one\n\n-----\ntwo", 3).lines == ("one", "two")


def test_a_block_is_indented():
    assert indented("a\n\nb") == "    a\n\n    b"


@given(st.text(max_size=3000), st.integers(400, 2000))
def test_an_excerpt_is_never_too_long_and_is_its_own_excerpt(text: str, most: int):
    found = excerpt(text, most)
    assert len(found) <= max(most, 600)
    assert "\x1b" not in found
    assert "\r" not in found
    gist(found, 5)


@given(st.lists(st.sampled_from([*PYTEST.splitlines(), *GO_VERBOSE.splitlines(), "x" * 300])))
def test_a_section_fits_too(lines: list[str]):
    assert len(excerpt("\n".join(lines), 900)) <= 900
