"""SpecFlow's format: a spec with task groups, its execution state and its row in `STATE.md`."""

from windlass.formats.dialect import Dialect
from windlass.formats.spec import reader, state

SPEC = Dialect(
    name=reader.name,
    continue_here=state.CONTINUE_HERE,
    recognises=reader.recognises,
    parse=reader.parse,
    writes=state.writes,
    shares=state.shares,
    project=state.project,
    claims=state.claims,
)
