"""Pushing the integration branch to a remote, and pull requests by the user's own `gh`.

Law: only Windlass's own branch is pushed, only to a configured remote, with the user's own login,
and never over a commit that is not Windlass's. Windlass looks where the remote's branch stands and
pushes for exactly that commit: if another push was quicker, this one fails.

`gh` gets an argument list, never a shell; a body goes by a file. Its answer is judged by its exit
code and its JSON, never by its prose. Nothing is asked at a terminal.
"""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct, field

from windlass.adapters.git.git import Output, absolute, run_remote_git
from windlass.adapters.git.inspect import UserGit
from windlass.adapters.git.layout import Folders, Refs
from windlass.adapters.git.paths import OWN
from windlass.adapters.git.store import Origin
from windlass.adapters.locks import exclusively, wait_until
from windlass.errors import Busy, GitFailed, RepositoryError

_HEADS = "refs/heads/"
_NAME_MAX = 4096
_LOCK_SECONDS = 1.0
"""How long a lock on a ref must lie unchanged: git itself holds one for moments."""
_LOGIN = re.compile(r"(?<=://)[^/@\s]*@")
_SSH = re.compile(r"(?:[^@/\s]+@)?([^@:/\s]{2,}):(?!//|:)(.+)")
_URL = re.compile(r"(?:https?|ssh|git)://(?:[^/@\s]*@)?([^/:\s]+)(?::\d+)?/(.+)")


class Place(Struct, frozen=True, kw_only=True):
    """Where a remote lies."""

    host: str = ""
    """Empty where none is known: a folder of this machine, or a name that only ssh knows."""
    path: str = ""
    """Such as owner/name."""

    @property
    def owner(self) -> str:
        """Whose it is."""
        return self.path.partition("/")[0]


class Remote(Struct, frozen=True, kw_only=True):
    """A remote of the user's, and where it lies."""

    name: str
    url: str
    """As it may be shown: without any login."""
    place: Place


def place_of(url: str) -> Place:
    """The host and the path that a remote's address names."""
    found = _URL.fullmatch(url) or (None if "://" in url else _SSH.fullmatch(url))
    # A host without a dot is a name that only the user's ssh knows, as is whom it stands for.
    if found is None or "." not in found[1]:
        return Place()
    path = found[2].strip("/").removesuffix(".git")
    return Place(host=found[1].lower(), path=path)


class Publisher:
    """Looks at the user's remotes, and pushes one run's branch to one of them."""

    def __init__(
        self, git: UserGit, origin: Origin, environment: Mapping[str, str], *, attended: bool
    ) -> None:
        self._git = git
        self._root = origin.root
        self._git_dir = origin.git_dir
        self._environment = environment
        self._attended = attended

    def remotes(self) -> list[str]:
        """The names of all of them."""
        return self._git.ask("remote").text.split()

    def remote(self, name: str) -> Remote:
        """One of them, which must be configured; its name is no option and no address."""
        if name not in self.remotes() or name.startswith("-"):
            there = ", ".join(self.remotes())
            raise RepositoryError(
                f"there is no remote {name!r} here",
                hint=f"there is: {there}" if there else "git remote add origin URL",
            )
        url = self._git.ask("remote", "get-url", "--push", name).text
        return Remote(name=name, url=_LOGIN.sub("", url), place=place_of(url))

    def usual(self, branch: str | None) -> str:
        """The remote that the user's own `git push` of a branch would take."""
        remotes = self.remotes()
        keys = ([f"branch.{branch}.pushRemote"] if branch else []) + ["remote.pushDefault"]
        for key in keys:
            if (name := self._setting(key)) in remotes:
                return name
        if branch and (followed := self._setting(f"branch.{branch}.remote")) in remotes:
            return followed
        return "origin" if "origin" in remotes else self._only(remotes)

    def home_of(self, branch: str, pushed_to: str) -> str:
        """The remote that a branch follows: another than is pushed to, where that is a fork."""
        followed = self._setting(f"branch.{branch}.remote")
        return followed if followed in self.remotes() else pushed_to

    def _only(self, remotes: list[str]) -> str:
        if len(remotes) == 1:
            return remotes[0]
        if remotes:
            raise RepositoryError(
                f"there are several remotes: {', '.join(remotes)}", hint="say which: --remote NAME"
            )
        raise RepositoryError(
            "this repository has no remote to push to", hint="git remote add origin URL"
        )

    def name_on(self, remote: str, branch: str) -> str:
        """What the remote calls the branch that the user's own one follows."""
        if self._setting(f"branch.{branch}.remote") != remote:
            return branch
        return self._setting(f"branch.{branch}.merge").removeprefix(_HEADS) or branch

    def look(self, remote: Remote, branch: str) -> str | None:
        """Where a branch stands on the remote; None where it has none of that name."""
        ref = f"{_HEADS}{branch}"
        listed = self._reach(remote, "ls-remote", "--heads", remote.name, ref).text
        lines = (line.partition("\t") for line in listed.splitlines())
        return next((commit for commit, _, name in lines if name == ref), None)

    def holds(self, commit: str, other: str) -> bool | None:
        """Whether a commit holds another; None where it is not here to be asked."""
        known = self._git.ask("cat-file", "-e", f"{commit}^{{commit}}", ok=(0, 1, 128))
        if known.code:
            return None
        asked = ("merge-base", "--is-ancestor", other, commit)
        return self._git.ask(*asked, ok=(0, 1)).code == 0

    def push(self, remote: Remote, refs: Refs, tip: str, stands: str | None) -> bool:
        """Have the remote's branch stand at the tip, if it still stands where it was seen.

        Whether there was anything to push. A push that was cut short may have left what this
        repository knows of the remote's branch behind, and locked: it is brought there as well.
        """
        with _pushing(self._git_dir, self._root, remote, refs) as held:
            pushed = self._pushed(remote, refs, tip, stands, held)
            self._know(remote, refs, tip, held)
        return pushed

    def _know(self, remote: Remote, refs: Refs, tip: str, held: int) -> None:
        """Let the user's repository know where the remote's branch stands, as git does."""
        rules = self._git.ask("config", "--get-all", f"remote.{remote.name}.fetch", ok=(0, 1)).text
        usual = f"+{_HEADS}*:refs/remotes/{remote.name}/*"
        ref = known_as(remote, refs)
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", ref)
        if usual in rules.splitlines() and self._git.ask(*asked, ok=(0, 1)).text != tip:
            self._reach(remote, "update-ref", "-m", "windlass pr", ref, tip, held=(held,))

    def _pushed(self, remote: Remote, refs: Refs, tip: str, stands: str | None, held: int) -> bool:
        if stands == tip:
            return False
        if stands is not None and not self._is_ours(stands, refs, tip):
            branch = refs.integration.removeprefix(_HEADS)
            raise RepositoryError(
                f"{branch} on {remote.name} stands at {stands[:10]}, which no run of this plan"
                " made; nothing was pushed",
                hint=f"look at it: git fetch {remote.name} {branch}; then merge it into yours,"
                " or delete it there",
            )
        lease = f"--force-with-lease={refs.integration}:{stands or ''}"
        what = f"{tip}:{refs.integration}"
        options = ("--no-follow-tags", "--recurse-submodules=no", lease)
        self._reach(remote, "push", *options, remote.name, what, held=(held,))
        return True

    def _is_ours(self, commit: str, refs: Refs, tip: str) -> bool:
        """Whether it is in what this run or an earlier one of the plan has merged."""
        if self.holds(commit, commit) is None:
            return False
        listed = self._git.ask(
            "for-each-ref",
            f"--contains={commit}",
            "--format=%(refname)",
            f"refs/windlass/{refs.plan}/*/tip",
        )
        return bool(listed.text) or bool(self.holds(tip, commit))

    def _reach(self, remote: Remote, *args: str, held: Sequence[int] = ()) -> Output:
        try:
            return run_remote_git(
                *args,
                cwd=self._root,
                environment=self._environment,
                attended=self._attended,
                held=held,
            )
        except GitFailed as failure:
            raise RepositoryError(
                f"{remote.name} ({remote.url}) refused `git {args[0]}`: {_remote_message(failure)}",
                hint=f"try it by hand: git {args[0]} {remote.name}",
            ) from failure

    def _setting(self, key: str) -> str:
        return self._git.ask("config", "--get", "--end-of-options", key, ok=(0, 1)).text


def known_as(remote: Remote, refs: Refs) -> str:
    """The ref by which a repository knows of the run's branch on a remote."""
    return f"refs/remotes/{remote.name}/{refs.integration.removeprefix(_HEADS)}"


@contextmanager
def _pushing(git_dir: Path, root: Path, remote: Remote, refs: Refs) -> Generator[int]:
    """Be the only push of a plan; what one that was cut short has locked is let go.

    The file that is held says which lock may be left. Only Windlass's own branch is pushed, so only
    a lock on what is known of that branch is ever removed, and none that another git still uses.
    """
    busy = Busy("another push of this plan goes on", hint="wait for its end, then `windlass pr`")
    with exclusively(Folders(root / OWN, refs.plan).home / "push", busy) as held:
        left = os.pread(held, _NAME_MAX, 0).decode(errors="replace")
        if left.startswith("refs/remotes/"):
            _remove_stale_lock(git_dir / f"{left.strip()}.lock")
        os.ftruncate(held, 0)
        os.pwrite(held, f"{known_as(remote, refs)}\n".encode(), 0)
        os.fsync(held)
        yield held
        os.ftruncate(held, 0)


def _remove_stale_lock(lock: Path) -> None:
    """Remove a lock that nothing has changed for as long as no git needs one."""
    if not lock.exists():
        return
    seen = lock.stat()
    if wait_until(lambda: not lock.exists(), _LOCK_SECONDS):
        return
    with contextlib.suppress(FileNotFoundError):
        now = lock.stat()
        if (now.st_ino, now.st_mtime_ns) == (seen.st_ino, seen.st_mtime_ns):
            lock.unlink()


def _remote_message(failure: GitFailed) -> str:
    """What the remote said, with no login in it: its own words are more than git's last line."""
    lines = [_LOGIN.sub("", line).strip() for line in failure.stderr.splitlines()]
    said = [line for line in lines if line and not line.startswith(("hint:", "To ", "Everything"))]
    return " · ".join(said[:6]) or f"it ended with {failure.code}"


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
