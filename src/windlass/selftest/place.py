"""The folder of a rehearsed run, with a repository that is reset before each run."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from windlass.app.wiring import Project
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
    """One folder with one repository; two places share nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.repo = self.folder / "repo"
        self.output = self.folder / "said"
        """The messages of the last run."""
        self.ledger = self.folder / "ledger"
        """One line for each call of an agent."""
        self.untouched = self.folder / "untouched"
        """The copy that `reset` restores."""
        self.remote = self.folder / "remote.git"
        """The user's remote, in a scene that has one; no fault happens there."""
        self.untouched_remote = self.folder / "untouched-remote.git"

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of Windlass."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": str(self.folder / "home"),
            "GIT_CONFIG_NOSYSTEM": "1",
            vendor_of().keys[0]: "dummy-key-for-a-rehearsal",
            **_IDENTITY,
        }

    @property
    def project(self) -> Project:
        """The repository, opened as a project of Windlass."""
        return Project(self.repo, self.environment)

    def read_output(self) -> str:
        """The messages of the last run."""
        return self.output.read_text(encoding="utf-8", errors="replace")

    def git(self, *args: str, stdin: str = "", **more: str) -> str:
        """Run git in the repository as its user; returns its output."""
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
        """Create the repository."""
        (self.folder / "home").mkdir(parents=True, exist_ok=True)
        self.repo.mkdir()
        self.git("init", "--quiet", "--initial-branch=main", "--template=")
        self.git("config", "user.name", "Ada")
        _write(self.repo, FILES)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Begin")
        self.repo.rename(self.untouched)
        self.reset()

    def reset(self) -> None:
        """Restore the repository to what it was before any run."""
        shutil.rmtree(self.repo, ignore_errors=True)
        shutil.copytree(self.untouched, self.repo, symlinks=True)
        shutil.rmtree(self.remote, ignore_errors=True)
        if self.untouched_remote.exists():
            shutil.copytree(self.untouched_remote, self.remote, symlinks=True)
        self.ledger.write_text("")
        self.output.write_text("")

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
    """Starts runs in a place, each a process that a fault can hit; use it with `with`."""

    def __init__(self, place: Place, library: Path | None, *, level: str) -> None:
        self.place = place
        self.control = Control(place.folder / "control", place.repo)
        self._library = library
        self._level = level
        self._server: subprocess.Popen[str] | None = None

    @classmethod
    def at(cls, folder: Path, *, level: str, shim: bool = True) -> Self:
        """Rehearsals in a new place in an empty folder."""
        place = Place(folder)
        place.build()
        return cls(place, build(folder) if shim else None, level=level)

    @property
    def sees_all(self) -> bool:
        """Whether every call is seen, git's too; if not, only calls that Python audits."""
        return self._library is not None

    def __enter__(self) -> Self:
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
        if self._server is not None:
            self._server.communicate()

    def run(self, choice: str | None = None, **options: object) -> int:
        """Run or resume the story; returns the exit code, negative if a signal ended it."""
        return self._request({"choice": choice, "options": options, "argv": None})

    def call(self, *argv: str) -> int:
        """Run another command without a terminal; returns its exit code, as `run` does."""
        return self._request({"argv": argv})

    def _request(self, fields: dict[str, Any]) -> int:
        server = self._server
        if server is None or server.stdin is None or server.stdout is None:
            raise RuntimeError("use `with` to start the server of rehearsals")
        request = {**fields, "control": str(self.control.path), "level": self._level}
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        if not answer:
            raise WindlassError("the server of rehearsals ended", hint="read what it printed")
        return json.loads(answer)["code"]


def _write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
