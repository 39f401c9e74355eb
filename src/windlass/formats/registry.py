"""Every dialect. To add a format, write its package and add one line to `DIALECTS`."""

from windlass.formats import feature, layers, milestone, spec, speckit, taskfile
from windlass.formats.dialect import Dialect

DIALECTS: tuple[Dialect, ...] = (
    feature.FEATURE,
    spec.SPEC,
    milestone.MILESTONE,
    taskfile.TASKFILE,
    speckit.SPECKIT,
    layers.LAYERS,
    taskfile.TASKFOLDER,
)
"""The first dialect that recognises a source reads it."""

CONTINUE_HERE: tuple[str, ...] = tuple(dict.fromkeys(each.continue_here for each in DIALECTS))
"""Every file below the repository that may describe the rest of a paused run."""

_UNKNOWN = Dialect(name="", recognises=lambda _source: False, parse=milestone.MILESTONE.parse)


def dialect_of(name: str) -> Dialect:
    """The dialect of this name. One that only a newer version knows writes no files."""
    return next((each for each in DIALECTS if each.name == name), _UNKNOWN)
