"""JavaScript: the test script of package.json, run by the package manager with a lock file."""

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


class _Manager(Struct, frozen=True):
    """A package manager: its test command, lock files, and exact install command."""

    name: str
    test: str
    locks: tuple[str, ...]
    install: str


_MANAGERS = (
    _Manager("npm", "npm test", ("package-lock.json", "npm-shrinkwrap.json"), "npm ci"),
    _Manager("pnpm", "pnpm test", ("pnpm-lock.yaml",), "pnpm install --frozen-lockfile"),
    _Manager("yarn", "yarn test", ("yarn.lock",), "yarn install --frozen-lockfile"),
    # `bun test` would be bun's own runner rather than the script.
    _Manager("bun", "bun run test", ("bun.lock", "bun.lockb"), "bun install --frozen-lockfile"),
)


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
    if lock is None:
        note = "package.json has no lock file, so write in [workspace] setup what to install"
        return Part(checks=(check,), notes=(note,))
    if lock == "yarn.lock" and "# yarn lockfile v1" not in files[lock]:
        # Newer yarn may keep packages in the home, which checks do not see.
        note = "yarn.lock is not of yarn 1, so write in [workspace] setup how to install"
        return Part(checks=(check,), notes=(note,))
    return Part(
        checks=(check,),
        setup=(Command(manager.install, f"{lock} is there", needs=manager.name),),
        inputs=("package.json", lock),
        keep=("node_modules",),
    )


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
