"""GitHub, by the user's own `gh`: pull requests found, opened and edited.

Law: argv only, never a shell; a body goes by a file. What `gh` says is judged by its exit code and
its JSON, never by its prose. Nothing is asked at a terminal.
"""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field

from windlass.adapters.git.git import absolute
from windlass.errors import RepositoryError

PROGRAM = "gh"
TIMEOUT = 120
"""Seconds after which it is taken for stuck."""
_NO_LOGIN = 4
"""The exit code by which gh says that it needs a login."""
_FIELDS = "number,url,state,title,body,isDraft,baseRefName,headRepositoryOwner"


class Owner(Struct, frozen=True):
    """Whose repository a branch is in."""

    login: str = ""


class PullRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """One that is open; what gh did not say is None."""

    number: int
    url: str | None = None
    state: str | None = None
    title: str | None = None
    body: str | None = None
    is_draft: bool | None = None
    base: str | None = field(default=None, name="baseRefName")
    owner: Owner | None = field(default=None, name="headRepositoryOwner")


class Words(Struct, frozen=True, kw_only=True):
    """What a pull request says."""

    title: str
    body: Path
    """The file that holds it."""


class GitHub:
    """The user's gh, in one repository."""

    def __init__(self, program: str, root: Path, environment: Mapping[str, str]) -> None:
        self._program = program
        self._root = root
        self._environment = {
            **environment,
            "PATH": absolute(environment.get("PATH", "")),
            "GH_PROMPT_DISABLED": "1",
            "GH_NO_UPDATE_NOTIFIER": "1",
            "NO_COLOR": "1",
        }

    @classmethod
    def found(cls, root: Path, environment: Mapping[str, str]) -> "GitHub | None":
        """The one on PATH, if any."""
        program = shutil.which(PROGRAM, path=absolute(environment.get("PATH", "")))
        return cls(program, root, environment) if program else None

    def knows(self, host: str) -> bool:
        """Whether the user is logged in there: a GitHub of their own has any name."""
        return self._run("auth", "status", "--hostname", host).returncode == 0

    def open_ones(self, head: str, *, repo: str, owner: str) -> list[PullRequest]:
        """Those of a branch that are open; of another owner's fork none, where that is told."""
        asked = ("--head", head, "--state", "open", "--json", _FIELDS)
        said = self._said("pr", "list", *_at(repo), *asked)
        try:
            found = msgspec.json.decode(said or "[]", type=list[PullRequest])
        except msgspec.MsgspecError as error:
            raise RepositoryError(
                f"`gh pr list` answered what cannot be read: {error}", hint="try `gh --version`"
            ) from error
        still = (each for each in found if each.state in {None, "OPEN"})
        return [each for each in still if _is_theirs(each, owner)]

    def create(self, words: Words, *, repo: str, head: str, base: str, draft: bool) -> str:
        """Open one; its address."""
        said = self._said(*creating(words, repo=repo, head=head, base=base, draft=draft))
        lines = said.strip().splitlines()
        return lines[-1].strip() if lines else ""

    def edit(self, number: int, words: Words, *, repo: str) -> None:
        """Have it say this."""
        what = ("--title", words.title, "--body-file", str(words.body))
        self._said("pr", "edit", str(number), *_at(repo), *what)

    def _said(self, *args: str) -> str:
        done = self._run(*args)
        if done.returncode == _NO_LOGIN:
            raise RepositoryError("gh is not logged in", hint="log in: gh auth login")
        if done.returncode != 0:
            told = " · ".join(done.stderr.decode(errors="replace").split("\n")[:4]).strip(" ·")
            raise RepositoryError(
                f"`gh {' '.join(args[:2])}` failed with {done.returncode}: {told or 'no message'}",
                hint="`gh auth status` and `gh repo view` tell whether gh works here",
            )
        return done.stdout.decode(errors="replace")

    def _run(self, *args: str) -> "subprocess.CompletedProcess[bytes]":
        try:
            return subprocess.run(
                [self._program, *args],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                cwd=self._root,
                env=self._environment,
                timeout=TIMEOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # it cannot be started, or not with such words
            raise RepositoryError(f"gh cannot be run: {error}") from error
        except subprocess.TimeoutExpired:
            raise RepositoryError(
                f"gh was not done after {TIMEOUT} s, and ended", hint="try it once more"
            ) from None


def creating(words: Words, *, repo: str, head: str, base: str, draft: bool) -> tuple[str, ...]:
    """What gh is told to open one; also for people to copy."""
    what = ("--base", base, "--head", head, "--title", words.title, "--body-file", str(words.body))
    return ("pr", "create", *_at(repo), *what, *(("--draft",) if draft else ()))


def _at(repo: str) -> tuple[str, ...]:
    return ("--repo", repo) if repo else ()


def _is_theirs(found: PullRequest, owner: str) -> bool:
    if not owner or found.owner is None or not found.owner.login:
        return True
    return found.owner.login.lower() == owner.lower()
