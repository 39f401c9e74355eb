"""`windlass demo`: what a newcomer sees on a terminal of 80 columns."""

import contextlib
import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from terminal import Terminal
from windlass.views.columns import columns

pytestmark = pytest.mark.e2e

AT_ONCE = (
    "import windlass.cli.demo as demo; demo.PAUSE = 0.1; from windlass.cli.main import main; main()"
)
"""The demo with short pauses."""


def on_terminal(into: Path, width: int) -> tuple[int, str]:
    """The exit code and all output of the demo, on a terminal of that width."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, width, 0, 0))
    env = {"PATH": os.environ["PATH"], "HOME": str(into), "LANG": "C.UTF-8", "TERM": "xterm"}

    def own_terminal() -> None:
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [sys.executable, "-c", AT_ONCE, "demo", "--into", str(into / "demo")],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=own_terminal,  # noqa: PLW1509  a terminal paints only for its own session
    )
    os.close(theirs)
    output = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal, contextlib.suppress(OSError):
        while part := terminal.read(65_536):  # EIO once the last writer has closed it
            output += part
    return process.wait(60), output.decode()


def test_the_demo_shows_a_live_run_and_what_each_act_proves(tmp_path: Path):
    code, raw = on_terminal(tmp_path, 80)
    assert code == 0, raw[-3000:]
    assert "Ctrl-C stops it; `windlass resume` continues it" in raw, "the footer was painted"
    screen = Terminal()
    screen.write(raw)
    assert screen.at_rest
    shown = screen.text
    # The folder is as long as its name.
    wide = [line for line in shown.splitlines() if columns(line) > 80 and str(tmp_path) not in line]
    assert wide == []
    begun, killed, after = shown.partition("── Killed with SIGKILL, in the middle of two tasks")
    assert killed
    assert "● 1.2 Count them" in begun, "the footer of the killed run stays as it was"
    proofs = after.partition("What you saw, and what it proves")[2]
    acts = re.findall(r"^ +([A-Z]+)  (\S.*)$", proofs, re.MULTILINE)
    assert [word for word, _ in acts] == ["RETURNED", "RETURNED", "RESUMED", "CONFLICT", "MERGED"]
    assert acts[0][1].startswith("1.3: ")
    assert acts[1][1].startswith("1.2: ")
    assert acts[4][1].startswith("5 of 5 tasks")
    cost = proofs.partition("What it cost")[2]
    amounts = re.search(r"\$0\.\d+ spent( · \$0\.\d+ estimated)? of \$20\.00\n +(\S.*)", cost)
    assert amounts is not None, "and nothing is in flight at the end"
    why = (
        "estimated: what the requests that the kill cut off" if amounts[1] else "no request was in"
    )
    assert amounts[2].startswith(why)
