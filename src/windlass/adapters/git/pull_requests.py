"""Pushing the integration branch to a remote, and pull requests by the user's own `gh`.

Law: only Windlass's own branch is pushed, only to a configured remote, with the user's own login,
and never over a commit that is not Windlass's. Windlass reads the commit of the remote's branch and
pushes with a lease on it: if another push came first, this one fails.

`gh` gets an argument list, never a shell; a body is passed as a file. Only its exit code and its
JSON decide, never its prose. It never prompts.
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
"""How long a lock on a ref must stay unchanged: git itself holds one for moments."""
_LOGIN = re.compile(r"(?<=://)[^/@\s]*@")
_SSH = re.compile(r"(?:[^@/\s]+@)?([^@:/\s]{2,}):(?!//|:)(.+)")
_URL = re.compile(r"(?:https?|ssh|git)://(?:[^/@\s]*@)?([^/:\s]+)(?::\d+)?/(.+)")


class Place(Struct, frozen=True, kw_only=True):
    """The host and path of a remote."""

    host: str = ""
    """Empty if not known: a folder of this machine, or a name that only ssh knows."""
    path: str = ""
    """Such as owner/name."""

    @property
    def owner(self) -> str:
        return self.path.partition("/")[0]


class Remote(Struct, frozen=True, kw_only=True):
    """One of the user's remotes."""

    name: str
    url: str
    """For display: without any login."""
    place: Place


def place_of(url: str) -> Place:
    """The host and the path in a remote's URL."""
    found = _URL.fullmatch(url) or (None if "://" in url else _SSH.fullmatch(url))
    # A host without a dot is a name that only the user's ssh can resolve.
    if found is None or "." not in found[1]:
        return Place()
    path = found[2].strip("/").removesuffix(".git")
    return Place(host=found[1].lower(), path=path)


class Publisher:
    """Reads the user's remotes, and pushes one run's branch to one of them."""

    def __init__(
        self, git: UserGit, origin: Origin, environment: Mapping[str, str], *, attended: bool
    ) -> None:
        self._git = git
        self._root = origin.root
        self._git_dir = origin.git_dir
        self._environment = environment
        self._attended = attended

    def remotes(self) -> list[str]:
        return self._git.ask("remote").text.split()

    def remote(self, name: str) -> Remote:
        """A configured remote; an option or a URL is refused."""
        if name not in self.remotes() or name.startswith("-"):
            there = ", ".join(self.remotes())
            raise RepositoryError(
                f"there is no remote {name!r} here",
                hint=f"there is: {there}" if there else "git remote add origin URL",
            )
        url = self._git.ask("remote", "get-url", "--push", name).text
        return Remote(name=name, url=_LOGIN.sub("", url), place=place_of(url))

    def default_remote(self, branch: str | None) -> str:
        """The remote that the user's own `git push` of a branch would use."""
        remotes = self.remotes()
        keys = ([f"branch.{branch}.pushRemote"] if branch else []) + ["remote.pushDefault"]
        for key in keys:
            if (name := self._setting(key)) in remotes:
                return name
        if branch and (followed := self._setting(f"branch.{branch}.remote")) in remotes:
            return followed
        return "origin" if "origin" in remotes else self._only(remotes)

    def upstream_remote(self, branch: str, pushed_to: str) -> str:
        """The remote that a branch tracks: not the one pushed to, if that is a fork."""
        followed = self._setting(f"branch.{branch}.remote")
        return followed if followed in self.remotes() else pushed_to

    def _only(self, remotes: list[str]) -> str:
        if len(remotes) == 1:
            return remotes[0]
        if remotes:
            raise RepositoryError(
                f"there are several remotes: {', '.join(remotes)}", hint="choose one: --remote NAME"
            )
        raise RepositoryError(
            "this repository has no remote to push to", hint="git remote add origin URL"
        )

    def upstream_branch(self, remote: str, branch: str) -> str:
        """The name on the remote of the branch that a local branch tracks."""
        if self._setting(f"branch.{branch}.remote") != remote:
            return branch
        return self._setting(f"branch.{branch}.merge").removeprefix(_HEADS) or branch

    def look(self, remote: Remote, branch: str) -> str | None:
        """The commit of a branch on the remote; None if it has no such branch."""
        ref = f"{_HEADS}{branch}"
        listed = self._reach(remote, "ls-remote", "--heads", remote.name, ref).text
        lines = (line.partition("\t") for line in listed.splitlines())
        return next((commit for commit, _, name in lines if name == ref), None)

    def holds(self, commit: str, other: str) -> bool | None:
        """Whether a commit contains another; None if the commit is not in this repository."""
        known = self._git.ask("cat-file", "-e", f"{commit}^{{commit}}", ok=(0, 1, 128))
        if known.code:
            return None
        asked = ("merge-base", "--is-ancestor", other, commit)
        return self._git.ask(*asked, ok=(0, 1)).code == 0

    def push(self, remote: Remote, refs: Refs, tip: str, seen: str | None) -> bool:
        """Move the remote's branch to the tip, if it is still where it was seen.

        Returns whether there was anything to push. A push that was cut short may have left the
        remote-tracking ref behind, and locked: it is updated too.
        """
        with _pushing(self._git_dir, self._root, remote, refs) as held:
            pushed = self._push(remote, refs, tip, seen, held)
            self._update_tracking_ref(remote, refs, tip, held)
        return pushed

    def _update_tracking_ref(self, remote: Remote, refs: Refs, tip: str, held: int) -> None:
        """Update the user's remote-tracking ref, as git does after a push."""
        rules = self._git.ask("config", "--get-all", f"remote.{remote.name}.fetch", ok=(0, 1)).text
        usual = f"+{_HEADS}*:refs/remotes/{remote.name}/*"
        ref = _tracking_ref(remote, refs)
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", ref)
        if usual in rules.splitlines() and self._git.ask(*asked, ok=(0, 1)).text != tip:
            self._reach(remote, "update-ref", "-m", "windlass pr", ref, tip, held=(held,))

    def _push(self, remote: Remote, refs: Refs, tip: str, seen: str | None, held: int) -> bool:
        if seen == tip:
            return False
        if seen is not None and not self._is_ours(seen, refs, tip):
            branch = refs.integration.removeprefix(_HEADS)
            raise RepositoryError(
                f"{branch} on {remote.name} is at {seen[:10]}, which no run of this plan"
                " made; nothing was pushed",
                hint=f"look at it: git fetch {remote.name} {branch}; then merge it into yours,"
                " or delete it there",
            )
        lease = f"--force-with-lease={refs.integration}:{seen or ''}"
        what = f"{tip}:{refs.integration}"
        options = ("--no-follow-tags", "--recurse-submodules=no", lease)
        self._reach(remote, "push", *options, remote.name, what, held=(held,))
        return True

    def _is_ours(self, commit: str, refs: Refs, tip: str) -> bool:
        """Whether the commit is in the tip of a run of the plan, or in its squashed commits."""
        if self.holds(commit, commit) is None:
            return False
        listed = self._git.ask(
            "for-each-ref",
            f"--contains={commit}",
            "--format=%(refname)",
            f"refs/windlass/{refs.plan}/*/tip",
            f"refs/windlass/{refs.plan}/*/squash/*",
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


def _tracking_ref(remote: Remote, refs: Refs) -> str:
    """The remote-tracking ref of the run's branch."""
    return f"refs/remotes/{remote.name}/{refs.integration.removeprefix(_HEADS)}"


@contextmanager
def _pushing(git_dir: Path, root: Path, remote: Remote, refs: Refs) -> Generator[int]:
    """Be the only push of a plan, and remove the lock of a push that was cut short.

    The held file names the ref whose lock may be left. Only Windlass's own branch is pushed, so
    only a lock on its remote-tracking ref is ever removed, and never one that another git uses.
    """
    busy = Busy(
        "another push of this plan is running", hint="wait until it ends, then `windlass pr`"
    )
    with exclusively(Folders(root / OWN, refs.plan).home / "push", busy) as held:
        left = os.pread(held, _NAME_MAX, 0).decode(errors="replace")
        if left.startswith("refs/remotes/"):
            remove_stale_lock(git_dir / f"{left.strip()}.lock")
        os.ftruncate(held, 0)
        os.pwrite(held, f"{_tracking_ref(remote, refs)}\n".encode(), 0)
        os.fsync(held)
        yield held
        os.ftruncate(held, 0)


def remove_stale_lock(lock: Path) -> None:
    """Remove a lock that stays unchanged for longer than git needs one."""
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
    """The remote's message without logins: it has more than git's last line."""
    lines = [_LOGIN.sub("", line).strip() for line in failure.stderr.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("hint:", "To ", "Everything"))]
    return " · ".join(kept[:6]) or f"it ended with exit code {failure.code}"


PROGRAM = "gh"
TIMEOUT = 120
"""Seconds after which it counts as stuck."""
_NO_LOGIN = 4
"""The exit code of gh when it needs a login."""
_FIELDS = "number,url,state,title,body,isDraft,baseRefName,headRepositoryOwner"


class Owner(Struct, frozen=True):
    """The owner of the repository that a branch is in."""

    login: str = ""


class PullRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """An open pull request; fields that gh did not report are None."""

    number: int
    url: str | None = None
    state: str | None = None
    title: str | None = None
    body: str | None = None
    is_draft: bool | None = None
    base: str | None = field(default=None, name="baseRefName")
    owner: Owner | None = field(default=None, name="headRepositoryOwner")


class Words(Struct, frozen=True, kw_only=True):
    """The text of a pull request."""

    title: str
    body: Path
    """The file with the body."""


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
        """The gh on PATH, if any."""
        program = shutil.which(PROGRAM, path=absolute(environment.get("PATH", "")))
        return cls(program, root, environment) if program else None

    def is_logged_in(self, host: str) -> bool:
        """Whether the user is logged in at this host; GitHub Enterprise may have any name."""
        return self._run("auth", "status", "--hostname", host).returncode == 0

    def open_pull_requests(self, head: str, *, repo: str, owner: str) -> list[PullRequest]:
        """The open pull requests of a branch, without those of another owner's fork."""
        asked = ("--head", head, "--state", "open", "--json", _FIELDS)
        output = self._output("pr", "list", *_at(repo), *asked)
        try:
            found = msgspec.json.decode(output or "[]", type=list[PullRequest])
        except msgspec.MsgspecError as error:
            raise RepositoryError(
                f"the output of `gh pr list` cannot be read: {error}", hint="try `gh --version`"
            ) from error
        still = (each for each in found if each.state in {None, "OPEN"})
        return [each for each in still if _is_of(each, owner)]

    def create(self, words: Words, *, repo: str, head: str, base: str, draft: bool) -> str:
        """Open a pull request; returns its URL."""
        output = self._output(*create_command(words, repo=repo, head=head, base=base, draft=draft))
        lines = output.strip().splitlines()
        return lines[-1].strip() if lines else ""

    def edit(self, number: int, words: Words, *, repo: str) -> None:
        """Replace the text of a pull request."""
        what = ("--title", words.title, "--body-file", str(words.body))
        self._output("pr", "edit", str(number), *_at(repo), *what)

    def _output(self, *args: str) -> str:
        done = self._run(*args)
        if done.returncode == _NO_LOGIN:
            raise RepositoryError("gh is not logged in", hint="log in: gh auth login")
        if done.returncode != 0:
            why = " · ".join(done.stderr.decode(errors="replace").split("\n")[:4]).strip(" ·")
            raise RepositoryError(
                f"`gh {' '.join(args[:2])}` failed with {done.returncode}: {why or 'no message'}",
                hint="`gh auth status` and `gh repo view` show whether gh works here",
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
        except (OSError, ValueError) as error:  # it cannot be started, or not with these arguments
            raise RepositoryError(f"gh cannot be run: {error}") from error
        except subprocess.TimeoutExpired:
            raise RepositoryError(
                f"gh was not done after {TIMEOUT} s, and was stopped", hint="try again"
            ) from None


def create_command(
    words: Words, *, repo: str, head: str, base: str, draft: bool
) -> tuple[str, ...]:
    """The arguments with which gh opens a pull request; also for people to copy."""
    what = ("--base", base, "--head", head, "--title", words.title, "--body-file", str(words.body))
    return ("pr", "create", *_at(repo), *what, *(("--draft",) if draft else ()))


def _at(repo: str) -> tuple[str, ...]:
    return ("--repo", repo) if repo else ()


def _is_of(found: PullRequest, owner: str) -> bool:
    if not owner or found.owner is None or not found.owner.login:
        return True
    return found.owner.login.lower() == owner.lower()
