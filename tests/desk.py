"""Real `windlass` processes in a repository of their own, with a dummy key and a model that is
not there: whatever these tests ask for, nothing can be spent."""

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

NOBODY = "http://127.0.0.1:9"
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
    """What a process said."""

    code: int
    out: str
    err: str


class Desk(Stage):
    """A stage on which commands are called one by one."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, NOBODY)
        self.directory = self.repo
        self.under: tuple[str, ...] = ()
        """What the command is started by, if not directly."""

    def call(self, *args: str, without: Iterable[str] = (), **more: str) -> Answer:
        """A command to its end; `without` takes variables away, `more` adds some."""
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
        """What a command prints on a terminal of that width."""
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
        said = b""
        with os.fdopen(ours, "rb", buffering=0) as terminal, contextlib.suppress(OSError):
            while part := terminal.read(4096):  # EIO where nobody writes to it any more
                said += part
        process.wait(60)
        return said.decode().replace("\r\n", "\n")

    def without_bubblewrap(self) -> None:
        """From now on, commands find no bubblewrap: it is hidden from them, by itself."""
        hidden = [path for path in ("/usr/bin/bwrap", "/bin/bwrap") if Path(path).exists()]
        covers = [part for path in hidden for part in ("--ro-bind", "/dev/null", path)]
        self.under = ("bwrap", "--dev-bind", "/", "/", *covers, "--")

    def without_privileges(self) -> None:
        """From now on, commands may not read what its mode forbids, not even as root."""
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
        """A journal, as a run that ended or died would have left it."""
        journal = self.repo / ".windlass" / "plans" / plan_id / "journal.db"
        journal.parent.mkdir(parents=True)
        with SqliteJournal.open(journal, Redactor({})) as opened:
            opened.append(list(events), expected=0)

    def everything(self) -> dict[str, str]:
        """All that lies in the repository's folder, `.git` included, and in the home."""
        found: dict[str, str] = {}
        for top in (self.repo, self.home):
            for folder, folders, files in os.walk(top):
                found.update({os.path.join(folder, name): "folder" for name in folders})  # noqa: PTH118
                for name in files:
                    path = Path(folder, name)
                    # Whoever reads a journal beside others leaves these; they say nothing.
                    if not name.endswith(("-shm", "-wal")):
                        found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found
