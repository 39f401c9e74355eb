"""A runner that found no test has proven nothing, whatever it exits with."""  # B2

import pytest

from windlass.adapters.checks.test_output import collected_nothing

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
