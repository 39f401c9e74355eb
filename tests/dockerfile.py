"""The steps of the Dockerfile, and a clean root to run them in where there is no builder."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from packages import ROOT

_FROM_ETC = (
    *("passwd", "group", "shadow", "gshadow", "login.defs", "default/useradd", "skel", "ssl"),
    *("ld.so.cache", "alternatives", "resolv.conf", "hosts", "nsswitch.conf", "pip.conf"),
)


class Dockerfile:
    """The steps of the image, as (instruction, rest)."""

    def __init__(self) -> None:
        text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
        joined = text.replace("\\\n", " ")
        lines = (line.partition(" ") for line in joined.splitlines() if line.strip())
        self.steps = [(word, " ".join(rest.split())) for word, _, rest in lines]

    def of(self, word: str) -> list[str]:
        return [rest for each, rest in self.steps if each == word]

    @property
    def packages(self) -> list[str]:
        """The packages that apt installs."""
        (line,) = (each for each in self.of("RUN") if "apt-get install" in each)
        words = line.partition("apt-get install")[2].partition("&&")[0].split()
        return [word for word in words if not word.startswith("-")]

    @property
    def variables(self) -> dict[str, str]:
        return dict(pair.split("=", 1) for line in self.of("ENV") for pair in line.split())


class CleanRoot:
    """A root with this machine's /usr and nothing else of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("etc", "tmp", "opt", "home", "root", "var/tmp", "var/mail"):
            (folder / name).mkdir(parents=True)
        (folder / "tmp").chmod(0o1777)
        for name in _FROM_ETC:
            self._take(Path("/etc", name))

    def _take(self, path: Path) -> None:
        target = self._folder / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, symlinks=True)
        elif path.exists():
            shutil.copy2(path, target)

    def copy(self, line: str) -> None:
        """COPY."""
        *sources, target = line.split()
        to = self._folder / target.strip("/")
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, to, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                to.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / source, to)

    @property
    def command(self) -> list[str]:
        """What a command in this root begins with."""
        return ["bwrap", *self._mounts(), "--clearenv", *self._variables()]

    def _mounts(self) -> Iterator[str]:
        yield from ("--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev")
        for name in ("bin", "sbin", "lib", "lib64"):
            yield from ("--symlink", f"usr/{name}", f"/{name}")
        for each in self._folder.iterdir():
            yield from ("--bind", str(each), f"/{each.name}")
        for place in Path("/opt").iterdir():
            if place.name.startswith(("pypi", "wheels")):  # a package index on this machine
                yield from ("--ro-bind", str(place), str(place))

    @staticmethod
    def _variables() -> Iterator[str]:
        yield from (
            "--setenv",
            "PATH",
            "/usr/sbin:/usr/bin:/sbin:/bin",
            "--setenv",
            "HOME",
            "/root",
        )
        for name, value in os.environ.items():
            if name.startswith("PIP_"):
                yield from ("--setenv", name, value)

    def as_user(self, image: Dockerfile) -> list[str]:
        """What the image runs, as its user and without a network."""
        (user,), (folder,) = image.of("USER"), image.of("WORKDIR")
        variables = [f"{name}={value}" for name, value in image.variables.items()]
        return [
            *self.command,
            *("--unshare-net", "--chdir", folder),
            *("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--reset-env"),
            *("env", *variables),
            *(*json.loads(image.of("ENTRYPOINT")[0]), *json.loads(image.of("CMD")[0])),
        ]
