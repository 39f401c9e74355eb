"""Python: pytest or unittest, and how the project's packages are installed."""

import re
import shlex
import tomllib
from collections.abc import Iterable
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from windlass.app.detect.model import Command, Files, Part

_TEST_FILE = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")
_REQUIREMENTS = re.compile(r"([\w.-]*requirements[\w.-]*\.txt|requirements/[\w.-]+\.txt)")
_NAMES_PYTEST = re.compile(r"^\s*pytest\s*(?:[\[=<>~!;@]|$)", re.MULTILINE)
_INSTALLS_ITSELF = re.compile(r"^\s*(?:-e|--editable)[ =]\.", re.MULTILINE)
_READS_GIT = re.compile(r"scm|vcs|versioneer|versioningit|dynamic-versioning|\bpbr\b")
"""Build tools that read git tags, which a workspace does not have."""
_SAFE_NAME = re.compile(r"[A-Za-z0-9._-]+")
_MANY = 50
"""Test files to read, at most."""

_BUILD_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
_OWN, _IN_VENV = "python3", ".venv/bin/python"
_VENV = "python3 -m venv .venv && .venv/bin/pip install"


class _Project(Struct, rename="kebab"):
    dependencies: list[str] = []
    optional_dependencies: dict[str, list[str]] = {}


class _Build(Struct):
    requires: list[str] = []


class _Pyproject(Struct, rename="kebab"):
    """The fields of pyproject.toml that are used."""

    project: _Project | None = None
    build_system: _Build | None = None
    dependency_groups: dict[str, list[Any]] = {}
    tool: dict[str, Any] = {}


class _Source(Struct, frozen=True, kw_only=True):
    """The place that names pytest; `install` is empty if it does not say how to install it."""

    because: str
    install: str = ""
    needs: str = _OWN
    inputs: tuple[str, ...] = ()


def python(files: Files) -> Part | None:
    """The project's tests with pytest, or else with unittest."""
    pyproject = _pyproject(files.get("pyproject.toml", ""))
    source = _source(files, pyproject)
    because = _configured(files, pyproject) or (source.because if source else None)
    tests = [path for path in sorted(files) if _TEST_FILE.search(path)]
    if because is None and tests:
        if _all_unittest(files[path] for path in islice(tests, _MANY)):
            return _unittest(files, tests)
        because = f"{tests[0]} is there"
    return _pytest(because, source) if because is not None else None


def _configured(files: Files, pyproject: _Pyproject) -> str | None:
    """The configuration that shows that pytest runs the tests."""
    if "pytest" in pyproject.tool:
        return "pyproject.toml has [tool.pytest]"
    marks = {
        "pytest.ini": "",
        ".pytest.ini": "",
        "tox.ini": "[pytest]",
        "setup.cfg": "[tool:pytest]",
    }
    for name, mark in marks.items():
        if name in files and mark in files[name]:
            return f"{name} has {mark}" if mark else f"{name} is there"
    fixtures = (path for path in sorted(files) if path.split("/")[-1] == "conftest.py")
    return next((f"{path} is there" for path in fixtures), None)


def _pytest(because: str, source: _Source | None) -> Part:
    if source is None:
        check = Command(f"{_OWN} -m pytest -q", because, needs=_OWN, needs_module="pytest")
        return Part(checks=(check,))
    if not source.install:
        note = f"{source.because}, so write in [workspace] setup how to install it"
        check = Command(f"{_OWN} -m pytest -q", because, needs=_OWN, needs_module="pytest")
        return Part(checks=(check,), notes=(note,))
    return Part(
        checks=(Command(f"{_IN_VENV} -m pytest -q", because),),
        setup=(Command(source.install, source.because, needs=source.needs),),
        inputs=source.inputs,
        keep=(".venv",),
    )


def _source(files: Files, pyproject: _Pyproject) -> _Source | None:
    """The first place that names pytest, the most exact first."""
    if "uv.lock" in files and (found := _locked_by_uv(pyproject)):
        return found
    return _required(files, pyproject) or _declared(files, pyproject) or _managed(pyproject)


def _locked_by_uv(pyproject: _Pyproject) -> _Source | None:
    named = _named(pyproject)
    if named is None:
        return None
    where, option = named
    # A Python that uv downloads is in the home, which checks do not see.
    return _Source(
        because=f"uv.lock is there, and pyproject.toml names pytest in {where}",
        install=f"UV_PYTHON_DOWNLOADS=never uv sync --frozen{option}",
        needs="uv",
        inputs=("pyproject.toml", "uv.lock"),
    )


def _required(files: Files, pyproject: _Pyproject) -> _Source | None:
    names = [path for path in sorted(files, key=_tests_first) if _REQUIREMENTS.fullmatch(path)]
    naming = next((path for path in names if _NAMES_PYTEST.search(files[path])), None)
    if naming is None:
        return None
    wanted = [naming]
    if "requirements.txt" in names and "requirements.txt" not in naming + files[naming]:
        wanted.insert(0, "requirements.txt")
    options = "".join(f" -r {path}" for path in wanted)
    itself = _itself(files, pyproject, names)
    return _Source(
        because=f"{naming} names pytest",
        install=f"{_VENV}{options}{itself}",
        inputs=(*names, *(name for name in _BUILD_FILES if name in files)),
    )


def _itself(files: Files, pyproject: _Pyproject, requirements: list[str]) -> str:
    """How to install the project's own package, if tests could not import it otherwise."""
    texts = [files[path] for path in requirements]
    in_src = any(re.fullmatch(r"src/[^/]+/__init__\.py", path) for path in files)
    installed = any(_INSTALLS_ITSELF.search(text) for text in texts)
    if not in_src or installed or not _installable(files, pyproject):
        return ""
    # With hashes, pip refuses a package that has none.
    hashed = any("--hash=" in text for text in texts)
    return " && .venv/bin/pip install --no-deps -e ." if hashed else " -e ."


def _tests_first(path: str) -> tuple[bool, str]:
    return re.search(r"dev|test", path) is None, path


def _declared(files: Files, pyproject: _Pyproject) -> _Source | None:
    named = _named(pyproject)
    if named is None:
        return None
    where, option = named
    because = f"pyproject.toml names pytest in {where}"
    extra = option.removeprefix(" --extra ")
    if option.startswith(" --group") or not _installable(files, pyproject):
        return _Source(because=because)
    itself = f"'.[{extra}]'" if extra else "."
    return _Source(because=because, install=f"{_VENV} -e {itself}", inputs=("pyproject.toml",))


def _managed(pyproject: _Pyproject) -> _Source | None:
    """Tools that list packages in their own table."""
    for name in ("poetry", "pdm", "hatch"):
        if re.search(r"\bpytest\b", str(pyproject.tool.get(name, ""))):
            return _Source(because=f"pyproject.toml names pytest in [tool.{name}]")
    return None


def _named(pyproject: _Pyproject) -> tuple[str, str] | None:
    """The list that names pytest, and the option with which uv installs it."""
    project = pyproject.project or _Project()
    if _has_pytest(project.dependencies):
        return "its dependencies", ""
    for name, packages in pyproject.dependency_groups.items():
        if _has_pytest(packages) and _SAFE_NAME.fullmatch(name):
            return f"the group {name!r}", f" --group {name}"
    for name, packages in project.optional_dependencies.items():
        if _has_pytest(packages) and _SAFE_NAME.fullmatch(name):
            return f"the extra {name!r}", f" --extra {name}"
    return None


def _has_pytest(packages: Iterable[Any]) -> bool:
    return any(isinstance(each, str) and _NAMES_PYTEST.search(each) for each in packages)


def _installable(files: Files, pyproject: _Pyproject) -> bool:
    build = pyproject.build_system
    if build is None:
        return "setup.py" in files
    return pyproject.project is not None and not _READS_GIT.search(" ".join(build.requires))


def _all_unittest(texts: Iterable[str]) -> bool:
    """Whether these tests need nothing but the standard library's runner."""
    read = list(texts)
    own = all(re.search(r"^\s*(?:import|from) unittest\b", text, re.MULTILINE) for text in read)
    return own and not any(re.search(r"\bpytest\b", text) for text in read)


def _unittest(files: Files, tests: list[str]) -> Part:
    """One command for tests in packages, and one for each plain folder of tests."""
    folders: dict[str, str] = {}
    for path in tests:
        folder = path.rpartition("/")[0]
        # From the root only packages are searched; a plain folder must be named.
        where = "" if _is_package(files, folder) else f" -s {shlex.quote(folder)}"
        folders.setdefault(where, path)
    return Part(
        checks=tuple(
            Command(f"{_OWN} -m unittest discover{where}", f"{path} imports unittest", needs=_OWN)
            for where, path in folders.items()
        )
    )


def _is_package(files: Files, folder: str) -> bool:
    parts = folder.split("/") if folder else []
    return all(f"{'/'.join(parts[: n + 1])}/__init__.py" in files for n in range(len(parts)))


def _pyproject(text: str) -> _Pyproject:
    try:
        return msgspec.convert(tomllib.loads(text), _Pyproject)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError):
        return _Pyproject()  # the tool that uses the file reports the error
