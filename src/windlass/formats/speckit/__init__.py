"""spec-kit's format: a list of boxes in `tasks.md`, which Windlass ticks."""

from windlass.formats.dialect import Dialect
from windlass.formats.speckit import reader, state

SPECKIT = Dialect(
    name=reader.name,
    recognises=reader.recognises,
    parse=reader.parse,
    refers_to=reader.refers_to,
    writes=lambda plan: (plan.path,),
    shares=lambda plan: (plan.path,),
    project=state.project,
)
