"""`windlass schema`."""

import click

from windlass.app.settings_schema import COPY, schema_text

_HELP = f"""\
Print the JSON Schema of windlass.toml: every key with its bounds and its meaning.

`windlass init` writes it to {COPY}, and the first line of windlass.toml names that file, so that an
editor can complete and check the settings. `windlass run` keeps the file up to date.

\b
Example:
  windlass schema > windlass.schema.json
"""


@click.command("schema", help=_HELP)
def command() -> int:
    click.echo(schema_text(), nl=False)
    return 0
