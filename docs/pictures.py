"""Make the pictures in docs/pictures anew: a real run in a real terminal, its report in a browser.

    python docs/pictures.py [FOLDER]

Needs tmux and Chromium; no key and no network, for the model is scripted. Looked at, not only made:
whoever changes a screen runs this and looks.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from pictures_story import book, files
from terminal_picture import picture

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from browser import browser, installed  # noqa: E402  which lies with the tests
from windlass.testing.stage import Stage, scripted_model  # noqa: E402

PAUSE = 1.0
PATIENCE = 240.0
ROWS = 34
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
PLAN = "auth-hardening.md"
PAGES = (
    ("desktop", 1280, "light", "/cost"),
    ("desktop", 1280, "dark", "/cost"),
    ("phone", 390, "light", "/graph"),
)


class Terminal:
    """A terminal of its own, in a server of its own."""

    def __init__(self, stage: Stage, columns: int) -> None:
        self._server = ("tmux", "-L", f"windlass-{os.getpid()}-{columns}", "-f", "/dev/null")
        self._stage = stage
        self.columns = columns
        self._tmux(
            "new-session", "-d", "-x", str(columns), "-y", str(ROWS), "-s", "w", "env", "PS1=$ ",
            "bash", "--norc", "--noprofile",
        )  # fmt: skip
        self._tmux("set-option", "-g", "status", "off")

    def _tmux(self, *args: str) -> str:
        environment = {**self._stage.environment, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            [*self._server, *args], cwd=self._stage.repo, env=environment,
            capture_output=True, check=True, text=True,
        )  # fmt: skip
        return done.stdout

    def types(self, line: str) -> None:
        """Enter a line."""
        self._tmux("send-keys", "-t", "w", line, "Enter")

    def screen(self) -> str:
        """What is on it now, in its colours."""
        return self._tmux("capture-pane", "-p", "-e", "-t", "w")

    def until(self, ready: Callable[[str], bool]) -> str:
        """What is on it when that is so."""
        end = time.monotonic() + PATIENCE
        # What was looked at is what is returned: a moment later it may be so no more.
        while not ready(_COLOURS.sub("", shown := self.screen())):
            if time.monotonic() > end:
                raise TimeoutError(_COLOURS.sub("", shown))
            time.sleep(0.1)
        return shown

    def close(self) -> None:
        """End the server, and whatever runs in it."""
        self._tmux("kill-server")


@contextmanager
def played(folder: Path, columns: int) -> Generator[tuple[Stage, Terminal]]:
    """A fresh repository, a model for it, and a terminal in which the plan is run."""
    folder.mkdir()
    with scripted_model(book(PAUSE), folder / "model.log") as url:
        stage = Stage(folder, url)
        stage.build(files())
        program = shlex.quote(str(Path(sys.executable).with_name("windlass")))
        terminal = Terminal(stage, columns)
        try:
            terminal.types(f"alias windlass={program}; clear")
            terminal.types(f"windlass run {PLAN}")
            yield stage, terminal
        finally:
            terminal.close()


def _busy(screen: str) -> bool:
    """A moment at which there is much to see."""
    footer = screen.rpartition("─ auth-hardening")[2]
    return all(word in footer for word in ("Player", "limit", "done (")) and (
        "Coach" in footer or "checks" in footer
    )


def _ended(screen: str) -> bool:
    return "Next" in screen and screen.rstrip().endswith("$")


def make(folder: Path, into: Path) -> None:
    """All of them."""
    with played(folder / "wide", 140) as (_, terminal):
        _save(into / "live-140.svg", terminal.until(_busy), 140, "A run in 140 columns")
    with played(folder / "narrow", 80) as (stage, terminal):
        _save(into / "live-80.svg", terminal.until(_busy), 80, "A run in 80 columns")
        _save(into / "end-80.svg", terminal.until(_ended), 80, "The end of a run")
        terminal.types("clear; windlass status")
        shown = terminal.until(lambda text: "branch" in text and text.rstrip().endswith("$"))
        _save(into / "status-80.svg", shown, 80, "windlass status")
        terminal.types("clear; windlass report")
        terminal.until(lambda text: "report.html" in text)
        [report] = stage.repo.glob(".windlass/plans/*/runs/*/report.html")
        _photograph(report, folder / "profile", into)


def _save(path: Path, captured: str, columns: int, title: str) -> None:
    path.write_text(picture(captured, columns, title), encoding="utf-8")


def _photograph(report: Path, profile: Path, into: Path) -> None:
    program = installed()
    if program is None:
        raise SystemExit("there is no Chromium")
    with browser(program, profile) as shown:
        for what, width, scheme, until in PAGES:
            name = f"report-{what}-{scheme}.png"
            shown.look(report.as_uri(), width=width, scheme=scheme)
            shown.picture(into / name, until=until)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "pictures")
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix="windlass-pictures-", ignore_cleanup_errors=True
    ) as made:
        make(Path(made), target)
    for each in sorted(target.iterdir()):
        print(f"{each.name:28} {each.stat().st_size / 1000:6.0f} kB")
