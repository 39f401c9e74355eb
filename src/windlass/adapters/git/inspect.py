"""What Windlass reads of the user's repository: whether it can work there, what commits changed.

Before a run: everything that would fail later is refused here, with one clear line, and nothing is
changed. Afterwards: how much differs between commits, for reports (a commit that git no longer has
is left out), and what differs, file by file. Every entry that differs is named, binary files,
renames, modes and submodules included.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct

from windlass.adapters.git.git import MINIMUM, SUBMODULE, Output, ask
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.paths import MOST_RULES, OWN, RULES, as_any_file_system
from windlass.adapters.git.store import HELD_SETTINGS, Origin, Store, printable, printable_line
from windlass.core.settings import WorkspaceSettings
from windlass.errors import GitFailed, RepositoryError
from windlass.ports import Change, Changes, Patch

_HEADS = "refs/heads/"
_HASH = re.compile(r"[0-9a-fA-F]{4,64}")
_MAX_BORROWED = 5
"""How many object folders in a row a repository may borrow from; git's own bound."""


class UserGit(Struct, frozen=True):
    """The user's own git, in a folder of theirs, asked only what changes nothing."""

    directory: Path
    environment: Mapping[str, str]

    def ask(self, *args: str, ok: tuple[int, ...] = (0,), stdin: str = "") -> Output:
        """The answer; an exit code that is not `ok` is said as git said it."""
        try:
            return ask(*args, cwd=self.directory, environment=self.environment, ok=ok, stdin=stdin)
        except GitFailed as failure:
            raise RepositoryError(failure.message) from failure


class Base(Struct, frozen=True, kw_only=True):
    """The commit a run works from."""

    commit: str
    branch: str | None
    warnings: tuple[str, ...] = ()


def locate(git: UserGit) -> Origin:
    """The repository around a folder, fit to work in."""
    directory = git.directory
    if not directory.is_dir():
        raise RepositoryError(f"{directory} is no folder")
    _refuse_old_git(git)
    inside = git.ask("rev-parse", "--is-bare-repository", ok=(0, 128))
    if inside.code:
        raise _no_repository(directory, inside)
    if inside.text == "true":
        raise RepositoryError(
            f"{directory} is a bare repository",
            hint="Windlass needs a checkout to read the plan from: clone it and run there",
        )
    asked = ("--git-common-dir", "--git-dir", "--show-toplevel", "--show-object-format")
    answer = git.ask("rev-parse", "--path-format=absolute", *asked, ok=(0, 128))
    if answer.code:
        raise RepositoryError(
            f"{directory} is inside a git directory", hint="run this in the checkout it belongs to"
        )
    lines = answer.text.split("\n")
    if len(lines) != len(asked):
        raise RepositoryError(
            f"{str(directory)!r} lies in a folder with a line break in its name",
            hint="git keeps such paths in lists of lines; rename the folder",
        )
    git_dir, own_git_dir, top = (Path(line) for line in lines[:3])
    root = top if own_git_dir == git_dir else _main_worktree(git, git_dir)
    _refuse_undecodable(root)
    return Origin(
        root=root,
        git_dir=git_dir,
        objects=_object_folders(git_dir / "objects"),
        object_format=lines[3],
        identity={},
        settings=_held_settings(git),
        excludes=_user_excludes(git, git_dir),
    )


def _refuse_undecodable(root: Path) -> None:
    """Paths are recorded, and written into files that are text."""
    if any("\ud800" <= letter <= "\udfff" for letter in str(root)):
        raise RepositoryError(
            f"{str(root)!r} lies in a folder whose name is not UTF-8", hint="rename the folder"
        )


def identity(git: UserGit) -> dict[str, str]:
    """Whose name commits carry: the user's, as git itself would have it."""
    variables: dict[str, str] = {}
    for role in ("AUTHOR", "COMMITTER"):
        asked = ("-c", "user.useConfigOnly=true", "var", f"GIT_{role}_IDENT")
        answer = git.ask(*asked, ok=(0, 128))
        found = re.fullmatch(r"(.*) <(.*)> \d+ [+-]\d{4}", answer.text)
        if answer.code or found is None:
            raise RepositoryError(
                "git does not know whose name commits carry here",
                hint='set it: git config user.name "Your Name"; git config user.email you@host',
            )
        variables[f"GIT_{role}_NAME"], variables[f"GIT_{role}_EMAIL"] = found.groups()
    return variables


def why_not_in(git: UserGit, base: str, commit: str) -> str | None:
    """Why the base does not hold the commit of that hash, or None where it does."""
    if not _HASH.fullmatch(commit):
        return "what is named there is no commit's hash"
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    found = git.ask(*asked, ok=(0, 1, 128))
    if found.code or not found.text.startswith(commit.lower()):
        return f"git knows no commit {commit[:40]}"
    inside = git.ask("merge-base", "--is-ancestor", found.text, base, ok=(0, 1))
    return f"{found.text[:10]} is not in {base[:10]}" if inside.code else None


def branch_stands(git: UserGit, branch: str) -> str | None:
    """The commit that a branch stands at; None where there is no such branch."""
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"refs/heads/{branch}")
    found = git.ask(*asked, ok=(0, 1, 128))
    return found.text or None if found.code == 0 else None


def full_name(git: UserGit, commit: str) -> str:
    """The whole hash of a commit that is there."""
    return git.ask("rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}").text


def base(git: UserGit, wanted: str | None, own: tuple[str, ...] = ()) -> Base:
    """The commit to work from, refused where Windlass would do half a job."""
    ref, warnings = _branch(git, wanted)
    found = git.ask(
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        # A tag of the same name must not be taken for the branch that will follow.
        f"{ref or wanted or 'HEAD'}^{{commit}}",
        ok=(0, 1, 128),
    )
    if found.code:
        raise _no_base(wanted)
    commit = found.text
    _refuse_missing(git, commit)
    entries = git.ask("ls-tree", "-r", "-z", "--full-tree", commit).fields
    _refuse_submodules(entries)
    _refuse_own(entries)
    _refuse_endless_rules(git, entries)
    _refuse_filters(git, commit, [entry.partition("\t")[2] for entry in entries])
    branch = ref.removeprefix(_HEADS) if ref is not None else None
    told = (*warnings, *reminders(git, commit, own))
    return Base(commit=commit, branch=branch, warnings=told)


def reminders(git: UserGit, commit: str, own: tuple[str, ...]) -> list[str]:
    """What of the user's checkout and settings a run that works from the commit leaves out."""
    told: list[str] = []
    status = git.ask(
        "status",
        "--porcelain",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules",
    )
    dirty = [entry for entry in status.fields if not entry[3:].startswith(own)]
    if dirty:
        count = len(dirty)
        told.append(
            f"{count} uncommitted change{'s are' if count != 1 else ' is'} not part of the run:"
            f" it works from commit {commit[:10]}"
        )
    if git.ask("config", "--type=bool", "--get", "commit.gpgSign", ok=(0, 1)).text == "true":
        told.append("commit.gpgSign is set, and no commit of a run is signed: sign what you land")
    return told


def refuse_own_tracked(git: UserGit) -> None:
    """Raise where what is checked out brings Windlass's own, whatever a run works from."""
    _refuse_own(git.ask("ls-files", "--stage", "--full-name", "-z", "--", ":/").fields)


def refuse_clashing_branches(git: UserGit, refs: Refs) -> None:
    """A branch that is called as one of our folders keeps every branch of ours from existing."""
    parts = refs.integration.split("/")
    folders = ["/".join(parts[:i]) for i in range(3, len(parts))]
    clash = git.ask("for-each-ref", "--format=%(refname)", *folders)
    taken = [ref for ref in clash.text.splitlines() if ref in folders]
    below = git.ask("for-each-ref", "--format=%(refname)", refs.integration + "/")
    if taken or below.text:
        name = (taken or below.text.splitlines())[0].removeprefix(_HEADS)
        raise RepositoryError(
            f"branch {name!r} stands where {refs.integration.removeprefix(_HEADS)!r} goes",
            hint=f"rename it: git branch -m {name} {name.replace('/', '-')}-old",
        )


def refuse_unlinkable(origin: Origin, settings: WorkspaceSettings) -> None:
    """A linked worktree without the user's configuration, which agents must not see."""
    if settings.kind == "worktree" and origin.object_format != "sha1":
        raise RepositoryError(
            f'kind = "worktree" does not work with {origin.object_format} objects',
            hint='use [workspace] kind = "clone"',
        )


_NOWHERE = "not a git repository (or any of the parent directories)"
"""What git says where there is simply none; it says no more than Windlass does."""


def _no_repository(directory: Path, answer: Output) -> RepositoryError:
    said = [line.strip() for line in answer.stderr.splitlines() if line.strip()] or [""]
    why = said[0].removeprefix("fatal: ")
    if said[-1].startswith("git config "):  # it is somebody else's, and git says the cure itself
        return RepositoryError(f"{directory}: {why}", hint=f"if you trust it: {said[-1]}")
    more = "" if why.startswith(_NOWHERE) else f": {why}"
    return RepositoryError(
        f"{directory} is in no git repository{more}",
        hint="run this inside one, or make one with `git init`",
    )


def _no_base(wanted: str | None) -> RepositoryError:
    if wanted is None:
        return RepositoryError(
            "this repository has no commit yet", hint="make a first one: git commit --allow-empty"
        )
    return RepositoryError(
        f"the base {wanted!r} is no commit here", hint="name a branch or a commit that exists"
    )


def _branch(git: UserGit, wanted: str | None) -> tuple[str | None, list[str]]:
    """The ref of the branch that is meant, if it is one."""
    if wanted is not None:
        short = wanted.removeprefix("refs/").removeprefix("heads/")
        refs = dict.fromkeys((f"{_HEADS}{wanted}", f"{_HEADS}{short}"))
        there = (
            ref for ref in refs if not git.ask("show-ref", "--verify", ref, ok=(0, 1, 128)).code
        )
        return next(there, None), []
    head = git.ask("symbolic-ref", "--quiet", "HEAD", ok=(0, 1))
    if head.code or not head.text.startswith(_HEADS):
        return None, ["HEAD is detached: the run works from that commit, and no branch will follow"]
    if not head.text.isprintable():  # it could not even be written down
        return None, ["the branch's name is no plain text: no branch will follow the run"]
    return head.text, []


def _refuse_submodules(entries: list[str]) -> None:
    for entry in entries:
        if entry.startswith(SUBMODULE):
            raise RepositoryError(
                f"the repository has a submodule at {entry.partition(chr(9))[2]!r}",
                hint="Windlass does not work with submodules yet; nothing was started",
            )


def _refuse_own(entries: list[str]) -> None:
    """A branch that carries commands to runs, and their records, over those that are here."""
    for path in (entry.partition("\t")[2] for entry in entries):
        top, *below = map(as_any_file_system, path.split("/", 2))
        if top == OWN and (not below or below[0] == "plans"):
            raise RepositoryError(
                f"the repository tracks {path!r}, where Windlass keeps its own",
                hint=f"take it out: git rm -r --cached {'/'.join(path.split('/')[:2])!r}; commit",
            )


def _refuse_endless_rules(git: UserGit, entries: list[str]) -> None:
    """Rules of a size at which no snapshot would be taken, whatever a Player does."""
    split = [entry.partition("\t") for entry in entries]
    rules = {path: told.split()[2] for told, _, path in split if path.rpartition("/")[2] in RULES}
    asked = "".join(f"{blob}\n" for blob in rules.values())
    sizes = git.ask("cat-file", "--batch-check=%(objectsize)", stdin=asked).text.split()
    by_folder: Counter[PurePosixPath] = Counter()
    for path, size in zip(rules, map(int, sizes), strict=True):
        by_folder[PurePosixPath(path).parent] += size
    for folder in by_folder:
        if sum(by_folder[way] for way in (folder, *folder.parents)) > MOST_RULES:
            raise RepositoryError(
                f"{', '.join(sorted(RULES))} in {str(folder)!r} and above have more than "
                f"{MOST_RULES:,} bytes",
                hint="Windlass takes no more, for git holds all of it for every file; shorten them",
            )


def _refuse_missing(git: UserGit, commit: str) -> None:
    """A partial clone fetches what it lacks when it is asked for, which no workspace can do."""
    promised = git.ask(
        "config", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$", ok=(0, 1)
    )
    if not promised.text:
        return
    listed = git.ask("rev-list", "--objects", "--missing=print", "--max-count=1", commit)
    missing = sum(line.startswith("?") for line in listed.text.splitlines())
    if missing:
        raise RepositoryError(
            f"this partial clone lacks {missing} of the objects of {commit[:10]}",
            hint="check that commit out once, so that git fetches them, or use a full clone",
        )


def _refuse_filters(git: UserGit, commit: str, paths: list[str]) -> None:
    """LFS and its kin keep the content elsewhere, where a workspace would not find it."""
    for name in sorted(_committed_filters(git, commit) | _local_filters(git, paths)):
        configured = git.ask("config", "--get-regexp", f"^filter\\.{re.escape(name)}\\.", ok=(0, 1))
        if name == "lfs" or configured.text:
            raise RepositoryError(
                f"the repository keeps files through the filter {name!r} (gitattributes)",
                hint="Windlass does not work with LFS and its kin yet; nothing was started",
            )


def _committed_filters(git: UserGit, commit: str) -> set[str]:
    found = git.ask(
        *("grep", "--no-color", "-h", "-I", "-E", "-e", r"(^|[[:space:]])filter="),
        *(commit, "--", ":(top,glob)**/.gitattributes"),
        ok=(0, 1),
    )
    return set(re.findall(r"\sfilter=(\S+)", found.text))


def _local_filters(git: UserGit, paths: list[str]) -> set[str]:
    """Those that attributes of the user's own give to files of the base."""
    top = git.ask("rev-parse", "--show-toplevel").text
    told = "".join(f"{path}\0" for path in paths)
    answer = git.ask("-C", top, "check-attr", "-z", "--stdin", "filter", stdin=told)
    return set(answer.fields[2::3]) - {"unspecified", "unset", "set"}


def _refuse_old_git(git: UserGit) -> None:
    try:
        said = git.ask("version").text
    except FileNotFoundError:
        raise RepositoryError("git is not installed", hint="install git 2.38 or newer") from None
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < MINIMUM:
        raise RepositoryError(f"{said!r} is too old", hint="install git 2.38 or newer")


def _main_worktree(git: UserGit, git_dir: Path) -> Path:
    """Seen from a linked worktree: where Windlass keeps its folder, and people their checkout."""
    listed = git.ask("worktree", "list", "--porcelain", "-z")
    main = Path(listed.fields[0].removeprefix("worktree "))
    if not (main / ".git").is_dir():
        # The main worktree of a bare repository is none, and of others git does not know where.
        raise RepositoryError(
            f"{git.directory} is a worktree of {git_dir}, which has no checkout of its own",
            hint="run this in a plain clone",
        )
    return main


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


def _held_settings(git: UserGit) -> dict[str, str]:
    names = "|".join(name.removeprefix("core.") for name in HELD_SETTINGS)
    listed = git.ask("config", "-z", "--get-regexp", rf"^core\.({names})$", ok=(0, 1))
    # The last one counts; a name without a value is true.
    found = dict(
        (entry if "\n" in entry else f"{entry}\ntrue").split("\n") for entry in listed.fields
    )
    return {name: value for name, value in found.items() if value}


def _user_excludes(git: UserGit, git_dir: Path) -> tuple[str, ...]:
    configured = git.ask("config", "--type=path", "--get", "core.excludesFile", ok=(0, 1))
    home = Path(git.environment.get("HOME", "/"))
    config_home = Path(git.environment.get("XDG_CONFIG_HOME") or home / ".config")
    lines: list[str] = []
    for path in (
        Path(configured.text) if configured.text else config_home / "git" / "ignore",
        git_dir / "info" / "exclude",
    ):
        if path.is_file():
            lines += path.read_text(errors="replace").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


_STAT = ("--no-ext-diff", "--no-textconv", "--no-renames", "--no-color")


def changes(git: UserGit, pairs: Iterable[tuple[str, str]]) -> Changes:
    """For each pair, old and new, the files that differ and by how many lines."""
    wanted = list(dict.fromkeys(pairs))
    there = _commits(git, {commit for pair in wanted for commit in pair})
    asked = [(old, new) for old, new in wanted if old in there and new in there]
    if not asked:
        return {}
    told = git.ask(
        "diff-tree", "--stdin", "--always", "-r", "--numstat", "-z", *_STAT,
        stdin="".join(f"{new} {old}\n" for old, new in asked),
    )  # fmt: skip
    found: list[list[Change]] = []
    for field in told.fields:
        added, tab, rest = field.partition("\t")
        if not tab:  # the name of the commit that what follows is about
            found.append([])
            continue
        deleted, _, path = rest.partition("\t")
        found[-1].append(Change(path=path, added=_lines(added), deleted=_lines(deleted)))
    return {pair: tuple(each) for pair, each in zip(asked, found, strict=True)}


def _commits(git: UserGit, names: set[str]) -> set[str]:
    asked = "".join(f"{name}\n" for name in sorted(names))
    form = "--batch-check=%(objectname) %(objecttype)"
    lines = git.ask("cat-file", form, stdin=asked).text.split("\n")
    return {name for name, _, kind in (line.partition(" ") for line in lines) if kind == "commit"}


def _lines(told: str) -> int | None:
    return int(told) if told.isdigit() else None


_PATCH = ("--no-color", "--no-ext-diff", "--no-textconv", "--full-index", "-M")
_SECTION = re.compile(r"(?m)^(?=diff --git )")
_BINARY = re.compile(r"(?m)^Binary files .* differ$")
_LINK = "120000"
_WORDS = {"A": "new", "D": "deleted", "M": "changed", "T": "of another type", "R": "renamed"}


async def patches(store: Store, old: str, new: str) -> tuple[Patch, ...]:
    """One for each entry that differs, in git's order."""
    raw = await store.trees("diff-tree", "-r", "--raw", "-z", *_PATCH, old, new)
    whole = await store.trees("diff-tree", "-r", "--patch", *_PATCH, old, new)
    # A line of a hunk begins with a blank, a sign or a backslash: only git itself can begin so.
    sections = iter([part for part in _SECTION.split(printable(whole.stdout)) if part])
    return tuple(_patch(entry, sections) for entry in _entries(raw.fields))


def _entries(fields: list[str]) -> Iterator[tuple[str, str, str, str, str]]:
    """Old mode, new mode, status, path and what it was called before."""
    told = iter(fields)
    for meta in told:
        before, after, _, _, status = meta.removeprefix(":").split(" ")
        first = next(told)
        path = next(told) if status[0] in "RC" else first
        yield before, after, status[0], path, first if path != first else ""


def _patch(entry: tuple[str, str, str, str, str], sections: Iterator[str]) -> Patch:
    before, after, status, path, was = entry
    # What becomes a link, or was one, is shown as deleted and as new.
    text = "".join(next(sections, "") for _ in range(2 if status == "T" else 1))
    words = [_WORDS.get(status, "changed") + (f" from {printable_line(was)}" if was else "")]
    if "0" * 6 not in (before, after) and before != after:
        words.append(f"mode {before} to {after}")
    elif status == "A" and after != "100644":
        words.append("a link" if after == _LINK else f"mode {after}")
    binary = _BINARY.search(text) is not None and "\n@@" not in text
    submodule = SUBMODULE in (before, after)
    words += ["a submodule"] if submodule else ["binary"] if binary else []
    return Patch(
        path=printable_line(path),
        what=", ".join(words),
        text=text.rstrip("\n"),
        gone=status == "D",
        opaque=binary or submodule,
    )
