"""What a power loss leaves of a folder, computed from the log of the calls that changed it.

The rules are a strict reading of POSIX, harder than any file system in use:

1. A file keeps the content of its last fsync, and nothing that was written later.
2. A name that was added, changed or removed is safe once its folder was synced, and not before:
   the sync of another file does not make a rename durable, as a journaling file system would.
3. git's `fsyncMethod=batch` first writes its objects out (sync_file_range) and then syncs one more
   file for all of them, which flushes the disk's cache. We believe git: from then on the content of
   the objects counts as synced. Their names do not.
4. syncfs makes everything safe.

Any part of what was not synced may still survive. So points are tried with none of it (`lost`),
with all names but empty files (`named`), and with a random part of the names (`chance`).
"""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

Survival: TypeAlias = Literal["lost", "named", "chance"]
SURVIVALS: tuple[Survival, ...] = ("lost", "named", "chance")

_BATCH = "bulk_fsync_"
"""The file that git syncs for all objects of a batch."""


class Line(Struct, frozen=True):
    """One logged call."""

    n: int
    what: str
    path: str
    other: str


class Node:
    """A file, a link or a folder, independent of its name."""

    def __init__(self, *, folder: bool = False, link: str = "") -> None:
        self.folder = folder
        self.link = link
        self.content: Path | None = None
        """The copy made at the last sync."""
        self.names: dict[str, Node] = {}
        """The entries of a folder."""
        self.kept: dict[str, Node] = {}
        """Its entries at its last sync."""


def read(log: Path) -> list[Line]:
    fields = (line.split("\t") for line in log.read_text(encoding="utf-8").splitlines())
    return [Line(int(n), what, path, other) for n, what, path, other in fields]


class Disk:
    """The folder `root` as it is, and as it would be after a power loss at this moment."""

    def __init__(self, root: Path, before: Path, log: Path) -> None:
        """`before` is the folder at the start, all of it synced; the copies are beside the log."""
        self._root = root
        self._log = log
        self._top = _read_tree(before)
        self._written_out: list[tuple[Node, Path]] = []
        self.reported = 0
        """How many facts of the journal the run had reported."""

    def do(self, line: Line) -> None:
        """Apply one line of the log."""
        match line.what:
            case "sync" | "range":
                self._sync(line)
            case "all":
                self._top = _read_tree(self._copy(line))
            case "note":
                self.reported = int(line.path.split()[-1])
            case "write" | "mode":
                pass  # not safe before the next sync
            case _:
                self._change_names(line)

    def write(self, target: Path, survival: Survival, seed: int) -> None:
        """Write the folder as a power loss now would leave it."""
        _write_tree(self._top, target, survival, random.Random(seed))  # noqa: S311

    def _change_names(self, line: Line) -> None:
        match line.what:
            case "gone":
                self._remove(line.path)
            case "rename":
                self._name(line.other, self._remove(line.path) or Node())
            case "link":
                self._name(line.other, self._find(line.path) or Node())
            case "symlink":
                self._name(line.path, Node(link=line.other))
            case "mkdir" | "create":
                self._name(line.path, Node(folder=line.what == "mkdir"))
            case _:
                raise ValueError(f"unknown line in the log: {line}")

    def _sync(self, line: Line) -> None:
        node = self._find(line.path)
        if node is None:
            return  # it was removed, so no program can open it
        if node.folder:
            node.kept = dict(node.names)
        elif line.what == "range":
            self._written_out.append((node, self._copy(line)))
        else:
            node.content = self._copy(line)
            if _BATCH in line.path:
                for written, content in self._written_out:
                    written.content = content
                self._written_out.clear()

    def _copy(self, line: Line) -> Path:
        return self._log.with_name(f"{self._log.name}.{line.n}")

    def _parts(self, path: str) -> tuple[str, ...]:
        return Path(path).relative_to(self._root).parts

    def _find(self, path: str) -> Node | None:
        node: Node | None = self._top
        for part in self._parts(path):
            node = node.names.get(part) if node is not None else None
        return node

    def _name(self, path: str, node: Node) -> None:
        *folders, name = self._parts(path)
        holder = self._top
        for part in folders:  # a folder that was made unseen exists, and is not safe
            holder = holder.names.setdefault(part, Node(folder=True))
        holder.names[name] = node

    def _remove(self, path: str) -> Node | None:
        if not path:
            return None
        *folders, name = self._parts(path)
        holder = self._find(str(self._root.joinpath(*folders)))
        return holder.names.pop(name, None) if holder is not None else None


def _read_tree(folder: Path) -> Node:
    """A folder with everything in it synced."""
    node = Node(folder=True)
    for path in folder.iterdir():
        if path.is_symlink():
            node.names[path.name] = Node(link=str(path.readlink()))
        elif path.is_dir():
            node.names[path.name] = _read_tree(path)
        else:
            node.names[path.name] = file = Node()
            file.content = path
    node.kept = dict(node.names)
    return node


def _write_tree(node: Node, target: Path, survival: Survival, dice: random.Random) -> None:
    target.mkdir()
    for name, child in _surviving(node, survival, dice):
        path = target / name
        if child.folder:
            _write_tree(child, path, survival, dice)
        elif child.link:
            path.symlink_to(child.link)
        elif child.content is not None:
            shutil.copyfile(child.content, path)
        else:
            path.touch()


def _surviving(node: Node, survival: Survival, dice: random.Random) -> Iterator[tuple[str, Node]]:
    for name in sorted(node.kept.keys() | node.names.keys()):
        changed = survival == "named" or (survival == "chance" and dice.random() < 0.5)  # noqa: PLR2004
        child = (node.names if changed else node.kept).get(name)
        if child is not None:
            yield name, child
