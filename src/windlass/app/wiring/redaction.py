"""What Windlass knows to be secret on this machine: variables, the files they name, settings."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from windlass.adapters.files import read_plainly
from windlass.app.wiring.configuration import secret_values
from windlass.core.secrets import Redactor, gives_away


def redactor_for(root: Path, environment: Mapping[str, str]) -> Redactor:
    """The redactor for all that Windlass writes about the project at this place."""
    known = (*_files(environment), *secret_values(root, environment))
    return Redactor(environment, known)


def _files(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is in the files that such variables name: the path is no secret, the key in it is."""
    home = environment.get("HOME", "")
    for name, value in environment.items():
        path = value.strip()
        if gives_away(name) and path.startswith(("/", "~/")):
            # A link is followed, for secrets are often mounted through one.
            place = Path(f"{home}{path[1:]}" if path.startswith("~") else path).resolve()
            if (content := read_plainly(place)) is not None:
                yield name, content
