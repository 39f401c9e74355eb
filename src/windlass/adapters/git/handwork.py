"""What a person committed in a workspace they had taken: it is kept, as they made it.

Law: nothing of theirs is lost, and nothing in that workspace is obeyed. Its refs are read as small
text files and its objects as objects, through Windlass's own git directory; no configuration of it
counts, and no git runs in it. What a person committed comes into the user's repository with its
authors, dates and messages, becomes part of the snapshot's history where it belongs to the task's
work, and is pinned beside it where it does not: an old branch, a stash, a history of its own.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio.to_thread
from msgspec import Struct

from windlass.adapters.files import open_to_append
from windlass.adapters.git.git import Git
from windlass.adapters.git.histories import quoted
from windlass.adapters.git.store import Store

_HASH = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")
_LARGEST = 1_000_000
"""Bytes that are read of a file with refs in it."""
_LINKS = 5
"""How many names in a row a ref may be another name for; git's own bound."""


class Handwork(Struct, frozen=True, kw_only=True):
    """What a person's commits mean for the snapshot."""

    parents: tuple[str, ...]
    """What it is made onto."""
    head: str | None = None
    """The commit that the person's files stand on, where it is one of the parents."""
    others: tuple[str, ...] = ()
    """Commits of theirs that no parent leads to."""


class Handworks:
    """Brings in what people committed."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def bring(self, workspace: Path, parents: tuple[str, ...]) -> Handwork:
        """Their commits, now in the user's repository, as ancestors of what is to be made."""
        head, others = await anyio.to_thread.run_sync(_refs, workspace)
        if head.startswith("refs/"):
            head = (await self._store.pins(head)).get(head, "")
        found = await self._fetched(workspace, dict.fromkeys((head, *others)), parents)
        mine = found.get(head)
        onto = await self._parents(mine, parents) if mine is not None else parents
        left = [commit for commit in dict.fromkeys(found.values()) if commit not in onto]
        return Handwork(
            parents=onto,
            head=mine if mine is not None and mine in onto else None,
            others=tuple([c for c in left if not await self._leads_to(onto, c)]),
        )

    async def _fetched(
        self, workspace: Path, names: Mapping[str, None], parents: tuple[str, ...]
    ) -> dict[str, str]:
        """The commits that these objects are or lead to, once they are the user's too."""
        asked = [name for name in names if name and name not in parents]
        if not asked:
            return {}
        objects = workspace / ".git" / "objects"
        borrowing = self._borrowing(objects) if _is_folder(objects) else self._store.trees
        lines = "".join(f"{name}^{{commit}}\n" for name in asked)
        answer = await borrowing("cat-file", "--batch-check=%(objectname)", stdin=lines)
        peeled = zip(asked, answer.text.splitlines(), strict=True)
        found = {name: line for name, line in peeled if _HASH.fullmatch(line)}
        if found and borrowing is not self._store.trees:
            wanted = "".join(f"{commit}\n" for commit in found.values())
            known = "".join(f"^{commit}\n" for commit in parents)
            pack = self._store.origin.objects[0] / "pack" / "pack"
            how = ("--revs", "--quiet", "--non-empty", "--delta-base-offset")
            await borrowing("pack-objects", *how, str(pack), stdin=wanted + known)
        return found

    def _borrowing(self, objects: Path) -> Git:
        """Windlass's git, which finds the workspace's objects as well."""
        origin = self._store.origin
        return Git(
            self._store.folders.git,
            ceiling=origin.root.parent,
            environment={
                "GIT_OBJECT_DIRECTORY": str(origin.objects[0]),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(objects),
            },
        )

    async def _parents(self, head: str, parents: tuple[str, ...]) -> tuple[str, ...]:
        """Onto the person's own commits; beside the start where they rewrote what lies below it."""
        start, *merged = parents
        if await self._leads_to((head,), start):
            rest = [commit for commit in merged if not await self._leads_to((head,), commit)]
            return (head, *rest)
        related = await self._store.trees("merge-base", start, head, ok=(0, 1))
        # A history of its own cannot be merged with anybody's: only its files are the task's work.
        return (start, head, *merged) if related.code == 0 else parents

    async def _leads_to(self, commits: tuple[str, ...], other: str) -> bool:
        """Whether one of the commits is, or descends from, the other."""
        asked = ("--max-count=1", other, *(f"^{commit}" for commit in commits))
        return not (await self._store.trees("rev-list", *asked)).text


def introduce(workspace: Path, identity: Mapping[str, str]) -> None:
    """Let a person commit there under their own name: a repository of its own knows no other."""
    config = workspace / ".git" / "config"
    if not _is_folder(config.parent):
        return  # a linked worktree has the user's own configuration
    name, email = (_quoted(identity[f"GIT_AUTHOR_{part}"]) for part in ("NAME", "EMAIL"))
    with open_to_append(config, inside=workspace) as file:
        file.write(f"[user]\n\tname = {name}\n\temail = {email}\n".encode())


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _refs(workspace: Path) -> tuple[str, tuple[str, ...]]:
    """The commit that HEAD stands for, and all that other refs do; "" where there is none.

    Of a linked worktree only HEAD is its own: a branch that it names is the user's.
    """
    own = workspace / ".git"
    if not _is_folder(own):
        leads_to = _text(own).removeprefix("gitdir: ").strip()
        head = _text(Path(leads_to, "HEAD")).strip() if leads_to else ""
        return head.removeprefix("ref: "), ()
    found = dict(_packed(own))
    for folder, _, names in os.walk(own / "refs"):
        for path in (Path(folder, name) for name in names):
            found[path.relative_to(own).as_posix()] = _text(path).strip()
    head = _text(own / "HEAD").strip()
    for _ in range(_LINKS):
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
    """A small plain file's text; "" where there is none."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return os.fsdecode(file.read(_LARGEST))
    except OSError:
        return ""


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
