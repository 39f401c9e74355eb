"""A look at the user's repository before a run: what it is, and whether Windlass can work in it.

Everything that would go wrong later is refused here, with one clear line, and nothing is changed.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from windlass.adapters.git.git import MINIMUM, Output, ask
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.store import HELD_SETTINGS, Origin
from windlass.errors import GitFailed, RepositoryError

_GITLINK = "160000"
_MAX_BORROWED = 5
"""How many object folders in a row a repository may borrow from; git's own bound."""


class Base(Struct, frozen=True, kw_only=True):
    """The commit a run works from."""

    commit: str
    branch: str | None
    warnings: tuple[str, ...] = ()


def locate(directory: Path, environment: Mapping[str, str]) -> Origin:
    """The repository around a folder, fit to work in."""
    if not directory.is_dir():
        raise RepositoryError(f"{directory} is no folder")
    _refuse_old_git(directory, environment)
    inside = _ask(directory, environment, "rev-parse", "--is-bare-repository", ok=(0, 128))
    if inside.code:
        raise RepositoryError(
            f"{directory} is in no git repository: {_last_line(inside)}",
            hint="run this inside one, or make one with `git init`",
        )
    if inside.text == "true":
        raise RepositoryError(
            f"{directory} is a bare repository",
            hint="Windlass needs a checkout to read the plan from: clone it and run there",
        )
    git_dir = Path(
        _ask(directory, environment, "rev-parse", "--path-format=absolute", "--git-common-dir").text
    )
    root = _main_worktree(directory, environment)
    return Origin(
        root=root,
        git_dir=git_dir,
        objects=_object_folders(git_dir / "objects"),
        object_format=_ask(directory, environment, "rev-parse", "--show-object-format").text,
        identity={},
        settings=_held_settings(directory, environment),
        excludes=_user_excludes(directory, environment, git_dir),
    )


def identity(directory: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Whose name commits carry: the user's, as git itself would have it."""
    variables: dict[str, str] = {}
    for role in ("AUTHOR", "COMMITTER"):
        asked = ("-c", "user.useConfigOnly=true", "var", f"GIT_{role}_IDENT")
        answer = ask(*asked, cwd=directory, environment=environment, ok=(0, 128))
        found = re.fullmatch(r"(.*) <(.*)> \d+ [+-]\d{4}", answer.text)
        if answer.code or found is None:
            raise RepositoryError(
                "git does not know whose name commits carry here",
                hint='set it: git config user.name "Your Name"; git config user.email you@host',
            )
        variables[f"GIT_{role}_NAME"], variables[f"GIT_{role}_EMAIL"] = found.groups()
    return variables


def base(
    origin: Origin, directory: Path, wanted: str | None, environment: Mapping[str, str]
) -> Base:
    """The commit to work from, refused where Windlass would do half a job."""
    name = wanted or "HEAD"
    found = _ask(
        directory,
        environment,
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        f"{name}^{{commit}}",
        ok=(0, 1, 128),
    )
    if found.code:
        raise _no_base(wanted)
    commit = found.text
    _refuse_submodules(directory, environment, commit)
    _refuse_filters(directory, environment, commit)
    branch, warnings = _branch(directory, environment, wanted)
    dirty = _ask(directory, environment, "status", "--porcelain", "--ignore-submodules")
    if dirty.text:
        count = len(dirty.text.splitlines())
        warnings.append(
            f"{count} uncommitted change{'s' * (count != 1)} in {origin.root.name} are not part of"
            f" the run: it works from commit {commit[:10]}"
        )
    return Base(commit=commit, branch=branch, warnings=tuple(warnings))


def refuse_clashing_branches(origin: Origin, refs: Refs, environment: Mapping[str, str]) -> None:
    """A branch that is called as one of our folders keeps every branch of ours from existing."""
    parts = refs.integration.split("/")
    folders = ["/".join(parts[:i]) for i in range(3, len(parts))]
    clash = _ask(origin.root, environment, "for-each-ref", "--format=%(refname)", *folders)
    taken = [ref for ref in clash.text.splitlines() if ref in folders]
    below = _ask(
        origin.root, environment, "for-each-ref", "--format=%(refname)", refs.integration + "/"
    )
    if taken or below.text:
        name = (taken or below.text.splitlines())[0].removeprefix("refs/heads/")
        raise RepositoryError(
            f"branch {name!r} stands where {refs.integration.removeprefix('refs/heads/')!r} goes",
            hint=f"rename it: git branch -m {name} {name.replace('/', '-')}-old",
        )


def _no_base(wanted: str | None) -> RepositoryError:
    if wanted is None:
        return RepositoryError(
            "this repository has no commit yet", hint="make a first one: git commit --allow-empty"
        )
    return RepositoryError(
        f"the base {wanted!r} is no commit here", hint="name a branch or a commit that exists"
    )


def _branch(
    directory: Path, environment: Mapping[str, str], wanted: str | None
) -> tuple[str | None, list[str]]:
    if wanted is not None:
        named = _ask(
            directory, environment, "show-ref", "--verify", f"refs/heads/{wanted}", ok=(0, 1, 128)
        )
        return (wanted, []) if named.code == 0 else (None, [])
    head = _ask(directory, environment, "symbolic-ref", "--quiet", "--short", "HEAD", ok=(0, 1))
    if head.code == 0:
        return head.text, []
    return None, ["HEAD is detached: the run works from that commit, and no branch will follow"]


def _refuse_submodules(directory: Path, environment: Mapping[str, str], commit: str) -> None:
    listed = _ask(directory, environment, "ls-tree", "-r", "-z", "--full-tree", commit)
    for entry in listed.fields:
        if entry.startswith(_GITLINK):
            raise RepositoryError(
                f"the repository has a submodule at {entry.partition(chr(9))[2]!r}",
                hint="Windlass does not work with submodules yet; nothing was started",
            )


def _refuse_filters(directory: Path, environment: Mapping[str, str], commit: str) -> None:
    """LFS and its kin keep the content elsewhere, where a workspace would not find it."""
    found = _ask(
        directory,
        environment,
        "grep",
        "-h",
        "-I",
        "-E",
        "-e",
        r"(^|[[:space:]])filter=",
        commit,
        "--",
        ":(top,glob)**/.gitattributes",
        ok=(0, 1),
    )
    for line in found.text.splitlines():
        for name in re.findall(r"\sfilter=(\S+)", line):
            configured = _ask(
                directory,
                environment,
                "config",
                "--get-regexp",
                f"^filter\\.{re.escape(name)}\\.",
                ok=(0, 1),
            )
            if name == "lfs" or configured.text:
                raise RepositoryError(
                    f"the repository keeps files through the filter {name!r} (.gitattributes)",
                    hint="Windlass does not work with LFS and its kin yet; nothing was started",
                )


def _refuse_old_git(directory: Path, environment: Mapping[str, str]) -> None:
    try:
        said = ask("version", cwd=directory, environment=environment).text
    except FileNotFoundError:
        raise RepositoryError("git is not installed", hint="install git 2.38 or newer") from None
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < MINIMUM:
        raise RepositoryError(f"{said!r} is too old", hint="install git 2.38 or newer")


def _main_worktree(directory: Path, environment: Mapping[str, str]) -> Path:
    listed = _ask(directory, environment, "worktree", "list", "--porcelain")
    return Path(listed.text.splitlines()[0].removeprefix("worktree "))


def _object_folders(objects: Path) -> tuple[Path, ...]:
    """The folder and those it borrows from, which a sandbox must show as well."""
    folders = [objects]
    for folder in folders:
        alternates = folder / "info" / "alternates"
        if alternates.is_file() and len(folders) <= _MAX_BORROWED:
            lines = alternates.read_text().splitlines()
            borrowed = (folder / line for line in lines if line and not line.startswith("#"))
            folders.extend(path.resolve() for path in borrowed)
    return tuple(folders)


def _held_settings(directory: Path, environment: Mapping[str, str]) -> dict[str, str]:
    answers = {
        name: _ask(directory, environment, "config", "--get", name, ok=(0, 1))
        for name in HELD_SETTINGS
    }
    return {name: answer.text for name, answer in answers.items() if answer.text}


def _user_excludes(
    directory: Path, environment: Mapping[str, str], git_dir: Path
) -> tuple[str, ...]:
    configured = _ask(
        directory, environment, "config", "--type=path", "--get", "core.excludesFile", ok=(0, 1)
    )
    home = Path(environment.get("HOME", "/"))
    config_home = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    lines: list[str] = []
    for path in (
        Path(configured.text) if configured.text else config_home / "git" / "ignore",
        git_dir / "info" / "exclude",
    ):
        if path.is_file():
            lines += path.read_text(errors="replace").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def _ask(
    directory: Path, environment: Mapping[str, str], *args: str, ok: tuple[int, ...] = (0,)
) -> Output:
    try:
        return ask(*args, cwd=directory, environment=environment, ok=ok)
    except GitFailed as failure:
        raise RepositoryError(failure.message) from failure


def _last_line(output: Output) -> str:
    return (output.stderr.strip().splitlines() or [""])[-1].removeprefix("fatal: ")
