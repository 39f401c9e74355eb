"""Whole runs with the real Claude CLI: a stage for each test, with a scripted model beside it."""

import os
import signal
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from waiting import eventually
from windlass.testing.model.ledger import Seen
from windlass.testing.model.script import Book
from windlass.testing.stage import Stage, scripted_model


class Play(Stage):
    """A stage on which a test can look at everything."""

    log: Path

    def run(self, *args: str, **more: str) -> tuple[int, str, str]:
        """A Windlass process to its end: exit code, stdout, stderr."""
        with self.windlass(*args, **more) as process:
            out, err = process.communicate(timeout=100)
            return process.returncode, out, err

    def killed_at(self, text: str, *args: str) -> tuple[int, str]:
        """A Windlass process that is killed, with all its group, when it says a text."""
        said = ""
        with self.windlass(*args) as process:
            for line in process.stderr or ():
                said += line
                if text in line:
                    os.killpg(process.pid, signal.SIGKILL)
                    break
            said += (process.stderr.read() if process.stderr else "") or ""
            return process.wait(timeout=60), said

    def replace_book(self, book: Book) -> None:
        """Give the model other scripts."""
        request = urllib.request.Request(  # noqa: S310  loopback
            f"{self.model_url}/_book", data=msgspec.json.encode(book), method="PUT"
        )
        urllib.request.urlopen(request).close()  # noqa: S310  loopback

    @property
    def seen(self) -> list[Seen]:
        """Every request the model got, in order, as it ended."""
        lines = self.log.read_bytes().splitlines() if self.log.exists() else []
        entries = [msgspec.json.decode(line, type=Seen) for line in lines]
        return list({entry.seq: entry for entry in entries}.values())

    def conversations(self, task: str) -> int:
        """How often a Player began to work on the task."""
        key = f"Task: {task}\n"
        return sum(seen.step == 0 and key in seen.key for seen in self.seen if not seen.side)

    def reviews(self) -> int:
        """How often a Coach began to look at something."""
        return sum(s.step == 0 and s.key.startswith("Role: Coach") for s in self.seen)

    def tree(self, rev: str = "windlass/plan/integration") -> str:
        return self.git("rev-parse", f"{rev}^{{tree}}").strip()

    def merges(self) -> list[str]:
        """The tasks merged into the integration branch, by its first-parent trailers."""
        log = self.git(
            "log",
            "--first-parent",
            "--merges",
            "--reverse",
            "--format=%(trailers:key=Windlass-Task,valueonly,separator=%x2C)",
            "main..windlass/plan/integration",
        )
        return log.split()

    def processes(self) -> list[str]:
        """Processes that belong to this stage and are still there."""
        mine = f"HOME={self.home}".encode()
        found: list[str] = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    if mine in (entry / "environ").read_bytes().split(b"\0"):
                        found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
                except OSError:
                    continue
        return found

    def none_left(self) -> bool:
        return bool(eventually(lambda: not self.processes(), timeout=5))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Callable[[Mapping[str, str], Book], Play]]:
    """Makes a stage: a repository with these files, a model with this book."""
    with ExitStack() as stack:

        def make(files: Mapping[str, str], book: Book) -> Play:
            log = tmp_path / "model.log"
            play = Play(tmp_path, stack.enter_context(scripted_model(book, log)))
            play.log = log
            play.build(files)
            return play

        yield make
