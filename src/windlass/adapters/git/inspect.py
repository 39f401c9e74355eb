"""Reads the user's repository: whether Windlass can work there, and what commits changed.

Before a run, everything that would fail later is refused here with one clear line, and nothing is
changed. For reports: how many lines differ between commits (a commit that git no longer has is left
out), and the patch of each file. Every entry that differs is named, also binary files, renames,
modes and submodules.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from windlass.adapters.git.git import MINIMUM, SUBMODULE, Output, ask
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.paths import MOST_RULES, OWN, RULES, as_any_file_system
from windlass.adapters.git.store import HELD_SETTINGS, Origin, Store, printable, printable_line
from windlass.core.settings import WorkspaceSettings
from windlass.errors import GitFailed, RepositoryError
from windlass.ports import Change, Changes, Patch, PatchText

_HEADS = "refs/heads/"
_HASH = re.compile(r"[0-9a-fA-F]{4,64}")
_MAX_BORROWED = 5
"""How long a chain of alternates may be; git's own limit."""


LFS = "lfs"
"""The filter that is refused even where no program for it is installed."""

NO_SUBMODULES = (
    "Windlass does not work in a repository with submodules: their files would be missing in every"
    " workspace and check"
)
NO_FILTERS = (
    "Windlass does not work in a repository with Git LFS or another content filter: agents and"
    " checks would get pointers in place of the files"
)
"""The limits in the words of README; a run, a landing and `doctor` refuse with the same."""


class UserGit(Struct, frozen=True):
    """The user's own git in one of their folders, for commands that only read."""

    directory: Path
    environment: Mapping[str, str]

    def ask(self, *args: str, ok: tuple[int, ...] = (0,), stdin: str = "") -> Output:
        """Run `git ARGS`; an exit code that is not in `ok` raises git's own message."""
        try:
            return ask(*args, cwd=self.directory, environment=self.environment, ok=ok, stdin=stdin)
        except GitFailed as failure:
            raise RepositoryError(failure.message) from failure


class Base(Struct, frozen=True, kw_only=True):
    """The commit that a run works from."""

    commit: str
    branch: str | None
    warnings: tuple[str, ...] = ()


def locate(git: UserGit) -> Origin:
    """Find the repository around a folder, and refuse one that Windlass cannot work in."""
    directory = git.directory
    if not directory.is_dir():
        raise RepositoryError(f"{directory} is not a folder")
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
            f"{str(directory)!r} is in a folder with a line break in its name",
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
    """Windlass records paths, and writes them into text files."""
    if any("\ud800" <= letter <= "\udfff" for letter in str(root)):
        raise RepositoryError(
            f"{str(root)!r} is in a folder whose name is not UTF-8", hint="rename the folder"
        )


def identity(git: UserGit) -> dict[str, str]:
    """The user's name and email for commits, as git itself finds them."""
    variables: dict[str, str] = {}
    for role in ("AUTHOR", "COMMITTER"):
        asked = ("-c", "user.useConfigOnly=true", "var", f"GIT_{role}_IDENT")
        answer = git.ask(*asked, ok=(0, 128))
        found = re.fullmatch(r"(.*) <(.*)> \d+ [+-]\d{4}", answer.text)
        if answer.code or found is None:
            raise RepositoryError(
                "git has no name and email for commits here",
                hint='set them: git config user.name "Your Name"; git config user.email you@host',
            )
        variables[f"GIT_{role}_NAME"], variables[f"GIT_{role}_EMAIL"] = found.groups()
    return variables


def why_not_in(git: UserGit, base: str, commit: str) -> str | None:
    """Why the base does not contain the commit of that hash; None if it does."""
    if not _HASH.fullmatch(commit):
        return "it names no commit hash"
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    found = git.ask(*asked, ok=(0, 1, 128))
    if found.code or not found.text.startswith(commit.lower()):
        return f"git has no commit {commit[:40]}"
    inside = git.ask("merge-base", "--is-ancestor", found.text, base, ok=(0, 1))
    return f"{found.text[:10]} is not in {base[:10]}" if inside.code else None


def branch_commit(git: UserGit, branch: str) -> str | None:
    """The commit of a branch; None if there is no such branch."""
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"refs/heads/{branch}")
    found = git.ask(*asked, ok=(0, 1, 128))
    return found.text or None if found.code == 0 else None


def full_name(git: UserGit, commit: str) -> str:
    """The full hash of an existing commit."""
    return git.ask("rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}").text


def base(git: UserGit, wanted: str | None, own: tuple[str, ...] = ()) -> Base:
    """The commit to work from; raises if Windlass cannot handle what is in it."""
    ref, warnings = _branch(git, wanted)
    found = git.ask(
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        # A tag of the same name must not be mistaken for the branch.
        f"{ref or wanted or 'HEAD'}^{{commit}}",
        ok=(0, 1, 128),
    )
    if found.code:
        raise _no_base(wanted)
    commit = found.text
    _refuse_missing(git, commit)
    entries = refuse_unsupported(git, commit)
    _refuse_own(entries)
    _refuse_endless_rules(git, entries)
    branch = ref.removeprefix(_HEADS) if ref is not None else None
    return Base(commit=commit, branch=branch, warnings=(*warnings, *reminders(git, commit, own)))


def refuse_unsupported(git: UserGit, commit: str) -> list[str]:
    """Raise for submodules and filters in a commit; returns its entries."""
    entries = git.ask("ls-tree", "-r", "-z", "--full-tree", commit).fields
    _refuse_submodules(entries)
    _refuse_filters(git, commit, [entry.partition("\t")[2] for entry in entries])
    return entries


def reminders(git: UserGit, commit: str, own: tuple[str, ...]) -> list[str]:
    """Warnings about the user's changes that a run from this commit ignores."""
    warnings: list[str] = []
    status = git.ask(
        "status",
        "--porcelain",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules",
    )
    dirty = [entry for entry in status.fields if not _is_below(entry[3:], own)]
    if dirty:
        count = len(dirty)
        warnings.append(
            f"{count} uncommitted change{'s are' if count != 1 else ' is'} not part of the run:"
            f" it works from commit {commit[:10]}"
        )
    return warnings


def _is_below(path: str, places: tuple[str, ...]) -> bool:
    """Whether the path is one of these files, or in one of these folders."""
    return any(path == each or path.startswith(f"{each.rstrip('/')}/") for each in places)


def changed_files(git: UserGit, own: tuple[str, ...]) -> list[str]:
    """Tracked files that differ from the checked-out commit, without Windlass's own."""
    status = git.ask(
        "status", "--porcelain", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules"
    )
    return [entry[3:] for entry in status.fields if not entry[3:].startswith(own)]


def signs_by_default(git: UserGit) -> bool:
    """Whether the user's own git signs every commit here."""
    asked = ("config", "--type=bool", "--get", "commit.gpgSign")
    return git.ask(*asked, ok=(0, 1, 128)).text == "true"


def refuse_own_tracked(git: UserGit) -> None:
    """Raise if the checked-out commit tracks Windlass's own files, whatever the base is."""
    _refuse_own(git.ask("ls-files", "--stage", "--full-name", "-z", "--", ":/").fields)


def refuse_clashing_branches(git: UserGit, refs: Refs) -> None:
    """Raise if a branch has the name of a folder that Windlass's branches need."""
    parts = refs.integration.split("/")
    folders = ["/".join(parts[:i]) for i in range(3, len(parts))]
    clash = git.ask("for-each-ref", "--format=%(refname)", *folders)
    taken = [ref for ref in clash.text.splitlines() if ref in folders]
    below = git.ask("for-each-ref", "--format=%(refname)", refs.integration + "/")
    if taken or below.text:
        name = (taken or below.text.splitlines())[0].removeprefix(_HEADS)
        raise RepositoryError(
            f"branch {name!r} is in the way of {refs.integration.removeprefix(_HEADS)!r}",
            hint=f"rename it: git branch -m {name} {name.replace('/', '-')}-old",
        )


def refuse_unlinkable(origin: Origin, settings: WorkspaceSettings) -> None:
    """Agents must not see the user's configuration, and a linked worktree then knows only sha1."""
    if settings.kind == "worktree" and origin.object_format != "sha1":
        raise RepositoryError(
            f'kind = "worktree" does not work with {origin.object_format} objects',
            hint='use [workspace] kind = "clone"',
        )


_NOWHERE = "not a git repository (or any of the parent directories)"
"""Git's message where there is no repository; it adds nothing to Windlass's own."""


def _no_repository(directory: Path, answer: Output) -> RepositoryError:
    lines = [line.strip() for line in answer.stderr.splitlines() if line.strip()] or [""]
    why = lines[0].removeprefix("fatal: ")
    if lines[-1].startswith("git config "):  # another user owns it, and git names the cure
        hint = f"if you trust it: {lines[-1]}"
        return RepositoryError(why, where=str(directory), hint=hint)
    more = "" if why.startswith(_NOWHERE) else f": {why}"
    return RepositoryError(
        f"{directory} is not in a git repository{more}",
        hint="run this inside one, or create one with `git init`",
    )


def _no_base(wanted: str | None) -> RepositoryError:
    if wanted is None:
        return RepositoryError(
            "this repository has no commit yet", hint="make a first one: git commit --allow-empty"
        )
    return RepositoryError(
        f"the base {wanted!r} is not a commit here", hint="name a branch or a commit that exists"
    )


def _branch(git: UserGit, wanted: str | None) -> tuple[str | None, list[str]]:
    """The ref of the wanted branch, if it is one, and warnings."""
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
    if not head.text.isprintable():  # it could not be recorded
        return None, ["the branch's name is not plain text: no branch will follow the run"]
    return head.text, []


def _refuse_submodules(entries: list[str]) -> None:
    for entry in entries:
        if entry.startswith(SUBMODULE):
            path = entry.partition("\t")[2]
            raise RepositoryError(f"the repository has a submodule at {path!r}", hint=NO_SUBMODULES)


def _refuse_own(entries: list[str]) -> None:
    """A tracked `.windlass` would bring commands and records of runs into this repository."""
    for path in (entry.partition("\t")[2] for entry in entries):
        top, *below = map(as_any_file_system, path.split("/", 2))
        if top == OWN and (not below or below[0] == "plans"):
            raise RepositoryError(
                f"the repository tracks {path!r}, which belongs to Windlass",
                hint=f"untrack it: git rm -r --cached {'/'.join(path.split('/')[:2])!r}; commit",
            )


def _refuse_endless_rules(git: UserGit, entries: list[str]) -> None:
    """Raise for rule files so large that Windlass would refuse every snapshot."""
    split = [entry.partition("\t") for entry in entries]
    rules = {path: entry.split()[2] for entry, _, path in split if path.rpartition("/")[2] in RULES}
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
                hint="git holds all of it in memory for every file; shorten them",
            )


def _refuse_missing(git: UserGit, commit: str) -> None:
    """A partial clone fetches missing objects on demand, which a workspace cannot do."""
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
    """LFS and similar filters keep the content elsewhere, where a workspace cannot find it."""
    run = {LFS, *_configured_filters(git)}
    for name in sorted(_committed_filters(git, commit) | _local_filters(git, paths)):
        if name in run:
            raise RepositoryError(
                f"the repository uses the filter {name!r} (gitattributes)", hint=NO_FILTERS
            )


def _configured_filters(git: UserGit) -> frozenset[str]:
    """The filters for which the user's git has a program."""
    listed = git.ask("config", "--null", "--name-only", "--get-regexp", r"^filter\.", ok=(0, 1))
    names = (entry.removeprefix("filter.").rpartition(".")[0] for entry in listed.fields)
    return frozenset(filter(None, names))


def _committed_filters(git: UserGit, commit: str) -> set[str]:
    return filter_names(git.ask(*filter_search(commit), ok=(0, 1)).text)


def filter_search(tree: str) -> tuple[str, ...]:
    """The arguments by which git finds the lines that give files of a tree a filter."""
    return (
        *("grep", "--no-color", "-h", "-I", "-E", "-e", r"(^|[[:space:]])filter="),
        *(tree, "--", ":(top,glob)**/.gitattributes"),
    )


def filter_names(lines: str) -> set[str]:
    return set(re.findall(r"\sfilter=(\S+)", lines))


def _local_filters(git: UserGit, paths: list[str]) -> set[str]:
    """The filters that the user's own attributes give to files of the base."""
    top = git.ask("rev-parse", "--show-toplevel").text
    names = "".join(f"{path}\0" for path in paths)
    answer = git.ask("-C", top, "check-attr", "-z", "--stdin", "filter", stdin=names)
    return set(answer.fields[2::3]) - {"unspecified", "unset", "set"}


def _refuse_old_git(git: UserGit) -> None:
    try:
        version = git.ask("version").text
    except FileNotFoundError:
        raise RepositoryError("git is not installed", hint="install git 2.38 or newer") from None
    numbers = re.search(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < MINIMUM:
        raise RepositoryError(f"{version!r} is too old", hint="install git 2.38 or newer")


def _main_worktree(git: UserGit, git_dir: Path) -> Path:
    """The main worktree of a linked one: Windlass keeps its folder there."""
    listed = git.ask("worktree", "list", "--porcelain", "-z")
    main = Path(listed.fields[0].removeprefix("worktree "))
    if not (main / ".git").is_dir():
        # A bare repository has no main worktree, and of others git does not know the place.
        raise RepositoryError(
            f"{git.directory} is a worktree of {git_dir}, which has no main checkout",
            hint="run this in a plain clone",
        )
    return main


def _object_folders(objects: Path) -> tuple[Path, ...]:
    """The folder and its alternates, which a sandbox must show too."""
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


_TEXT = ("-r", "--patch", "--no-ext-diff", "--no-textconv", "--no-color", "-M")
_COMMIT_LINE = re.compile(r"(?m)^[0-9a-f]{40}(?:[0-9a-f]{24})?\n")
_MOST_FILES, _MOST_LINES = 20, 1_000
"""Of a larger one: how many files are read, and how many changed lines each may have."""
_STAT = ("--no-ext-diff", "--no-textconv", "--no-renames", "--no-color")


def changes(git: UserGit, pairs: Iterable[tuple[str, str]]) -> Changes:
    """The files that differ between each pair of commits (old, new), with their line counts."""
    wanted = list(dict.fromkeys(pairs))
    there = _commits(git, {commit for pair in wanted for commit in pair})
    asked = [(old, new) for old, new in wanted if old in there and new in there]
    if not asked:
        return {}
    listed = git.ask(
        "diff-tree", "--stdin", "--always", "-r", "--numstat", "-z", *_STAT,
        stdin="".join(f"{new} {old}\n" for old, new in asked),
    )  # fmt: skip
    found: list[list[Change]] = []
    for field in listed.fields:
        added, tab, rest = field.partition("\t")
        if not tab:  # the commit that the next fields are about
            found.append([])
            continue
        deleted, _, path = rest.partition("\t")
        found[-1].append(Change(path=path, added=_lines(added), deleted=_lines(deleted)))
    return {pair: tuple(each) for pair, each in zip(asked, found, strict=True)}


MOST_PATCHED = 20_000
"""Changed lines up to which a patch is read as a whole."""


def patch_texts(git: UserGit, changes: Changes) -> dict[tuple[str, str], PatchText]:
    """The patch between each of these pairs; of a large one, only some of the files."""
    small = [pair for pair, found in changes.items() if _size(found) <= MOST_PATCHED]
    texts: dict[tuple[str, str], PatchText] = {}
    if small:
        asked = "".join(f"{new} {old}\n" for old, new in small)
        whole = git.ask("diff-tree", "--stdin", "--always", *_TEXT, stdin=asked).stdout
        # A line of a patch begins with a word of git's, a blank, a sign or a backslash.
        parts = _COMMIT_LINE.split(printable(whole))[1:]
        texts = {pair: PatchText(text=part) for pair, part in zip(small, parts, strict=True)}
    for pair, found in changes.items():
        if pair not in texts:
            texts[pair] = _some_files(git, pair, found)
    return texts


def _some_files(git: UserGit, pair: tuple[str, str], found: Sequence[Change]) -> PatchText:
    paths = [change.path for change in found if _size((change,)) <= _MOST_LINES][:_MOST_FILES]
    if not paths:
        return PatchText(text="", files_left=len(found))
    shown = git.ask("--literal-pathspecs", "diff-tree", *_TEXT, *pair, "--", *paths).stdout
    return PatchText(text=printable(shown), files_left=len(found) - len(paths))


def _size(found: Iterable[Change]) -> int:
    return sum((change.added or 0) + (change.deleted or 0) for change in found)


def _commits(git: UserGit, names: set[str]) -> set[str]:
    asked = "".join(f"{name}\n" for name in sorted(names))
    form = "--batch-check=%(objectname) %(objecttype)"
    lines = git.ask("cat-file", form, stdin=asked).text.split("\n")
    return {name for name, _, kind in (line.partition(" ") for line in lines) if kind == "commit"}


def _lines(count: str) -> int | None:
    return int(count) if count.isdigit() else None


_PATCH = ("--no-color", "--no-ext-diff", "--no-textconv", "--full-index", "-M")
_SECTION = re.compile(r"(?m)^(?=diff --git )")
_BINARY = re.compile(r"(?m)^Binary files .* differ$")
_LINK = "120000"
_WORDS = {"A": "new", "D": "deleted", "M": "changed", "T": "of another type", "R": "renamed"}


async def patches(store: Store, old: str, new: str) -> tuple[Patch, ...]:
    """A patch for each entry that differs, in git's order."""
    raw = await store.trees("diff-tree", "-r", "--raw", "-z", *_PATCH, old, new)
    whole = await store.trees("diff-tree", "-r", "--patch", *_PATCH, old, new)
    # A line of a hunk begins with a blank, a sign or a backslash, so only git writes this header.
    sections = iter([part for part in _SECTION.split(printable(whole.stdout)) if part])
    return tuple(_patch(entry, sections) for entry in _entries(raw.fields))


def _entries(fields: list[str]) -> Iterator[tuple[str, str, str, str, str]]:
    """Old mode, new mode, status, path and former path."""
    left = iter(fields)
    for meta in left:
        before, after, _, _, status = meta.removeprefix(":").split(" ")
        first = next(left)
        path = next(left) if status[0] in "RC" else first
        yield before, after, status[0], path, first if path != first else ""


def _patch(entry: tuple[str, str, str, str, str], sections: Iterator[str]) -> Patch:
    before, after, status, path, was = entry
    # A file that becomes a link, or the reverse, has two sections: deleted and new.
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
