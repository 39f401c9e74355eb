"""`windlass init --try`: setup and checks run once in the sandbox, and the result is shown.

Issue 15, line 16. Real boxes; nothing is left behind.
"""

import shutil

import pytest

from desk import Desk

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def test_what_works_is_said_and_written(desk: Desk):
    desk.commit("Makefile", "test:\n\t@grep -q hello README.md && echo fine\n")
    head = desk.git("rev-parse", "HEAD")[:10]
    answer = desk.call("init", "--try", "--yes")
    assert (answer.code, answer.err) == (0, "")
    shown = lines(answer.out)
    began = f"Trying the commands on a checkout of {head}, in the sandbox bwrap:"
    assert shown[shown.index(began) + 1] == "check  make test"
    assert shown[shown.index(began) + 2].startswith("works, ")
    assert "1 of 1 command worked." in shown
    written = (desk.repo / "windlass.toml").read_text()
    assert f"# All commands were tried on commit {head}, and worked." in written
    assert desk.git("for-each-ref", "refs/windlass") == ""
    assert list((desk.repo / ".windlass" / "plans").iterdir()) == []


def test_what_fails_is_shown_and_written_as_what_failed(desk: Desk):
    desk.commit("Makefile", "test:\n\t@seq 100; echo 'the reason'; exit 3\n")
    answer = desk.call("init", "--try", "--yes")
    assert answer.code == 1
    shown = lines(answer.out)
    assert any(line.startswith("failed with exit code 2, ") for line in shown)
    assert "the reason" in shown
    assert "5" not in shown, "only the end of long output is shown"
    assert "0 of 1 command worked." in shown
    text = (desk.repo / "windlass.toml").read_text()
    assert "# Does not work yet: it failed with exit code 2 when tried." in text


def test_without_a_terminal_it_tries_and_prints_but_does_not_write(desk: Desk):
    desk.commit("Makefile", "test:\n\ttrue\n")
    answer = desk.call("init", "--try")
    assert answer.code == 3
    assert "1 of 1 command worked." in lines(answer.out)
    assert not (desk.repo / "windlass.toml").exists()


SETTINGS = """\
checks = ["test -e made && test ! -e uncommitted", "no-such-program"]
[workspace]
setup = ["echo made > made", "test -e made"]
"""


def test_existing_settings_are_tried_and_nothing_is_written(desk: Desk):
    desk.write("windlass.toml", SETTINGS)
    desk.write("uncommitted", "x")
    before = (desk.repo / "windlass.toml").read_text()
    answer = desk.call("init", "--try")
    assert answer.code == 1
    shown = lines(answer.out)
    assert [line for line in shown if line.startswith(("setup", "check"))] == [
        "setup  echo made > made",
        "setup  test -e made",
        "check  test -e made && test ! -e uncommitted",
        "check  no-such-program",
    ]
    assert any(line.startswith("could not start (exit code 127), ") for line in shown)
    assert "3 of 4 commands worked." in shown
    assert (desk.repo / "windlass.toml").read_text() == before


def test_after_a_setup_that_fails_no_check_is_tried(desk: Desk):
    desk.write("windlass.toml", 'checks = ["true"]\n[workspace]\nsetup = ["exit 4", "true"]\n')
    answer = desk.call("init", "--try")
    assert answer.code == 1
    assert lines(answer.out)[-1] == "0 of 1 command worked; 1 check not tried."


def test_there_may_be_nothing_to_try(desk: Desk):
    desk.write("windlass.toml", "agents = 2\n")
    answer = desk.call("init", "--try")
    assert (answer.code, lines(answer.out)[-1]) == (
        0,
        "There is nothing to try: no setup and no checks.",
    )


def test_a_command_that_takes_too_long_is_ended(desk: Desk):
    desk.write("windlass.toml", 'check_timeout = 0.5\nchecks = ["sleep 600"]\n')
    assert any(each.startswith("took too long") for each in lines(desk.call("init", "--try").out))


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_a_host_that_setup_may_not_reach_is_named(desk: Desk):
    desk.write("windlass.toml", '[workspace]\nsetup = ["curl -fsS http://10.255.255.1/"]\n')
    shown = lines(desk.call("init", "--try").out)
    assert "network  refused: 10.255.255.1" in shown
    assert any("[sandbox] hosts" in line for line in shown)


def test_without_a_commit_there_is_nothing_to_try_it_on(desk: Desk):
    desk.git("checkout", "--quiet", "--orphan", "empty")
    desk.write("windlass.toml", 'checks = ["true"]\n')
    answer = desk.call("init", "--try")
    assert answer.code == 2
    assert "there is no commit to try the commands on; commit the project's files" in answer.err
