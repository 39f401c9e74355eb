"""Python: what runs the tests, and how the project's packages are installed."""

import re
import shlex
import tomllib
from collections.abc import Iterable
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct, structs

from windlass.app.detect.model import Command, Files, Part

_TEST_FILE = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")
_REQUIREMENTS = re.compile(r"([\w.-]*requirements[\w.-]*\.txt|requirements/[\w.-]+\.txt)")
_NAMES_PYTEST = re.compile(r"^\s*pytest\s*(?:[\[=<>~!;@]|$)", re.MULTILINE)
_INSTALLS_ITSELF = re.compile(r"^\s*(?:-e|--editable)[ =]\.", re.MULTILINE)
_NEEDS_TAGS = re.compile(r"versioningit|vcs-versioning")
"""Build tools that fail without git tags, which a workspace does not have."""
_VERSIONS = {
    r"setuptools[-_]scm|hatch-vcs": "SETUPTOOLS_SCM_PRETEND_VERSION",
    r"poetry-dynamic-versioning": "POETRY_DYNAMIC_VERSIONING_BYPASS",
    r"uv-dynamic-versioning": "UV_DYNAMIC_VERSIONING_BYPASS",
    r"\bpbr\b": "PBR_VERSION",
}
"""Build tools that read git tags, each with the variable that gives a version instead."""
_SAFE_NAME = re.compile(r"[A-Za-z0-9._-]+")
_MANY = 50
"""Test files to read, at most."""

_BUILD_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
_OWN, _IN_VENV = "python3", ".venv/bin/python"
_VENV = "python3 -m venv .venv && .venv/bin/pip install"
_PYTEST = "-m pytest -q"
_SCRIPTS = {"manage.py": "manage.py test", "tests/runtests.py": "tests/runtests.py"}
"""Scripts that run a project's tests: of every Django site, and of Django itself."""
_LISTS = ("requirements.txt", "tests/requirements.txt", "tests/requirements/py3.txt")
"""Lists of packages that a project's tests need as a whole."""
_LOCKS = {
    # A Python that uv downloads is in the home, which checks do not see.
    "uv.lock": "UV_PYTHON_DOWNLOADS=never uv sync --frozen",
    "poetry.lock": "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction",
    "pdm.lock": "PDM_CHECK_UPDATE=false pdm sync --dev",
    "Pipfile.lock": "PIPENV_VENV_IN_PROJECT=1 pipenv sync --dev",
}
"""Each lock file, with the command that installs exactly what it names into .venv."""


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
    """The place that names the packages; `install` is empty if it does not say how to install."""

    because: str
    install: str = ""
    needs: str = _OWN
    inputs: tuple[str, ...] = ()


class _Runner(Struct, frozen=True):
    """What runs the tests: the arguments of Python, each with its reason."""

    calls: tuple[tuple[str, str], ...]
    module: str = ""
    """The module that must be installed for it."""


def python(files: Files) -> Part | None:
    """The project's tests with their own runner, and the setup of its packages."""
    pyproject = _pyproject(files.get("pyproject.toml", ""))
    naming = _naming_pytest(files, pyproject)
    runner = _runner(files, pyproject, naming)
    if runner is None:
        return None
    if runner.module:
        source = naming or _with_pytest(files, pyproject)
    else:
        source = _locked(files, pyproject) or _listed(files, pyproject)
    installs = source is not None and bool(source.install)
    own = "" if installs else _OWN
    checks = tuple(
        Command(
            f"{_IN_VENV if installs else _OWN} {call}",
            why,
            needs=own,
            needs_module=runner.module if own else "",
        )
        for call, why in runner.calls
    )
    if source is None:
        return Part(checks=checks)
    if not installs:
        note = f"{source.because}, so write in [workspace] setup how to install it"
        return Part(checks=checks, notes=(note,))
    return Part(
        checks=checks,
        setup=(Command(source.install, source.because, needs=source.needs),),
        inputs=source.inputs,
        keep=(".venv",),
    )


def _runner(files: Files, pyproject: _Pyproject, naming: _Source | None) -> _Runner | None:
    """Pytest if it is configured or named, else the project's own runner, else what tests need."""
    because = _configured(files, pyproject) or (naming.because if naming else None)
    if because is not None:
        return _Runner(((_PYTEST, because),), "pytest")
    for script, call in _SCRIPTS.items():
        if script in files:
            return _Runner(((call, f"{script} is there"),))
    tests = [path for path in sorted(files) if _TEST_FILE.search(path)]
    if not tests:
        return None
    if _all_unittest(files[path] for path in islice(tests, _MANY)):
        return _Runner(_unittest(files, tests))
    return _Runner(((_PYTEST, f"{tests[0]} is there"),), "pytest")


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


def _naming_pytest(files: Files, pyproject: _Pyproject) -> _Source | None:
    """The first place that names pytest, the most exact first."""
    named = _named(pyproject)
    if "uv.lock" in files and named is not None:
        where, option = named
        because = f"uv.lock is there, and pyproject.toml names pytest in {where}"
        return _locked_by("uv.lock", files, pyproject, because, option)
    for lock, table in (("poetry.lock", "poetry"), ("pdm.lock", "pdm")):
        if lock in files and (named or _names_pytest(pyproject.tool.get(table))):
            because = f"{lock} is there, and pyproject.toml names pytest"
            return _locked_by(lock, files, pyproject, because)
    if "Pipfile.lock" in files and _names_pytest(files.get("Pipfile", "")):
        because = "Pipfile.lock is there, and Pipfile names pytest"
        return _locked_by("Pipfile.lock", files, pyproject, because)
    return _required(files, pyproject) or _declared(files, pyproject) or _managed(pyproject)


def _locked(files: Files, pyproject: _Pyproject) -> _Source | None:
    """The lock file of a package manager, for a project that does without pytest."""
    known = _LOCKS if pyproject.project or pyproject.tool else {"Pipfile.lock": ""}
    lock = next((name for name in known if name in files), None)
    return _locked_by(lock, files, pyproject, f"{lock} is there") if lock else None


def _locked_by(
    lock: str, files: Files, pyproject: _Pyproject, because: str, option: str = ""
) -> _Source:
    install = _LOCKS[lock]
    program = next(word for word in install.split() if "=" not in word)
    beside = "Pipfile" if lock == "Pipfile.lock" else "pyproject.toml"
    inputs = tuple(name for name in (beside, lock) if name in files)
    install = f"{_pretended(pyproject)}{install}{option}"
    return _Source(because=because, install=install, needs=program, inputs=inputs)


def _listed(files: Files, pyproject: _Pyproject) -> _Source | None:
    """The packages that the project lists without naming pytest."""
    names = [path for path in _LISTS if path in files]
    itself = _installable(files, pyproject) and (
        pyproject.project is not None or "setup.py" in files
    )
    if not names and not itself:
        return None
    options = "".join(f" -r {path}" for path in names) + (" -e ." if itself else "")
    build = [name for name in _BUILD_FILES if name in files]
    return _Source(
        because=f"{names[0] if names else build[0]} is there",
        install=f"{_pretended(pyproject)}{_VENV}{options}",
        inputs=(*names, *build),
    )


def _with_pytest(files: Files, pyproject: _Pyproject) -> _Source | None:
    """The same with pytest, which the tests need and no file names."""
    found = _listed(files, pyproject)
    if found is None:
        return None
    because = f"{found.because}; no file names pytest, so the newest is installed"
    return structs.replace(found, because=because, install=f"{found.install} pytest")


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
        install=f"{_pretended(pyproject) if itself else ''}{_VENV}{options}{itself}",
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
    installs = _installable(files, pyproject)
    if option.startswith(" --group"):
        itself = " -e ." if installs else ""
        install = f"{_VENV} --upgrade 'pip>=25.1' && .venv/bin/pip install{option}{itself}"
    elif not installs:
        return _Source(because=because)
    else:
        extra = option.removeprefix(" --extra ")
        itself = f"'.[{extra}]'" if extra else "."
        install = f"{_VENV} -e {itself}"
    install = f"{_pretended(pyproject) if installs else ''}{install}"
    return _Source(because=because, install=install, inputs=("pyproject.toml",))


def _managed(pyproject: _Pyproject) -> _Source | None:
    """Tools that list packages in their own table."""
    for name in ("poetry", "pdm", "hatch"):
        if _names_pytest(pyproject.tool.get(name)):
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


def _names_pytest(table: object) -> bool:
    return re.search(r"\bpytest\b", str(table)) is not None


def _has_pytest(packages: Iterable[Any]) -> bool:
    return any(isinstance(each, str) and _NAMES_PYTEST.search(each) for each in packages)


def _installable(files: Files, pyproject: _Pyproject) -> bool:
    build = pyproject.build_system
    if build is None:
        return "setup.py" in files
    return pyproject.project is not None and not _NEEDS_TAGS.search(" ".join(build.requires))


def _pretended(pyproject: _Pyproject) -> str:
    """A version for build tools that read git tags, which a workspace does not have."""
    build = pyproject.build_system
    needs = " ".join(build.requires) if build is not None else ""
    found = (name for pattern, name in _VERSIONS.items() if re.search(pattern, needs))
    return "".join(f"export {name}=0.0.0 && " for name in found)


def _all_unittest(texts: Iterable[str]) -> bool:
    """Whether these tests need nothing but the standard library's runner."""
    read = list(texts)
    own = all(re.search(r"^\s*(?:import|from) unittest\b", text, re.MULTILINE) for text in read)
    return own and not any(re.search(r"\bpytest\b", text) for text in read)


def _unittest(files: Files, tests: list[str]) -> tuple[tuple[str, str], ...]:
    """One call for tests in packages, and one for each plain folder of tests."""
    folders: dict[str, str] = {}
    for path in tests:
        folder = path.rpartition("/")[0]
        # From the root only packages are searched; a plain folder must be named.
        where = "" if _is_package(files, folder) else f" -s {shlex.quote(folder)}"
        folders.setdefault(where, path)
    return tuple(
        (f"-m unittest discover{where}", f"{path} imports unittest")
        for where, path in folders.items()
    )


def _is_package(files: Files, folder: str) -> bool:
    parts = folder.split("/") if folder else []
    return all(f"{'/'.join(parts[: n + 1])}/__init__.py" in files for n in range(len(parts)))


def _pyproject(text: str) -> _Pyproject:
    try:
        return msgspec.convert(tomllib.loads(text), _Pyproject)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError):
        return _Pyproject()  # the tool that uses the file reports the error
