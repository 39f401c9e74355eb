"""A setting for whole runs: a repository, a scripted model in its own process, and Windlass.

Everything but the model is real. Windlass gets a dummy key, its own home and a model on loopback,
and no variable of the environment that could lead elsewhere.
"""

import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import msgspec

from windlass.testing.model import Book, variables

IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")


class Stage:
    """A folder with a repository `repo` and a home, and the URL of a model."""

    def __init__(self, root: Path, model_url: str) -> None:
        self.root = root
        self.repo = root / "repo"
        self.home = root / "home"
        self.model_url = model_url

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of Windlass."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            **variables(self.model_url),
        }

    def windlass(
        self, *args: str, shown_on: TextIO | None = None, **more: str
    ) -> subprocess.Popen[str]:
        """Start Windlass in the repository.

        It is the leader of its own process group, and its output is read from pipes. With
        `shown_on`, it writes for people there, and stays in this group: a terminal paints only for
        the group in its foreground.
        """
        return subprocess.Popen(
            [sys.executable, "-m", "windlass", *args],
            cwd=self.repo,
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if shown_on else subprocess.PIPE,
            stderr=shown_on or subprocess.PIPE,
            text=True,
            start_new_session=shown_on is None,
        )

    def git(self, *args: str) -> str:
        """Run git in the repository as its user; returns its output."""
        done = subprocess.run(
            ["git", *IDENTITY, *args],
            cwd=self.repo,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def build(self, files: Mapping[str, str]) -> None:
        """Create the repository with these files in its first commit."""
        self.repo.mkdir(parents=True)
        self.home.mkdir(exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.com")
        for path, text in files.items():
            target = self.repo / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Begin")


@contextmanager
def scripted_model(book: Book, log: Path) -> Generator[str]:
    """Start a scripted model that outlives its clients and ends with this block; yields its URL."""
    script = log.with_suffix(".book.json")
    script.write_bytes(msgspec.json.encode(book))
    command = [sys.executable, "-m", "windlass.testing.model", "--until-eof"]
    with subprocess.Popen(
        [*command, "--book", str(script), "--log", str(log)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            line = server.stdout.readline() if server.stdout is not None else ""
            if not line.startswith("listening on "):
                raise RuntimeError(f"the scripted model did not start: {line!r}")
            yield line.split()[-1]
        finally:
            if server.stdin is not None:
                server.stdin.close()
            server.wait(timeout=10)
