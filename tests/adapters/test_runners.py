"""A runner that found no test has proven nothing, whatever it exits with."""  # B2

import pytest

from windlass.adapters.runners import collected_nothing, how_many_ran

CARGO = "running 0 tests\n\ntest result: ok. 0 passed\n"


@pytest.mark.parametrize(
    ("command", "code", "output"),
    [
        ("pytest -q", 5, ""),
        (".venv/bin/python -m pytest", 5, "no tests ran in 0.01s"),
        ("python3 -m unittest -q", 0, "\nRan 0 tests in 0.000s\n\nOK\n"),
        ("python3 -m unittest", 5, "NO TESTS RAN"),
        (
            "go test ./...",
            0,
            "?   \texample/a\t[no test files]\n?   \texample/b\t[no test files]\n",
        ),
        ("go test ./...", 0, "ok  \texample\t0.1s [no tests to run]\n"),
        ("cargo test", 0, CARGO + CARGO),
        ("node --test", 0, "# tests 0\n# pass 0\n"),
        ("npx vitest run", 1, "No test files found, exiting with code 1\n"),
        ("npm test", 1, "No tests found, exiting with code 1\n"),
    ],
)
def test_nothing_was_collected(command, code, output):
    assert collected_nothing(command, code, output)


@pytest.mark.parametrize(
    ("command", "code", "output"),
    [
        ("pytest -q", 0, "3 passed"),
        ("pytest -q", 1, "1 failed"),
        ("make test", 5, ""),
        ("python3 -m unittest -q", 0, "Ran 3 tests in 0.001s\n\nOK\n"),
        ("go test ./...", 0, "?   \ta\t[no test files]\nok  \tb\t0.2s\n"),
        ("cargo test", 0, "running 2 tests\n\ntest result: ok\n" + CARGO),
        ("node --test", 0, "# tests 10\n"),
        ("echo 'Ran 0 tests in '", 0, "Ran 0 tests in \n"),
    ],
)
def test_something_was(command, code, output):
    assert not collected_nothing(command, code, output)


@pytest.mark.parametrize(
    ("output", "number"),
    [
        ("....\n4 passed in 0.01s\n", 4),
        ("=== 2 failed, 3 passed, 4 skipped, 1 xfailed in 12.30s ===\n", 6),
        ("== 1 passed, 2 deselected in 0.1s ==\n", 1),
        ("=== 7 skipped in 0.10s ===\n", 0),
        ("== 5 passed, 1 warning in 61.00s (0:01:01) ==\n", 5),
        ("3 passed in 1s\nlater\n1 passed in 1s\n", 1),
        ("Ran 5 tests in 0.001s\n\nOK (skipped=2)\n", 3),
        ("test result: ok. 2 passed; 1 failed; 0 ignored\ntest result: ok. 3 passed; 0 failed;", 6),
        ("--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nok\n", 2),
        ("Tests:       1 failed, 2 skipped, 3 passed, 6 total\n", 4),
        (" Tests  3 passed (3)\n", 3),
        ("# tests 4\n# pass 3\n# fail 1\n", 4),
        ("  12 passing (1s)\n  1 failing\n", 13),
        ("all is well\n", None),
        ("", None),
    ],
)
def test_how_many_tests_ran(output, number):
    assert how_many_ran(output) == number
