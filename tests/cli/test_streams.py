"""Where output goes: a reader who has read enough, a full disk, a stream that somebody closed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from desk import Desk

WINDLASS = (sys.executable, "-m", "windlass")


def shell(desk: Desk, script: str) -> subprocess.CompletedProcess[str]:
    """A line of shell in which "$@" is windlass; what is said on stdout and stderr."""
    return subprocess.run(
        ["sh", "-c", script, "sh", *WINDLASS],
        cwd=desk.repo,
        env=desk.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_reader_who_has_read_enough_is_no_failure(desk: Desk):
    there, here = os.pipe()
    os.close(there)
    done = subprocess.run(
        [*WINDLASS, "plan", "plan.md"],
        cwd=desk.repo,
        env=desk.environment,
        stdout=here,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(here)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
class TestFull:
    def test_a_full_disk_is_said_in_one_line(self, desk: Desk):
        done = shell(desk, '"$@" plan plan.md >/dev/full')
        assert done.returncode == 4
        assert done.stderr == (
            "windlass: No space left on device; fix that and try again; nothing recorded is lost\n"
        )

    @pytest.mark.parametrize("args", ["plan nope.md", "nonsense"])
    def test_where_nobody_can_be_told_the_code_tells(self, desk: Desk, args: str):
        done = shell(desk, f'"$@" {args} 2>/dev/full')
        assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


class TestClosed:
    @pytest.mark.parametrize("closed", ["2>&-", "<&-", ">&-", ">&- 2>&- <&-"])
    def test_a_closed_stream_is_as_good_as_one_that_nobody_reads(self, desk: Desk, closed: str):
        done = shell(desk, f'"$@" plan plan.md {closed}')
        assert (done.returncode, done.stderr) == (0, "")
        assert ("1.1  Add the endpoint" in done.stdout) != closed.startswith(">&-")

    def test_what_goes_wrong_without_a_stderr_still_has_its_code(self, desk: Desk):
        done = shell(desk, '"$@" run nope.md 2>&- >&-')
        assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_a_signal_that_was_ignored_before_stays_so():
    look = (
        "import anyio, signal\n"
        "from windlass.runner.shutdown import stop_signals\n"
        "async def look():\n"
        "    with stop_signals() as names:\n"
        "        signal.raise_signal(signal.SIGHUP)\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "        print(await anext(names))\n"
        "anyio.run(look)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", look],
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "SIGTERM\n", "")
