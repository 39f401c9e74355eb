"""Whole runs with the real Claude CLI: a stage for each test, with a scripted model beside it."""

import itertools
import json
import os
import signal
import sqlite3
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from waiting import eventually
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.core.events.model import Event
from windlass.testing.model.ledger import Seen
from windlass.testing.model.script import Book
from windlass.testing.stage import Stage, scripted_model


class Play(Stage):
    """A stage on which a test can look at everything."""

    log: Path

    @property
    def _journal(self) -> Path:
        return self.repo / ".windlass/plans/plan/journal.db"

    def run(self, *args: str, **more: str) -> tuple[int, str, str]:
        """A Windlass process to its end: exit code, stdout, stderr."""
        with self.windlass(*args, **more) as process:
            try:
                out, err = process.communicate(timeout=200)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
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

    def killed_after(self, facts: int, *args: str) -> int:
        """A Windlass process that is killed, with all its group, when it has told so many facts."""
        with self._told(facts, *args) as process:
            os.killpg(process.pid, signal.SIGKILL)
        return process.returncode

    def killed_unrecorded(self, facts: int, look: Callable[[], object], *args: str) -> int:
        """One that can record nothing after so many facts, and is killed when something is seen."""
        with self._told(facts, *args) as process, closing(sqlite3.connect(self._journal)) as held:
            # Whoever holds the journal keeps others from writing: for a while they wait for it.
            held.execute("BEGIN IMMEDIATE")
            eventually(look)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=60)
        return process.returncode

    @contextmanager
    def _told(self, facts: int, *args: str) -> Iterator[subprocess.Popen[str]]:
        with self.windlass(*args, "--json") as process:
            # The first line only introduces the run.
            told = list(itertools.islice(process.stdout or (), 1 + facts))
            assert len(told) == 1 + facts, process.communicate()
            yield process
            process.communicate(timeout=60)

    def replace_book(self, book: Book) -> None:
        """Give the model other scripts."""
        request = urllib.request.Request(  # noqa: S310  loopback
            f"{self.model_url}/_book", data=msgspec.json.encode(book), method="PUT"
        )
        urllib.request.urlopen(request).close()  # noqa: S310  loopback

    def asked(self) -> list[Seen]:
        """Every request the model got, as it stands now."""
        with urllib.request.urlopen(f"{self.model_url}/_log") as log:  # noqa: S310  loopback
            return [msgspec.json.decode(line, type=Seen) for line in log]

    @property
    def seen(self) -> list[Seen]:
        """Every request the model got, in order, as it ended."""
        lines = self.log.read_bytes().splitlines() if self.log.exists() else []
        entries = [msgspec.json.decode(line, type=Seen) for line in lines]
        return list({entry.seq: entry for entry in entries}.values())

    def conversations(self, task: str) -> int:
        """How often a Player began to work on the task."""
        return self._begun("Role: Player", f"Task: {task}\n")

    def reviews(self, task: str = "") -> int:
        """How often a Coach began to look at the task, or at anything."""
        return self._begun("Role: Coach", *([f"Task: {task}\n"] if task else []))

    def _begun(self, *words: str) -> int:
        firsts = (seen.key.split("|") for seen in self.seen if seen.step == 0)
        return sum(set(words) <= set(key) for key in firsts)

    def journal(self) -> list[Event]:
        """Every fact of the plan's journal, in order."""
        with SqliteJournal.read_only(self._journal) as journal:
            return [entry.event for entry in journal.read()]

    def spent(self) -> float:
        """What Windlass says that the run has cost, in US dollars."""
        return json.loads(self.run("status", "plan", "--json")[1])["metrics"]["cost_usd"]

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
        return bool(eventually(lambda: not self.processes()))


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
