"""JavaScript: the test script of package.json, run by the package manager with a lock file."""

from typing import Any

import msgspec
from msgspec import Struct

from windlass.app.detect.model import Command, Files, Part

_PLACEHOLDER = "no test specified"
"""In the script that `npm init` writes, which always fails."""


class _Package(Struct, rename={"package_manager": "packageManager", "dev": "devDependencies"}):
    """The fields of package.json that are used."""

    scripts: dict[str, str] = {}
    package_manager: str = ""
    dependencies: dict[str, str] = {}
    dev: dict[str, str] = {}
    workspaces: Any = None


class _Manager(Struct, frozen=True):
    """A package manager: its test command, lock files, and exact install command."""

    name: str
    test: str
    locks: tuple[str, ...]
    install: str
    unlocked: str
    """Installs without a lock file, and writes none."""


_MANAGERS = (
    _Manager(
        "npm",
        "npm test",
        ("package-lock.json", "npm-shrinkwrap.json"),
        "npm ci",
        "npm install --no-package-lock",
    ),
    _Manager(
        "pnpm",
        "pnpm test",
        ("pnpm-lock.yaml",),
        "pnpm install --frozen-lockfile",
        "pnpm install --no-lockfile",
    ),
    _Manager(
        "yarn",
        "yarn test",
        ("yarn.lock",),
        "yarn install --frozen-lockfile",
        "yarn install --no-lockfile",
    ),
    # `bun test` would be bun's own runner rather than the script.
    _Manager(
        "bun",
        "bun run test",
        ("bun.lock", "bun.lockb"),
        "bun install --frozen-lockfile",
        "bun install --no-save",
    ),
)
# Newer yarn keeps packages in the home, which checks do not see, unless it is told otherwise.
_YARN = "YARN_ENABLE_GLOBAL_CACHE=false yarn"


def javascript(files: Files) -> Part | None:
    """The project's test script, and the setup of its packages."""
    package = _package(files)
    script = package.scripts.get("test", "") if package is not None else ""
    if package is None or not script or _PLACEHOLDER in script:
        return None
    manager = _manager(package, files)
    because = f"package.json has a script 'test': {script}"
    check = Command(manager.test, because, needs=manager.name)
    if not (package.dependencies or package.dev):
        return Part(checks=(check,))
    lock = next((name for name in manager.locks if name in files), None)
    named = ("package.json", *(("*/package.json",) if _has_workspaces(package, files) else ()))
    if lock is None:
        because = "package.json names packages, and there is no lock file"
        setup = Command(manager.unlocked, because, needs=manager.name)
        return Part(checks=(check,), setup=(setup,), inputs=named, keep=("node_modules",))
    setup = Command(manager.install, f"{lock} is there", needs=manager.name)
    keep = ("node_modules",)
    if lock == "yarn.lock" and "# yarn lockfile v1" not in files[lock]:
        check = Command(f"{_YARN} test", check.because, needs="yarn")
        setup = Command(f"{_YARN} install --immutable", f"{lock} is there", needs="yarn")
        keep = ("node_modules", ".yarn/cache")
    return Part(checks=(check,), setup=(setup,), inputs=(*named, lock), keep=keep)


def _has_workspaces(package: _Package, files: Files) -> bool:
    return bool(package.workspaces) or "pnpm-workspace.yaml" in files


def _package(files: Files) -> _Package | None:
    try:
        return msgspec.json.decode(files.get("package.json", ""), type=_Package)
    except msgspec.MsgspecError:
        return None


def _manager(package: _Package, files: Files) -> _Manager:
    named = package.package_manager.partition("@")[0]
    for manager in _MANAGERS:
        if manager.name == named:
            return manager
    return next((m for m in _MANAGERS if any(lock in files for lock in m.locks)), _MANAGERS[0])
