"""Real `windlass` processes in their own repository, with a dummy key and no model: no test can
spend anything."""

import contextlib
import fcntl
import hashlib
import os
import struct
import subprocess
import sys
import termios
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.core.events import model as e
from windlass.core.secrets import Redactor
from windlass.testing.stage import Stage

NO_MODEL = "http://127.0.0.1:9"
"""A loopback port on which nothing listens."""

PLAN = """\
# Milestone: Health check

## Task 1.1: Add the endpoint

**File:** `src/health.py`
**Checks:** `python3 -m pytest -q`
**Complexity:** 3

**Acceptance Criteria:**
- [ ] GET /health answers 200
- [ ] The answer is JSON

## Task 1.2: Document it

**Acceptance Criteria:**
- [ ] README.md names it
"""


class Answer(NamedTuple):
    """The exit code and output of a process."""

    code: int
    out: str
    err: str


class Desk(Stage):
    """A stage for commands that are called one by one."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, NO_MODEL)
        self.directory = self.repo
        self.under: tuple[str, ...] = ()
        """The program that starts the command, if any."""

    @property
    def environment(self) -> dict[str, str]:
        """The same output wherever the machine is."""
        return {**super().environment, "TZ": "UTC"}

    def call(self, *args: str, without: Iterable[str] = (), **more: str) -> Answer:
        """Run a command; `without` removes variables from its environment, `more` adds some."""
        env = {k: v for k, v in {**self.environment, **more}.items() if k not in set(without)}
        done = subprocess.run(
            [*self.under, sys.executable, "-m", "windlass", *args],
            cwd=self.directory,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def on_terminal(self, *args: str, columns: int = 80) -> str:
        """The output of a command on a terminal of that width."""
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(
            [*self.under, sys.executable, "-m", "windlass", *args],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        output = b""
        with os.fdopen(ours, "rb", buffering=0) as terminal, contextlib.suppress(OSError):
            while part := terminal.read(4096):  # EIO once the last writer has closed it
                output += part
        process.wait(60)
        return output.decode().replace("\r\n", "\n")

    def without_bubblewrap(self) -> None:
        """Hide bubblewrap from commands from now on, with bubblewrap itself."""
        hidden = [path for path in ("/usr/bin/bwrap", "/bin/bwrap") if Path(path).exists()]
        covers = [part for path in hidden for part in ("--ro-bind", "/dev/null", path)]
        self.under = ("bwrap", "--dev-bind", "/", "/", *covers, "--")

    def without_privileges(self) -> None:
        """From now on, commands cannot read files that their mode forbids, not even as root."""
        if os.geteuid() == 0:
            self.under = ("bwrap", "--dev-bind", "/", "/", "--cap-drop", "ALL", "--")

    def write(self, path: str, content: str | bytes) -> None:
        target = self.repo / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, path: str, content: str) -> None:
        self.write(path, content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", f"Add {path}")

    def record(self, plan_id: str, events: Iterable[e.Event]) -> None:
        """Write a journal, as a run that ended or died leaves it."""
        journal = self.repo / ".windlass" / "plans" / plan_id / "journal.db"
        journal.parent.mkdir(parents=True)
        with SqliteJournal.open(journal, Redactor({})) as opened:
            opened.append(list(events), expected=0)

    def everything(self) -> dict[str, str]:
        """The hash of every file in the repository, `.git` included, and in the home."""
        found: dict[str, str] = {}
        for top in (self.repo, self.home):
            for folder, folders, files in os.walk(top):
                found.update({os.path.join(folder, name): "folder" for name in folders})  # noqa: PTH118
                for name in files:
                    path = Path(folder, name)
                    # Reading a journal creates these files; they are not changes.
                    if not name.endswith(("-shm", "-wal")):
                        found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found
