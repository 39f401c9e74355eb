"""Whether changed files parse, by the parsers that this machine has.

No project code is executed: files are parsed in the sandbox, in an excerpt of the commit. Only
languages where a parse error is certainly an error are checked; those with dialects (JSON with
comments, JavaScript with JSX) are left to the project's own checks. If the project needs a newer
language version than any parser here, nothing is reported.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

_MARK = "windlass: "
"""Begins each line of ours: a parser that dies may print others."""

_PYTHON = """
import ast, sys, warnings

def newer():
    import shutil
    for minor in range(40, sys.version_info[1], -1):
        if found := shutil.which(f"python3.{minor}"):
            yield found

def wanted():
    import re
    for name, form in (
        ("pyproject.toml", r"requires-python\\s*=\\s*.*?>=?\\s*3\\.(\\d+)"),
        (".python-version", r"^\\s*3\\.(\\d+)"),
    ):
        try:
            with open(name, encoding="utf-8", errors="replace") as file:
                yield from (int(minor) for minor in re.findall(form, file.read()))
        except OSError:
            pass

warnings.simplefilter("ignore")
sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
wrong = {}
for path in sys.argv[2:]:
    try:
        with open(path, "rb") as file:
            ast.parse(file.read(), path)
    except SyntaxError as error:
        wrong[path] = f"{error.lineno or 0}: {error.msg}"
    except (OSError, ValueError, RecursionError, MemoryError):
        pass
for other in newer() if wrong else ():
    import subprocess
    again = [other, "-I", "-c", sys.argv[1], sys.argv[1], *wrong]
    if subprocess.run(again, check=False).returncode == 0:
        sys.exit(0)
if wrong and all(minor <= sys.version_info[1] for minor in wanted()):
    for path, said in wrong.items():
        print(f"windlass: {' '.join(path.split())}:{said}", flush=True)
"""
_TOML = """
import sys
try:
    import tomllib
except ImportError:
    sys.exit(0)
sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
for path in sys.argv[2:]:
    try:
        with open(path, "rb") as file:
            tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        print(f"windlass: {' '.join(path.split())}: {' '.join(str(error).split())}", flush=True)
    except (OSError, RecursionError):
        pass
"""
_PARSERS = {".py": _PYTHON, ".toml": _TOML}

BESIDE = frozenset({"pyproject.toml", ".python-version"})
"""Files that say which language version a project uses."""

_NOT_CODE = frozenset({"cassettes", "data", "fixtures", "snapshots", "templates", "testdata"})
"""Folders whose files may be broken on purpose, or become code later."""

MOST = 500
"""Files that are parsed; larger changes rely on the project's checks."""

_NAMED = 20
"""Files that are named in the report."""

TAIL = 100_000
"""Characters of a parser's output that are read."""

TIMEOUT = 60.0
"""Seconds for one parser."""

_AT_ONCE = 60_000
"""Characters of paths in one command line."""


def parseable(paths: Iterable[str]) -> frozenset[str]:
    """The files that have a parser, at most MOST of them."""
    asked = [path for path in paths if _is_code(PurePosixPath(path))]
    return frozenset(asked[:MOST])


def parsers_for(files: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The commands that parse these files; each prints a line per file that does not parse."""
    for suffix, parser in _PARSERS.items():
        batch: list[str] = []
        for path in (f"./{path}" for path in files if PurePosixPath(path).suffix == suffix):
            if batch and sum(map(len, batch)) + len(path) > _AT_ONCE:
                yield _command(parser, batch)
                batch = []
            batch.append(path)
        if batch:
            yield _command(parser, batch)


def syntax_errors(output: str) -> list[str]:
    """The reported lines, at most a few."""
    lines = [line for line in output.splitlines() if line.startswith(_MARK)]
    errors = [line.removeprefix(_MARK).removeprefix("./") for line in lines]
    more = len(errors) - _NAMED
    return [*errors[:_NAMED], *([f"{more} more files cannot be parsed"] if more > 0 else [])]


def _command(parser: str, files: Sequence[str]) -> tuple[str, ...]:
    # The script gets its own text, so that it can pass files to a newer Python.
    return ("python3", "-I", "-c", parser, parser, *files)


def _is_code(path: PurePosixPath) -> bool:
    return (
        path.suffix in _PARSERS
        and _NOT_CODE.isdisjoint(path.parts)
        and "{{" not in str(path)  # a project template
    )
