"""The layers format: task files in layer folders, and `execute-state.json` beside them."""

from windlass.formats.dialect import Dialect
from windlass.formats.layers import reader, state

LAYERS = Dialect(
    name=reader.name,
    recognises=reader.recognises,
    parse=reader.parse,
    writes=state.writes,
    project=state.project,
    claims=state.claims,
)
