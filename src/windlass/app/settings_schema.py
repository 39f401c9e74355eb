"""The JSON Schema of windlass.toml, and the copy of it that editors read.

docs/generate.py makes the schema from the types of the settings. It is in the package, because no
host serves it: `windlass init` writes a copy beside the runs and names it in windlass.toml.
"""

from importlib.resources import files

from windlass.app.wiring import Project
from windlass.app.wiring.configuration import FILE

COPY = ".windlass/windlass.schema.json"
LINE = f"#:schema {COPY}"
"""The comment that names the schema, for editors that know TOML."""


def schema_text() -> str:
    return (files("windlass") / "app" / "settings.schema.json").read_text(encoding="utf-8")


def write_schema(project: Project) -> None:
    """Write the copy, if it is missing or of another version."""
    text = schema_text()
    if project.files.read(COPY) != text:
        project.make_home()
        project.files.write(COPY, text)


def refresh_schema(project: Project) -> None:
    """Write the copy if windlass.toml names it: a fresh clone has the one and not the other."""
    if LINE in (project.files.read(FILE) or "").splitlines():
        write_schema(project)
