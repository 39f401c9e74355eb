"""What a box shows where: a list of mounts for bubblewrap, and files given by descriptors.

Law: a path shown within a writable folder cannot be moved away. A mount cannot be moved, but a
plain folder around it could be, and replaced by one with other programs. So each folder on the way
becomes a mount. Small files are passed in memory and never on a disk; bubblewrap reads each to its
end, so every start has its own files.
"""

import os
from collections.abc import Callable, Container
from pathlib import Path
from typing import Literal, Self, TypeAlias

Shown: TypeAlias = Literal["host", "fresh", "cover"]
"""host: as outside, read-only · fresh: empty, in memory · cover: empty and read-only."""


class Mounts:
    """What a box shows where. Paths are real ones; links that lead to them are kept separately."""

    def __init__(self) -> None:
        self._shown: dict[Path, Shown] = {}
        self._links: dict[Path, str] = {}
        self._hidden: set[Path] = set()
        self._stand_ins: dict[Path, Path] = {}

    def copy(self) -> "Mounts":
        other = Mounts()
        other._shown |= self._shown
        other._links |= self._links
        other._hidden |= self._hidden
        other._stand_ins |= self._stand_ins
        return other

    def show(self, *paths: Path) -> None:
        """Show these as they are outside, unless that path itself is covered."""
        self.link(*paths)
        for path in paths:
            if holds(path.exists):
                self._shown.setdefault(path.resolve(), "host")

    def show_at(self, place: Path, folder: Path) -> None:
        """Show a folder of the host, read-only, at another path."""
        self.link(place)
        self._shown[place.resolve()] = "host"
        self._stand_ins[place.resolve()] = folder.resolve()

    def lay(self, kind: Literal["fresh", "cover"], *paths: Path) -> None:
        """Put an empty folder over these."""
        self.link(*paths)
        for path in paths:
            # A missing folder can only be made where the host's own is not shown.
            if holds(path.is_dir) or self._around(path.resolve()) != "host":
                self._shown[path.resolve()] = kind

    @property
    def named(self) -> Container[Path]:
        """The paths that are shown or covered by their own name."""
        return {*self._shown, *self._hidden}

    def hide(self, *paths: Path) -> None:
        """Cover these if a folder around them is shown; one that is shown by name stays."""
        self._hidden.update(paths)

    def link(self, *paths: Path) -> None:
        """Record the links on the way to these, to recreate them where they are covered."""
        for path in paths:
            way = path
            for _ in range(40):  # the kernel's limit
                met = next((p for p in (*reversed(way.parents), way) if holds(p.is_symlink)), None)
                if met is None:
                    break
                target = met.readlink()
                self._links[met] = str(target)
                way = Path(os.path.normpath(met.parent / target / way.relative_to(met)))

    def arguments(self, size: tuple[str, ...]) -> list[str]:
        """Bubblewrap's arguments: each folder before what is in it."""
        for path in self._hidden:
            if self._around(path) == "host" and holds(path.exists):
                self._shown.setdefault(path, "cover")
        made: list[str] = []
        for path in sorted({*self._shown, *self._links}, key=lambda path: (len(path.parts), path)):
            made += self._make(path, size)
        for path, kind in self._shown.items():
            if kind == "cover" and path.is_dir():
                made += ("--remount-ro", str(path))
        return made

    def _make(self, path: Path, size: tuple[str, ...]) -> tuple[str, ...]:
        around = self._around(path)
        if path in self._stand_ins:
            return ("--ro-bind", str(self._stand_ins[path]), str(path))
        match self._shown.get(path):
            case None:
                return () if around == "host" else ("--symlink", self._links[path], str(path))
            case "host":
                return () if around == "host" else ("--ro-bind-try", str(path), str(path))
            case "cover" if not path.is_dir():
                return ("--ro-bind", "/dev/null", str(path))
            case "cover":
                return ("--tmpfs", str(path))
            case "fresh":
                return (*size, "--tmpfs", str(path))

    def hold(self, *paths: Path) -> None:
        """Keep these from being moved away: make every folder on the way a mount."""
        for up in (up for path in paths for up in (self.place(path) or Path()).parents):
            if up not in self._shown and self._around(up) == "fresh":
                self._shown[up] = "fresh"

    def place(self, path: Path) -> Path | None:
        """The name under which the box surely has this folder of the host.

        None if it does not, or if a process could replace it, as it could a link.
        """
        return next((name for name in (path, path.resolve()) if not self._is_loose(name)), None)

    def _is_loose(self, path: Path) -> bool:
        return (self._shown.get(path) or self._around(path)) == "fresh"

    def _around(self, path: Path) -> Shown | None:
        """How the nearest folder around the path is shown; None is the box's bare root."""
        return next((self._shown[up] for up in path.parents if up in self._shown), None)


def holds(test: Callable[[], bool]) -> bool:
    """The test's answer; False for a path that may not be looked at, where pathlib raises."""
    try:
        return test()
    except OSError:
        return False


class InheritedFiles:
    """The files of one start; closed at the end of the block."""

    def __init__(self) -> None:
        self._numbers: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close them: the started process has its own."""
        while self._numbers:
            os.close(self._numbers.pop())

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(self._numbers)

    def file(self, path: str, text: str) -> tuple[str, ...]:
        """The arguments that show a text as a file that cannot be written or moved."""
        return ("--ro-bind-data", self._number(text.encode()), path)

    def filter(self, program: bytes) -> tuple[str, ...]:
        """The arguments that apply a seccomp filter, if there is one."""
        return ("--seccomp", self._number(program)) if program else ()

    def _number(self, content: bytes) -> str:
        number = os.memfd_create("windlass")
        self._numbers.append(number)
        os.write(number, content)
        os.lseek(number, 0, os.SEEK_SET)
        return str(number)
