"""A run on a real terminal: painted while it goes on, and the terminal as it was when it ends."""

import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

import pytest

from e2e.conftest import Play
from plans import book, files
from terminal import Terminal
from waiting import eventually
from windlass.core.events.model import RunEnd, RunEnded
from windlass.testing.model.script import Book, Hang, Script
from windlass.testing.sample import write

pytestmark = pytest.mark.e2e

MakeStage = Callable[[Mapping[str, str], Book], Play]
TWO = {"a": (), "b": ("a",)}


class OnTerminal:
    """A Windlass process on a pseudo-terminal, and what it has painted there."""

    def __init__(self, process: subprocess.Popen[bytes], far: int) -> None:
        self.process = process
        self._far = far
        self.painted = ""
        os.set_blocking(far, False)

    def look(self) -> str:
        """All that was painted so far."""
        try:
            while part := os.read(self._far, 65536):
                self.painted += part.decode(errors="replace")
        except (BlockingIOError, OSError):
            pass
        return self.painted

    def types(self, text: str) -> None:
        os.write(self._far, text.encode())

    def shows(self, text: str) -> None:
        eventually(lambda: text in self.look(), timeout=60)

    def hang_up(self) -> None:
        """Nobody holds the terminal's other end any more."""
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            os.dup2(nothing.fileno(), self._far)

    def ends(self) -> int:
        eventually(lambda: (self.look(), self.process.poll() is not None)[1], timeout=60)
        self.look()
        return self.process.returncode

    @property
    def left(self) -> Terminal:
        """The terminal with what is left on it."""
        terminal = Terminal()
        terminal.write(self.painted)
        return terminal


@contextmanager
def on_terminal(
    play: Play, *args: str, rows: int = 40, listening: bool = False
) -> Generator[OnTerminal]:
    far, near = pty.openpty()
    termios.tcsetwinsize(near, (rows, 120))
    process = subprocess.Popen(
        [sys.executable, "-m", "windlass", *args],
        cwd=play.repo,
        env={**play.environment, "TERM": "xterm-256color", "NO_COLOR": "1"},
        stdin=near if listening else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=near,
        start_new_session=True,
    )
    os.close(near)
    try:
        yield OnTerminal(process, far)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(far)


def test_a_run_is_painted_and_leaves_the_terminal_as_it_was(stage: MakeStage):  # G12 K6
    play = stage(files(TWO), book(TWO, pause=0.2))
    with on_terminal(play, "run", "plan.md") as shown:
        shown.shows("reading the plan")
        shown.shows("● a Write a.txt")
        shown.shows("Running: ")
        assert shown.ends() == 0
    terminal = shown.left
    assert terminal.at_rest
    assert "\x1b[?1049" not in shown.painted
    assert "\x1b[?25l" not in shown.painted
    text = terminal.text
    assert "reading" not in text
    assert "Ctrl-C" not in text
    assert text.count("DONE") == 2
    assert "2 tasks: 2 completed" in text
    assert text.index("DONE") < text.index("Summary") < text.index("windlass land plan.md")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_it_no_mode_is_left(stage: MakeStage, how: signal.Signals):
    play = stage(files(TWO), book(TWO, pause=0.5))
    with on_terminal(play, "run", "plan.md") as shown:
        shown.shows("● a Write a.txt")
        os.kill(shown.process.pid, how)
        code = shown.ends()
    assert code == (4 if how is signal.SIGINT else -signal.SIGKILL)
    assert shown.left.at_rest
    if how is signal.SIGINT:
        assert "Ctrl-C" not in shown.left.text
        assert "windlass resume plan.md" in shown.left.text


def test_stopped_it_takes_its_footer_away_and_brings_it_back(stage: MakeStage):
    play = stage(files(TWO), book(TWO, pause=0.5))
    with on_terminal(play, "run", "plan.md") as shown:
        shown.shows("● a Write a.txt")
        os.kill(shown.process.pid, signal.SIGTSTP)

        def stopped() -> bool:
            with open(f"/proc/{shown.process.pid}/stat") as file:  # noqa: PTH123
                return file.read().rpartition(")")[2].split()[0] == "T"

        eventually(stopped)
        shown.look()
        assert "Ctrl-C" not in shown.left.text
        before = len(shown.painted)
        os.kill(shown.process.pid, signal.SIGCONT)
        eventually(lambda: "Ctrl-C" in shown.look()[before:], timeout=60)
        assert shown.ends() == 0


def test_enter_leaves_no_old_rows(stage: MakeStage):
    play = stage(files(TWO), book(TWO, pause=0.5))
    with on_terminal(play, "run", "plan.md", listening=True) as shown:
        shown.shows("● a Write a.txt")
        shown.types("\nwhat is this?\n\n")
        eventually(lambda: "what is this?" in shown.look(), timeout=60)
        echoed = shown.painted.rindex("what is this?")
        eventually(lambda: "Ctrl-C" in shown.look()[echoed:], timeout=60)
        assert shown.left.text.count("Ctrl-C") == 1
        assert "what is this?" not in shown.left.text
        assert shown.ends() == 0
    assert "Ctrl-C" not in shown.left.text
    assert shown.left.text.count("DONE") == 2


def test_others_look_on_and_the_run_does_not_notice(stage: MakeStage):  # K13
    play = stage(files(TWO), book(TWO, pause=0.5))
    with on_terminal(play, "run", "plan.md") as shown:
        shown.shows("● a Write a.txt")
        code, out, _ = play.run("log", "--follow", "--kind", "DONE")
        assert code == 0
        assert [line.split()[3] for line in out.splitlines() if " DONE " in line] == ["a", "b"]
        assert shown.ends() == 0


def test_status_watch_ends_with_the_run(stage: MakeStage):
    play = stage(files(TWO), book(TWO, pause=0.5))
    with on_terminal(play, "run", "plan.md") as shown:
        shown.shows("● a Write a.txt")
        code, out, _ = play.run("status", "--watch")
        assert code == 0
        assert "DONE  b" in out
        assert "completed · 2/2 done" in out
        assert shown.ends() == 0


class TestNobodyLooks:
    """A Player at work, and whoever looked on has gone."""

    HANGS = book({"a": ()}, a=Script((write("a.txt", "by a\n"), Hang())))

    def test_a_terminal_that_closes_stops_the_run_in_order(self, stage: MakeStage):
        play = stage(files({"a": ()}), self.HANGS)
        with on_terminal(play, "run", "plan.md") as screen:
            written = play.repo / ".windlass/plans/plan/workspaces/a/a.txt"
            eventually(lambda: (screen.look(), written.exists())[1], timeout=60)
            screen.hang_up()
            screen.process.send_signal(signal.SIGHUP)  # the kernel's, to whose terminal it was
            assert screen.process.wait(timeout=60) == 4
        self._has_stopped(play)
        pins = play.git("for-each-ref", "--format=%(refname)", "refs/windlass").split()
        assert any(pin.endswith("/task/a/1/partial") for pin in pins)

    def test_a_reader_who_goes_stops_it_as_well(self, stage: MakeStage):
        play = stage(files({"a": ()}), self.HANGS)
        with play.windlass("run", "plan.md") as process:
            assert process.stderr is not None
            next(line for line in process.stderr if "PLAYER" in line)
            process.stderr.close()
            assert process.wait(timeout=60) == 4
        self._has_stopped(play)

    def _has_stopped(self, play: Play) -> None:
        end = play.journal()[-1]
        assert isinstance(end, RunEnded)
        assert (end.status, end.reason) == (RunEnd.STOPPED, "stopped by SIGHUP")
        assert play.none_left()
