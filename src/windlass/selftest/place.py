"""Where a run is rehearsed: a folder with a repository that is made anew each time."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from windlass.app.wiring.agents import vendor_of
from windlass.errors import WindlassError
from windlass.testing.faults.shim import Control, build
from windlass.testing.faults.story import FILES, RESULT

_IDENTITY = {
    f"GIT_{who}_{what}": "ada@example.com"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


class Place:
    """One folder, one repository; two of them never meet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.repo = self.folder / "repo"
        self.said = self.folder / "said"
        """What the last run wrote for people."""
        self.ledger = self.folder / "ledger"
        """A line for each call of an agent."""
        self.untouched = self.folder / "untouched"
        self.remote = self.folder / "remote.git"
        """Where the user pushes to, in a scene that has such a place; no fault happens there."""
        self.untouched_remote = self.folder / "untouched-remote.git"

    @property
    def environment(self) -> dict[str, str]:
        """All that Windlass is to see of the world."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": str(self.folder / "home"),
            "GIT_CONFIG_NOSYSTEM": "1",
            vendor_of().keys[0]: "dummy-key-for-a-rehearsal",
            **_IDENTITY,
        }

    def git(self, *args: str, stdin: str = "", **more: str) -> str:
        """Ask or tell the repository something, as its user."""
        done = subprocess.run(
            ["git", *args],
            cwd=self.repo,
            env={**self.environment, **more},
            input=stdin,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def build(self) -> None:
        """Make the repository, once."""
        (self.folder / "home").mkdir(parents=True, exist_ok=True)
        self.repo.mkdir()
        self.git("init", "--quiet", "--initial-branch=main", "--template=")
        self.git("config", "user.name", "Ada")
        _write(self.repo, FILES)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Begin")
        self.repo.rename(self.untouched)
        self.fresh()

    def fresh(self) -> None:
        """Put the repository back to what it was before any run."""
        shutil.rmtree(self.repo, ignore_errors=True)
        shutil.copytree(self.untouched, self.repo, symlinks=True)
        shutil.rmtree(self.remote, ignore_errors=True)
        if self.untouched_remote.exists():
            shutil.copytree(self.untouched_remote, self.remote, symlinks=True)
        self.ledger.write_text("")
        self.said.write_text("")

    def wanted_tree(self) -> str:
        """The name of the tree that every run ends with."""
        index = str(self.folder / "wanted-index")
        self.git("read-tree", "main", GIT_INDEX_FILE=index)
        for path, text in RESULT.items():
            blob = self.git("hash-object", "-w", "--stdin", stdin=text)
            self.git(
                "update-index",
                "--add",
                "--cacheinfo",
                f"100644,{blob},{path}",
                GIT_INDEX_FILE=index,
            )
        return self.git("write-tree", GIT_INDEX_FILE=index)


class Rehearsals:
    """Runs in a place, each a process that can be hit; ended by `with`."""

    def __init__(self, place: Place, library: Path | None, *, level: str) -> None:
        self.place = place
        self.control = Control(place.folder / "control", place.repo)
        self._library = library
        self._level = level
        self._server: subprocess.Popen[str] | None = None

    @classmethod
    def at(cls, folder: Path, *, level: str, shim: bool = True) -> Self:
        """A new place in an empty folder."""
        place = Place(folder)
        place.build()
        return cls(place, build(folder) if shim else None, level=level)

    @property
    def sees_all(self) -> bool:
        """Whether every call is seen, those of git as well; if not, only what Python tells."""
        return self._library is not None

    def __enter__(self) -> Self:
        """Start the server."""
        environment = dict(os.environ)
        if self._library is not None:
            environment["LD_PRELOAD"] = str(self._library)
        self._server = subprocess.Popen(
            [sys.executable, "-m", "windlass.selftest.server", str(self.place.folder)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        if self._server is not None:
            self._server.communicate()

    def run(self, choice: str | None = None, **options: object) -> int:
        """Start the story, or resume it; the exit code, negative where a signal ended it."""
        return self._asked({"choice": choice, "options": options, "argv": None})

    def call(self, *argv: str) -> int:
        """Call any other command, as without a terminal; its exit code as above."""
        return self._asked({"argv": argv})

    def _asked(self, what: dict[str, Any]) -> int:
        server = self._server
        if server is None or server.stdin is None or server.stdout is None:
            raise RuntimeError("a rehearsal begins with `with`")
        asked = {**what, "control": str(self.control.path), "level": self._level}
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        if not answer:
            raise WindlassError("the server of rehearsals has ended", hint="see what it printed")
        return json.loads(answer)["code"]


def _write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
