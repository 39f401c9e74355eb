"""Make the pictures in docs/pictures again: real runs in a real terminal, a report in a browser.

    python docs/pictures.py [screens|demo|film]

`screens` makes the still pictures, `demo` records the plan of `windlass demo` in a terminal and
draws the film of it, and `film` draws the film again from that recording. Without an argument:
screens and demo. Needs tmux and Chromium; no key and no network, because the model is scripted. If
you change a screen, run this and look at the pictures.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from pictures_story import book, files
from terminal_film import Recording, film, recording
from terminal_picture import picture

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from browser import browser, installed  # noqa: E402  which lies with the tests
from windlass.testing import sample  # noqa: E402
from windlass.testing.stage import Stage, scripted_model  # noqa: E402

PAUSE = 1.0
PATIENCE = 240.0
ROWS = 34
FILM_COLUMNS, FILM_ROWS = 80, 24
RECORDING, FILM = "demo.json", "demo.svg"
FILM_TITLE = "Windlass runs a plan, is killed, resumes it, and lands what was merged"
FILM_PAUSE = 0.4
"""Seconds before each answer of the model, as in `windlass demo`."""
TO_READ = 2.5
"""Seconds for which the film stays at the end of an act."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
PLAN = "auth-hardening.md"
PAGES = (
    ("desktop", 1280, "light", "/cost"),
    ("desktop", 1280, "dark", "/cost"),
    ("phone", 390, "light", "/graph"),
)


class Terminal:
    """A terminal of its own, in a server of its own, with `windlass` on its PATH."""

    def __init__(
        self, environment: Mapping[str, str], folder: Path, columns: int, rows: int = ROWS
    ) -> None:
        self._server = ("tmux", "-L", f"windlass-{os.getpid()}-{columns}", "-f", "/dev/null")
        self._folder = folder
        self._environment = {
            **environment,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}",
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
        }
        self._tmux(
            "new-session", "-d", "-x", str(columns), "-y", str(rows), "-s", "w", "env", "PS1=$ ",
            "bash", "--norc", "--noprofile",
        )  # fmt: skip
        self._tmux("set-option", "-g", "status", "off")

    def _tmux(self, *args: str) -> str:
        done = subprocess.run(
            [*self._server, *args], cwd=self._folder, env=self._environment,
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
        # What was looked at is what is returned: a moment later it may be so no more.
        return [shown for _, shown in self.seen(ready)][-1]

    def seen(self, ready: Callable[[str], bool]) -> Iterator[tuple[float, str]]:
        """What is on it until that is so, each time with the seconds of a clock."""
        end = time.monotonic() + PATIENCE
        while True:
            shown = self.screen()
            yield time.monotonic(), shown
            if ready(_COLOURS.sub("", shown)):
                return
            if time.monotonic() > end:
                raise TimeoutError(_COLOURS.sub("", shown))
            time.sleep(0.1)

    def kills(self) -> None:
        """Kill the program that runs in it, with its whole group."""
        shell = self._tmux("list-panes", "-t", "w", "-F", "#{pane_pid}").strip()
        children = Path(f"/proc/{shell}/task/{shell}/children").read_text(encoding="utf-8")
        os.killpg(int(children.split()[0]), signal.SIGKILL)

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
        terminal = Terminal(stage.environment, stage.repo, columns)
        try:
            terminal.types(f"clear; windlass run {PLAN}")
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


def make_film(folder: Path, into: Path) -> None:
    """Record the plan of the demo as a person runs it in 80 columns, and draw the film."""
    with scripted_model(sample.book(FILM_PAUSE), folder / "film.log") as url:
        stage = Stage(folder / "film", url)
        stage.build(sample.FILES)
        terminal = Terminal(stage.environment, stage.repo, FILM_COLUMNS, FILM_ROWS)
        try:
            taken = recording(_acts(terminal), FILM_COLUMNS, FILM_ROWS)
        finally:
            terminal.close()
    (into / RECORDING).write_bytes(msgspec.json.encode(taken))
    draw_film(into)


def _acts(terminal: Terminal) -> Iterator[tuple[float, str]]:
    terminal.until(lambda text: text.strip() == "$")
    terminal.types("windlass run plan.md --agents 2")
    yield from terminal.seen(_two_at_work)
    terminal.kills()
    yield from _to_its_end(terminal, lambda text: "Killed" in text)
    terminal.types("windlass resume   # what is finished is not done again")
    yield from _to_its_end(terminal, _ended)
    terminal.types("windlass land")
    yield from _to_its_end(terminal, lambda text: "LANDED" in text)


def _to_its_end(terminal: Terminal, ready: Callable[[str], bool]) -> Iterator[tuple[float, str]]:
    yield from terminal.seen(lambda text: ready(text) and text.rstrip().endswith("$"))
    time.sleep(TO_READ)


def _two_at_work(screen: str) -> bool:
    """Two Players have done something, and neither is done."""
    footer = screen.rpartition("─ plan ─")[2]
    return len(re.findall(r"● 1\.[23] .* Player .* Running", footer)) > 1


def draw_film(into: Path) -> None:
    """Draw the film of the last recording."""
    taken = msgspec.json.decode((into / RECORDING).read_bytes(), type=Recording)
    (into / FILM).write_text(film(taken, FILM_TITLE), encoding="utf-8")


def make_screens(folder: Path, into: Path) -> None:
    """All still pictures."""
    with played(folder / "wide", 140) as (_, terminal):
        _save(into / "live-140.svg", terminal.until(_busy), 140, "A run in 140 columns")
    with played(folder / "narrow", 80) as (stage, terminal):
        _save(into / "live-80.svg", terminal.until(_busy), 80, "A run in 80 columns")
        _save(into / "end-80.svg", terminal.until(_ended), 80, "The end of a run")
        terminal.types("clear; windlass status")
        shown = terminal.until(lambda text: "branch" in text and text.rstrip().endswith("$"))
        _save(into / "status-80.svg", shown, 80, "windlass status")
        terminal.types("clear; windlass report")
        terminal.until(lambda text: "report.html" in text.replace("\n", ""))  # a long path wraps
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


def main(wanted: tuple[str, ...]) -> None:
    target = HERE / "pictures"
    with tempfile.TemporaryDirectory(
        prefix="windlass-pictures-", ignore_cleanup_errors=True
    ) as made:
        if "screens" in wanted:
            make_screens(Path(made), target)
        if "demo" in wanted:
            make_film(Path(made), target)
        if "film" in wanted:
            draw_film(target)
    for each in sorted(target.iterdir()):
        print(f"{each.name:28} {each.stat().st_size / 1000:6.0f} kB")


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or ("screens", "demo"))
