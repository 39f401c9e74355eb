"""The size and the shape of the source, package by package: before it was rebuilt, and now.

Lines, files, the median module, modules that one other module alone imports, and functions of more
than 40 lines. The figures of before are counted in the commit `BEFORE` where this clone has it, and
read from `house_before.json` where it does not. Everything is read as text; nothing is imported.

    python bench/house.py           print the table
    python bench/house.py --write   count `BEFORE` anew and write house_before.json
"""

import ast
import json
import statistics
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).parent.parent
BEFORE = "f2ca372"
STORED = Path(__file__).with_name("house_before.json")
LONG = 40
"""Lines of a function beyond which it is long."""

TARGETS = "targets: 35,000 lines, 220 files, median 120-160, at most 50 with a single importer"

NOW_CALLED = {
    "cli/rehearsals": "selftest",
    "cli/tools": "mcp",
    "cli/wiring": "app",
    "cli/detect": "app",
    "dialects": "formats",
    "ui": "cli",
    **dict.fromkeys(("events", "plan", "scheduler", "state"), "core"),
    **dict.fromkeys(("escapes.py", "hosts.py", "occurrences.py"), "core"),
    **dict.fromkeys(("secrets.py", "settings.py"), "core"),
}
"""Where the parts of before are today, so that a row compares like with like."""

APART = frozenset({"testing"})
"""Shipped for tests, and not part of the totals."""

Sources: TypeAlias = Mapping[str, str]
"""Texts of modules, by their paths below src/windlass."""


class Room(NamedTuple):
    """The figures of one package."""

    lines: int
    files: int
    median: float
    single: int
    long: int


def package_of(path: str) -> str:
    """The row of a module: adapters by what they adapt, the rest by the top folder."""
    for old, new in NOW_CALLED.items():
        if path == old or path.startswith(f"{old}/"):
            return new
    parts = path.split("/")
    if parts[0] == "adapters":
        return "/".join(parts[:2]) if len(parts) > 2 else "adapters"  # noqa: PLR2004
    return parts[0] if len(parts) > 1 else "windlass"


def long_functions(tree: ast.AST) -> int:
    """How many functions have more than LONG lines, docstring and signature included."""
    return sum(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > LONG
        for node in ast.walk(tree)
    )


def imported_by(trees: Mapping[str, ast.AST]) -> dict[str, set[str]]:
    """Each module with those that import it, wherever in them the import stands."""
    modules = {_dotted(path): path for path in trees}
    found: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            for name in _imports(node, modules):
                found[modules[name]].add(path)
    return found


def _imports(node: ast.AST, modules: Mapping[str, str]) -> Iterable[str]:
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names if each.name in modules)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for each in node.names:
            whole = f"{node.module}.{each.name}"
            name = whole if whole in modules else node.module
            if name in modules:
                yield name


def _dotted(path: str) -> str:
    return f"windlass.{path.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")


def figures(sources: Sources) -> dict[str, Room]:
    """The figures of every package, of the whole without what is apart, and of what is apart."""
    trees = {path: ast.parse(text) for path, text in sources.items()}
    importers = imported_by(trees)
    lone = {path for path, others in importers.items() if len(others) == 1}
    rooms: dict[str, list[str]] = defaultdict(list)
    for path in sources:
        package = package_of(path)
        rooms[package].append(path)
        if package not in APART:
            rooms["all but testing"].append(path)
    return {
        name: Room(
            lines=sum(sizes := [len(sources[path].splitlines()) for path in paths]),
            files=len(paths),
            median=statistics.median(sizes),
            single=len(lone.intersection(paths)),
            long=sum(long_functions(trees[path]) for path in paths),
        )
        for name, paths in rooms.items()
    }


def sources_now() -> Sources:
    top = ROOT / "src" / "windlass"
    return {
        path.relative_to(top).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(top.rglob("*.py"))
    }


def sources_before() -> Sources | None:
    """The modules of the commit BEFORE; None in a clone that does not have it."""
    asked = ["git", "-C", str(ROOT), "archive", BEFORE, "src/windlass"]
    try:
        done = subprocess.run(asked, capture_output=True, check=False)
    except OSError:
        return None
    if done.returncode != 0:
        return None
    found: dict[str, str] = {}
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        for member in archive:
            if member.name.endswith(".py") and (file := archive.extractfile(member)) is not None:
                found[member.name.removeprefix("src/windlass/")] = file.read().decode()
    return found


def stored() -> dict[str, Room]:
    return {name: Room(**row) for name, row in json.loads(STORED.read_text()).items()}


def table(before: Mapping[str, Room], now: Mapping[str, Room]) -> Iterable[str]:
    nothing = Room(0, 0, 0, 0, 0)
    last = ("testing", "all but testing")
    names = [*sorted({*before, *now} - set(last)), *last]
    heads = ("lines", "files", "median", "one importer", f"over {LONG} lines")
    yield f"{'':18}" + "".join(f"{head:>18}" for head in heads)
    for name in names:
        pairs = zip(before.get(name, nothing), now.get(name, nothing), strict=True)
        cells = (f"{_number(old)} → {_number(new)}" for old, new in pairs)
        yield f"{name:18}" + "".join(f"{cell:>18}" for cell in cells)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value else "-"


def main() -> None:
    counted = sources_before()
    if "--write" in sys.argv[1:]:
        if counted is None:
            sys.exit(f"this clone does not have the commit {BEFORE}")
        rows = {name: room._asdict() for name, room in sorted(figures(counted).items())}
        STORED.write_text(json.dumps(rows, indent=1) + "\n")
    before = stored() if counted is None else figures(counted)
    told = f"the stored figures of {BEFORE}" if counted is None else BEFORE
    print(f"The source, before ({told}) → now\n")
    print("\n".join(table(before, figures(sources_now()))))
    print(f"\n{TARGETS}")


if __name__ == "__main__":
    main()
