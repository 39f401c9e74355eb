"""Collects the known secrets of this machine: variables, the files that they name, settings."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from windlass.adapters.files import read_plainly
from windlass.app.wiring.configuration import secret_values
from windlass.core.secrets import Redactor, names_secret


def redactor_for(root: Path, environment: Mapping[str, str]) -> Redactor:
    """The redactor for everything that Windlass writes about the project."""
    known = (*_files(environment), *secret_values(root, environment))
    return Redactor(environment, known)


def _files(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The contents of files that secret variables name: the path is not secret, the key is."""
    home = environment.get("HOME", "")
    for name, value in environment.items():
        path = value.strip()
        if names_secret(name) and path.startswith(("/", "~/")):
            # Links are followed, because secrets are often mounted through one.
            place = Path(f"{home}{path[1:]}" if path.startswith("~") else path).resolve()
            if (content := read_plainly(place)) is not None:
                yield name, content
