"""What a power loss would have left of a folder, worked out from the log of what was done to it.

The strict reading of POSIX is what counts here, which is harder than any file system in use:

1. A file holds what it held at its last fsync, and nothing of what was written after it.
2. A name (made, changed or gone) is there for good once its folder was synced, and not before: no
   rename is carried by the sync of some other file, as a journaling file system would do.
3. git's `fsyncMethod=batch` first writes its objects out (sync_file_range) and then syncs one more
   file for all of them, which flushes the disk's own memory. What it says of that is believed: the
   objects' content counts as synced from there on. Their names do not.
4. After syncfs all is there that was there.

Of what was not synced any part may have survived all the same. So points are tried with none of it
(`lost`), with all names but no content, as in files found empty (`named`), and with a part of the
names by lot (`chance`).
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
    """One thing that was done."""

    n: int
    what: str
    path: str
    other: str


class Node:
    """A file, a link or a folder, whatever its name is now."""

    def __init__(self, *, folder: bool = False, link: str = "") -> None:
        self.folder = folder
        self.link = link
        self.content: Path | None = None
        """Where the content of the last sync is kept."""
        self.names: dict[str, Node] = {}
        """What the folder holds."""
        self.kept: dict[str, Node] = {}
        """What it held at its last sync."""


def read(log: Path) -> list[Line]:
    """The log, in order."""
    fields = (line.split("\t") for line in log.read_text(encoding="utf-8").splitlines())
    return [Line(int(n), what, path, other) for n, what, path, other in fields]


class Disk:
    """The folder `root` as it is, and as it would be after a power loss at this moment."""

    def __init__(self, root: Path, before: Path, log: Path) -> None:
        """Take the folder as it was before, all of it safe, and the log whose copies lie beside."""
        self._root = root
        self._log = log
        self._top = _read_tree(before)
        self._written_out: list[tuple[Node, Path]] = []
        self.told = 0
        """How far the journal was told when the power went."""

    def do(self, line: Line) -> None:
        """Go on by one line."""
        match line.what:
            case "sync" | "range":
                self._synced(line)
            case "all":
                self._top = _read_tree(self._copy(line))
            case "note":
                self.told = int(line.path.split()[-1])
            case "write" | "mode":
                pass  # of which nothing is safe yet
            case _:
                self._renamed(line)

    def write(self, target: Path, survival: Survival, seed: int) -> None:
        """Make what is left after a power loss now."""
        _write_tree(self._top, target, survival, random.Random(seed))  # noqa: S311

    def _renamed(self, line: Line) -> None:
        match line.what:
            case "gone":
                self._forget(line.path)
            case "rename":
                self._name(line.other, self._forget(line.path) or Node())
            case "link":
                self._name(line.other, self._find(line.path) or Node())
            case "symlink":
                self._name(line.path, Node(link=line.other))
            case "mkdir" | "create":
                self._name(line.path, Node(folder=line.what == "mkdir"))
            case _:
                raise ValueError(f"a log that is not understood: {line}")

    def _synced(self, line: Line) -> None:
        node = self._find(line.path)
        if node is None:
            return  # nobody can open it any more
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
        for part in folders:  # what a program made unseen is there, and not safe
            holder = holder.names.setdefault(part, Node(folder=True))
        holder.names[name] = node

    def _forget(self, path: str) -> Node | None:
        if not path:
            return None
        *folders, name = self._parts(path)
        holder = self._find(str(self._root.joinpath(*folders)))
        return holder.names.pop(name, None) if holder is not None else None


def _read_tree(folder: Path) -> Node:
    """A folder of which all is safe."""
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
