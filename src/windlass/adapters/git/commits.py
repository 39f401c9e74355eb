"""The commits that Windlass makes: snapshots of workspaces, and merges built in memory.

A snapshot uses an index that no agent can reach, and runs no hook. A tree that must not be
committed is refused with a reason that the Player can act on; a failure of git is raised. A merge
touches no checkout, and no branch shows it before its checks passed.

A person may commit in a workspace they took. No commit of theirs is lost, and no configuration in
that workspace is used: refs are read as small text files, objects through Windlass's own git
directory. Their commits keep authors, dates and messages. Commits that belong to the task's work
become part of the snapshot's history; others (an old branch, a stash) get pins of their own.
"""

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import anyio.to_thread
from msgspec import Struct

from windlass.adapters.files import is_folder, open_to_append
from windlass.adapters.git.git import SUBMODULE, Output
from windlass.adapters.git.inspect import (
    LFS,
    NO_FILTERS,
    NO_SUBMODULES,
    filter_names,
    filter_search,
)
from windlass.adapters.git.layout import MOST_LINKS
from windlass.adapters.git.paths import MOST_RULES, Trap, find_traps, first_trap, made_by_setup
from windlass.adapters.git.signing import Signer
from windlass.adapters.git.store import Store, printable_line, quoted
from windlass.core.commit_messages import commit_message, squashed_message
from windlass.core.exchange import MAX_LISTED
from windlass.core.plan.judges import judges
from windlass.core.settings import GitSettings
from windlass.errors import GitFailed, SigningFailed
from windlass.ports import Authorship, Conflict, Merged, Refused, Snapshot


class Commits:
    """Writes the commits of one run: in the user's name, and signed where the settings say so."""

    def __init__(
        self,
        store: Store,
        *,
        run: str,
        settings: GitSettings | None = None,
        co_author: str = "",
        signer: Signer | None = None,
    ) -> None:
        """`co_author` is the agent's name with its address; without a signer none is signed."""
        self._store = store
        self._run = run
        self._settings = settings or GitSettings()
        self._co_author = co_author if self._settings.co_author else ""
        self._signer = signer

    @property
    def signs_landings(self) -> bool:
        return self._signer is not None and self._settings.signs_landings

    async def write(
        self, author: Authorship, tree: str, parents: Sequence[str], *, merging: bool
    ) -> str:
        """A snapshot or a merge; gc may remove it until it is pinned."""
        text = commit_message(author, self._run, merging=merging, co_author=self._co_author)
        # A merge that is about no task in particular is a landing's.
        signs = self._settings.signs_all or (not author.task and self._settings.signs_landings)
        if self._signer is not None and signs:
            return await self._signer.commit(self._store, tree, parents, text)
        return await self._store.commit(tree, parents, text)

    async def squash(self, merge: str, tree: str, parent: str, *, note: str = "") -> str:
        """The commit that stands for a merge, with its message and its date."""
        made = await self._store.read_commit(merge)
        message = made.message.decode(errors="surrogateescape")
        text = squashed_message(message, merge, note=note)
        if self._signer is not None and self._settings.signs_landings:
            return await self._signer.commit(self._store, tree, (parent,), text, made.date)
        return await self._store.commit(tree, (parent,), text, date=made.date)


CONFLICTED = 1
"""merge-tree's exit code for a conflict."""


class Merges:
    def __init__(self, store: Store, commits: Commits) -> None:
        self._store = store
        self._commits = commits

    async def build(self, author: Authorship, commit: str, tip: str, ref: str) -> Merged | Conflict:
        """Merge the commit onto the tip, and pin the result under `ref`."""
        try:
            made = await self._attempt(author, commit, tip, ref)
        except SigningFailed:
            raise
        except GitFailed:
            made = None
        # A concurrent gc removed some of the objects: all are written again, once.
        if made is None and (made := await self._attempt(author, commit, tip, ref)) is None:
            raise GitFailed(("rev-list",), 128, f"the objects of {ref} keep disappearing")
        return made

    async def adopt(self, commit: str, tip: str, ref: str, pinned: str) -> Merged | None:
        """The merge of these two that an earlier process pinned, if all its objects are there."""
        if not await self._store.is_whole(pinned, beyond=(tip, commit)):
            await self._store.unpin(ref)
        elif await self._store.parents_of(pinned) == (tip, commit):
            return Merged(commit=pinned, tree=await self._store.tree_of(pinned))
        return None

    async def combine(self, ours: str, theirs: str) -> tuple[str, Conflict | None]:
        """The merged tree; with conflict markers, and the conflict, where there is one."""
        how = ("--write-tree", "-z", "--name-only", "--messages")
        answer = await self._store.trees("merge-tree", *how, ours, theirs, ok=(0, CONFLICTED))
        tree, *rest = answer.stdout.split("\0")
        if answer.code != CONFLICTED:
            return tree, None
        end = rest.index("")
        files = tuple(dict.fromkeys(printable_line(path) for path in rest[:end]))
        lines = [f"- {path}" for path in files] + _conflicts(rest[end + 1 :])
        return tree, Conflict(files=files, detail="\n".join(["Conflicts in:", *lines]))

    async def _attempt(
        self, author: Authorship, commit: str, tip: str, ref: str
    ) -> Merged | Conflict | None:
        tree, conflict = await self.combine(tip, commit)
        if conflict is not None:
            return conflict
        made = await self._commits.write(author, tree, (tip, commit), merging=True)
        await self._store.pin({ref: made})
        if await self._store.is_whole(made, beyond=(tip, commit)):
            return Merged(commit=made, tree=tree)
        await self._store.unpin(ref)
        return None


def _conflicts(messages: list[str]) -> list[str]:
    """Git's text for each conflict, the only sign of one without markers.

    A message is a count, that many paths, its kind and its text.
    """
    texts: list[str] = []
    while messages and messages[0].isdigit():
        count = int(messages[0])
        kind, text = messages[count + 1 : count + 3]
        if kind.startswith("CONFLICT"):
            texts.append(printable_line(text.strip()))
        del messages[: count + 3]
    return texts


_HASH = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")
_LARGEST = 1_000_000
"""The most bytes that are read of a file with refs in it."""


class PersonCommits(Struct, frozen=True, kw_only=True):
    """What a person's commits mean for the snapshot."""

    parents: tuple[str, ...]
    """The parents of the snapshot."""
    head: str | None = None
    """The commit that the person's files are based on, where it is one of the parents."""
    others: tuple[str, ...] = ()
    """Commits of theirs that no parent reaches."""


class PersonCommitReader:
    """Copies what people committed into the user's repository."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def fetch(self, workspace: Path, parents: tuple[str, ...]) -> PersonCommits:
        """Copy the commits of a workspace, and find their place in the snapshot's history."""
        head, others = await anyio.to_thread.run_sync(_refs, workspace)
        if head.startswith("refs/"):
            head = (await self._store.pins(head)).get(head, "")
        found = await self._fetched(workspace, dict.fromkeys((head, *others)), parents)
        mine = found.get(head)
        onto = await self._parents(mine, parents) if mine is not None else parents
        left = [commit for commit in dict.fromkeys(found.values()) if commit not in onto]
        return PersonCommits(
            parents=onto,
            head=mine if mine is not None and mine in onto else None,
            others=tuple([c for c in left if not await self._leads_to(onto, c)]),
        )

    async def _fetched(
        self, workspace: Path, names: Mapping[str, None], parents: tuple[str, ...]
    ) -> dict[str, str]:
        """Copy these objects into the user's repository; the commit of each."""
        asked = [name for name in names if name and name not in parents]
        if not asked:
            return {}
        objects = workspace / ".git" / "objects"
        has_own = is_folder(objects)
        users = self._store.origin.objects[0]
        git = self._store.git_on(users, [objects]) if has_own else self._store.trees
        lines = "".join(f"{name}^{{commit}}\n" for name in asked)
        answer = await git("cat-file", "--batch-check=%(objectname)", stdin=lines)
        peeled = zip(asked, answer.text.splitlines(), strict=True)
        found = {name: line for name, line in peeled if _HASH.fullmatch(line)}
        if found and has_own:
            wanted = "".join(f"{commit}\n" for commit in found.values())
            known = "".join(f"^{commit}\n" for commit in parents)
            how = ("--revs", "--quiet", "--non-empty", "--delta-base-offset")
            await git("pack-objects", *how, str(users / "pack/pack"), stdin=wanted + known)
        return found

    async def _parents(self, head: str, parents: tuple[str, ...]) -> tuple[str, ...]:
        """The person's head as first parent; as second where they rewrote what `start` is."""
        start, *merged = parents
        if await self._leads_to((head,), start):
            rest = [commit for commit in merged if not await self._leads_to((head,), commit)]
            return (head, *rest)
        related = await self._store.trees("merge-base", start, head, ok=(0, 1))
        # An unrelated history cannot be merged: only its files are the task's work.
        return (start, head, *merged) if related.code == 0 else parents

    async def _leads_to(self, commits: tuple[str, ...], other: str) -> bool:
        """Whether one of the commits is, or descends from, the other."""
        asked = ("--max-count=1", other, *(f"^{commit}" for commit in commits))
        return not (await self._store.trees("rev-list", *asked)).text


def set_identity(workspace: Path, identity: Mapping[str, str]) -> None:
    """Let a person commit in a clone under their own name, which it does not know."""
    config = workspace / ".git" / "config"
    if not is_folder(config.parent):
        return  # a linked worktree uses the user's own configuration
    name, email = (quoted(identity[f"GIT_AUTHOR_{part}"]) for part in ("NAME", "EMAIL"))
    with open_to_append(config, inside=workspace) as file:
        file.write(f"[user]\n\tname = {name}\n\temail = {email}\n".encode())


def _refs(workspace: Path) -> tuple[str, tuple[str, ...]]:
    """The commit of HEAD or "", and the commits of all other refs.

    A linked worktree owns only its HEAD: a branch that it names is the user's.
    """
    own = workspace / ".git"
    if not is_folder(own):
        git_dir = _text(own).removeprefix("gitdir: ").strip()
        head = _text(Path(git_dir, "HEAD")).strip() if git_dir else ""
        return head.removeprefix("ref: "), ()
    found = dict(_packed(own))
    for folder, _, names in os.walk(own / "refs"):
        for path in (Path(folder, name) for name in names):
            found[path.relative_to(own).as_posix()] = _text(path).strip()
    head = _text(own / "HEAD").strip()
    for _ in range(MOST_LINKS):
        if not head.startswith("ref:"):
            break
        head = found.get(head.removeprefix("ref:").strip(), "")
    hashes = dict.fromkeys(value for value in found.values() if _HASH.fullmatch(value))
    return head if _HASH.fullmatch(head) else "", tuple(hashes)


def _packed(own: Path) -> Iterator[tuple[str, str]]:
    for line in _text(own / "packed-refs").splitlines():
        value, _, name = line.partition(" ")
        yield name, value


def _text(path: Path) -> str:
    """The text of a small regular file; "" where there is none."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return os.fsdecode(file.read(_LARGEST))
    except OSError:
        return ""


_LONGEST_PATH = 500
_UNREADABLE = "cannot be read; give it back its permissions or remove it"
_TRAP_CURES: Mapping[str, str] = {
    "closed": _UNREADABLE,
    "no file": "is not a file that git can read; remove it",
    "repository": "makes a repository inside the repository; remove that .git",
    "too large": f"is too large: git's rules, with those in folders above, may have {MOST_RULES:,} "
    "bytes; shorten or remove it",
}


class Snapshots:
    def __init__(
        self, store: Store, merges: Merges, commits: Commits, *, max_file_bytes: float
    ) -> None:
        self._store = store
        self._merges = merges
        self._commits = commits
        self._max_file_bytes = max_file_bytes
        self._person_commits = PersonCommitReader(store)

    async def take(
        self, author: Authorship, workspace: Path, index: Path, parents: tuple[str, ...], ref: str
    ) -> Snapshot | Refused:
        """Commit the workspace's content without by-products, and pin it under `ref`."""
        # Only this process uses that index: a lock was left by a killed git.
        index.with_name(f"{index.name}.lock").unlink(missing_ok=True)
        try:
            made = await self._attempt(author, workspace, index, parents, ref)
        except SigningFailed:
            raise
        except GitFailed:
            made = None
        if made is None:
            # A gc removed objects before they were pinned, or a power loss damaged the index: only
            # hashing every file again is sure.
            await self._reset_index(index, parents)
            made = await self._attempt(author, workspace, index, parents, ref)
        if made is None:
            raise GitFailed(("rev-list",), 128, f"the objects of {ref} keep disappearing")
        return made

    async def tree(self, workspace: Path, index: Path, parent: str) -> str | Refused:
        """The tree of such a commit, by an index of the caller's; nothing is pinned."""
        await self._reset_index(index, (parent,))
        return await self._write_tree(workspace, index, (parent,))

    async def adopt(self, pinned: str, parents: tuple[str, ...], ref: str) -> Snapshot | None:
        """The commit that an earlier process pinned, if all its objects are there."""
        if await self._store.is_whole(pinned, beyond=parents):
            return await self._as_snapshot(pinned, parents)
        await self._store.unpin(ref)
        return None

    async def _attempt(
        self, author: Authorship, workspace: Path, index: Path, parents: tuple[str, ...], ref: str
    ) -> Snapshot | Refused | None:
        """Take it once; None when a gc removed some of its objects."""
        work = PersonCommits(parents=parents)
        if author.by_person:
            work = await self._person_commits.fetch(workspace, parents)
        tree = await self._tree_with(work, workspace, index, parents)
        if isinstance(tree, Refused):
            return tree
        commit, pins = parents[0], {_left(ref, k): c for k, c in enumerate(work.others, 1)}
        if work.parents != (commit,) or tree != await self._store.tree_of(commit):
            commit = await self._commits.write(author, tree, work.parents, merging=False)
            pins[ref] = commit
        if pins and not await self._pin(pins, parents):
            return None
        return await self._as_snapshot(commit, parents)

    async def _tree_with(
        self, work: PersonCommits, workspace: Path, index: Path, parents: tuple[str, ...]
    ) -> str | Refused:
        """The tree of the workspace; what a person committed is tracked, even if it is ignored."""
        if work.head is None:
            return await self._write_tree(workspace, index, parents)
        try:
            await self._store.trees("read-tree", "--reset", work.head, index=index)
        except GitFailed as failure:
            if not await self._store.is_whole(work.head, beyond=parents):
                raise  # an object is gone; else the commit has a name that git refuses
            return await self._refused_by_git(failure, index)
        tree = await self._write_tree(workspace, index, parents)
        if isinstance(tree, Refused):
            return tree
        # A submodule that a person committed; `add` would not take one.
        listed = await self._store.trees("diff-tree", "-r", "-z", parents[0], tree)
        for entry, path in zip(listed.fields[::2], listed.fields[1::2], strict=True):
            if entry.split()[1] == SUBMODULE:
                return _refused(f"{path} is a submodule; {NO_SUBMODULES}; remove it")
        return tree

    async def _pin(self, pins: Mapping[str, str], parents: tuple[str, ...]) -> bool:
        """Pin the commits, or remove the pins again where objects are gone."""
        await self._store.pin(pins)
        if all([await self._store.is_whole(commit, beyond=parents) for commit in pins.values()]):
            return True
        for pin in pins:
            await self._store.unpin(pin)
        return False

    async def _trapped(self, found: Iterable[Trap], workspace: Path, index: Path) -> str | None:
        """Why git must not even read the workspace."""

        async def ignored(folders: list[str]) -> set[str]:
            asked = "".join(f"./{folder}\0" for folder in folders)  # or a name might be magic
            answer = await self._git(
                workspace, index, "check-ignore", "-z", "--stdin", stdin=asked, ok=(0, 1)
            )
            return {path.removeprefix("./") for path in answer.fields}

        trap = await first_trap(found, ignored)
        if trap is None:
            return None
        return f"{str(trap.path)[:_LONGEST_PATH]} {_TRAP_CURES[trap.kind]}"

    async def _write_tree(
        self, workspace: Path, index: Path, parents: tuple[str, ...]
    ) -> str | Refused:
        """The workspace's content without by-products, as a tree."""
        most = self._max_file_bytes
        found, unfit = await anyio.to_thread.run_sync(
            lambda: (list(find_traps(workspace)), dict(_unfit_files(workspace, most)))
        )
        if (reason := await self._trapped(found, workspace, index)) is not None:
            return _refused(reason)
        try:
            if (reason := await self._first_unfit(unfit, workspace, index)) is not None:
                return _refused(reason)
            await self._git(workspace, index, "add", "--all")
        except GitFailed as failure:
            return await self._refused_by_git(failure, index)
        tree = (await self._store.trees("write-tree", index=index)).text
        reason = await self._own_folder_changed(tree, parents)
        if reason is None and (reason := await self._new_filter(tree, parents)) is None:
            return tree
        await self._reset_index(index, parents)  # or it would keep what was added or removed there
        return _refused(reason)

    async def _own_folder_changed(self, tree: str, parents: tuple[str, ...]) -> str | None:
        """Why the tree is refused: landed, its `.windlass` would give commands to the next run."""
        trees = [await self._store.tree_of(parent) for parent in parents]
        own, *before = await self._store.own(tree, *trees)
        if own in before:
            return None
        [name, *_] = sorted(
            os.fsdecode(entry.path) for entry in own.symmetric_difference(before[0])
        )
        return f"{name} is Windlass's own and no part of a task; put it back as it was or remove it"

    async def _new_filter(self, tree: str, parents: tuple[str, ...]) -> str | None:
        """Why the tree is refused: it moves content to Git LFS, which Windlass never runs."""
        before = await self._store.tree_of(parents[0])
        paths = await self._store.changed_in_tree(before, tree)
        if not any(path.rpartition("/")[2] == ".gitattributes" for path in paths):
            return None
        answers = [await self._store.trees(*filter_search(t), ok=(0, 1)) for t in (before, tree)]
        known, now = (filter_names(answer.text) for answer in answers)
        return f"a .gitattributes uses Git LFS; {NO_FILTERS}" if LFS in now - known else None

    async def _as_snapshot(self, commit: str, parents: tuple[str, ...]) -> Snapshot:
        tree = await self._store.tree_of(commit)
        changed = tree != await self._store.tree_of(parents[0])
        paths = await self._store.changed_paths(parents[0], commit) if changed else {}
        # Those that judge the work first, so that they cannot hide behind a hundred others.
        files = tuple(sorted(paths, key=lambda path: not judges(path)))[:MAX_LISTED]
        return Snapshot(
            commit=commit,
            tree=tree,
            changed=changed,
            files=files,
            created=tuple(path for path in files if paths[path] == "A"),
            deleted=tuple(path for path in files if paths[path] == "D"),
        )

    async def _reset_index(self, index: Path, parents: tuple[str, ...]) -> None:
        """Write an index that says what is tracked, and nothing about the workspace's files."""
        tree = parents[0]
        if len(parents) > 1:
            tree, _ = await self._merges.combine(*parents)
        index.unlink(missing_ok=True)
        await self._store.trees("read-tree", tree, index=index)

    async def _first_unfit(
        self, unfit: Mapping[str, str], workspace: Path, index: Path
    ) -> str | None:
        """Why a file of the work cannot be committed.

        Most workspaces have no unfit file, and some have one that the work did not touch.
        """
        if not unfit:
            return None
        kinds = ("--others", "--modified", "--exclude-standard")
        touched = await self._git(workspace, index, "ls-files", "-z", *kinds)
        return next((f"{path} {unfit[path]}" for path in touched.fields if path in unfit), None)

    async def _git(
        self,
        workspace: Path,
        index: Path,
        *args: str,
        stdin: str | None = None,
        ok: tuple[int, ...] = (0,),
    ) -> Output:
        """Run git on a workspace, with what setup made there excluded."""
        made = made_by_setup(index)
        return await self._store.trees(
            *args, stdin=stdin, ok=ok, work_tree=workspace, index=index, excludes=made
        )

    async def _refused_by_git(self, failure: GitFailed, index: Path) -> Refused:
        """Why git refuses the workspace; raises where git fails on anything.

        A resumed run would find the same workspace: only its Player can change it.
        """
        await self._store.trees("ls-files", "-z", index=index)
        await self._store.text(secrets.token_hex(16))
        lines = failure.stderr.splitlines()
        errors = [line[7:] for line in lines if line.startswith(("error: ", "fatal: "))]
        why = errors[0] if errors else failure.stderr.strip() or str(failure)
        return _refused(f"git cannot commit this: {why}; remove or rename it")


def _unfit_files(workspace: Path, most: float) -> Iterator[tuple[str, str]]:
    """Every file that cannot be committed, tracked or not, and why."""
    # Strings, because a Path per entry is slow in a large tree.
    top, folders = str(workspace), [""]
    while folders:
        inner = folders.pop()
        # A folder that cannot be read, too deep or closed, is skipped or reported by git.
        with contextlib.suppress(OSError), os.scandir(f"{top}/{inner}") as entries:
            for entry in entries:
                path = inner + entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders += [f"{path}/"] if path != ".git" else []
                elif (why := _why_unfit(entry, most)) is not None:
                    yield path, why


def _why_unfit(entry: os.DirEntry[str], most: float) -> str | None:
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # deleted in this moment, which is a change like any other
    if not stat.S_ISREG(found.st_mode):
        return None
    if found.st_size > most:
        size = f"{found.st_size / 1e6:.3g} MB"
        return f"has {size}, more than the {most / 1e6:.3g} MB a file may have"
    # Some users, such as root, may read a file against its mode: the system must be asked.
    return None if found.st_mode & stat.S_IRUSR or os.access(entry, os.R_OK) else _UNREADABLE


def _left(ref: str, k: int) -> str:
    """The pin of a person's commit that is not part of the work."""
    return f"{ref.rpartition('/')[0]}/left-{k}"


def _refused(reason: str) -> Refused:
    return Refused(reason=printable_line(" ".join(reason.split())))
