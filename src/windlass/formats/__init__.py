"""Plan formats: from a file's text to a valid plan, and from a run's state to the state files.

`registry.py` lists the dialects, `loading.py` reads a plan. Each format is a package or a module of
its own; the other modules are readers that they share.
"""

from collections.abc import Mapping
from types import MappingProxyType

from windlass.core.plan import Plan
from windlass.core.state import RunState
from windlass.formats import registry
from windlass.formats.dialect import Projection
from windlass.formats.loading import load, plan_id, refers_to
from windlass.formats.registry import CONTINUE_HERE, DIALECTS
from windlass.formats.state_files import Claims, Redact

__all__ = [
    "CONTINUE_HERE",
    "DIALECTS",
    "claims",
    "continue_here_path",
    "load",
    "plan_id",
    "project",
    "refers_to",
    "shares",
    "writes",
]


def writes(plan: Plan) -> tuple[str, ...]:
    """Every file below the repository that the plan's state is written to."""
    return registry.dialect_of(plan.dialect).writes(plan)


def shares(plan: Plan) -> tuple[str, ...]:
    """Those of them that belong to the user; Windlass writes only a part of them."""
    return registry.dialect_of(plan.dialect).shares(plan)


def continue_here_path(plan: Plan) -> str:
    """The file below the repository that describes the rest of a paused run."""
    return registry.dialect_of(plan.dialect).continue_here


def project(
    state: RunState,
    texts: Mapping[str, str] = MappingProxyType({}),
    redact: Redact = str,
) -> Projection:
    """The state files of the plan's dialect.

    `texts` are the existing files of `writes`, as they are now.
    """
    return registry.dialect_of(state.plan.dialect).project(state, texts, redact)


def claims(path: str, text: str) -> Claims | None:
    """What another tool's state file claims; None where no dialect knows such a file."""
    found = (each.claims(path, text) for each in registry.DIALECTS)
    return next((each for each in found if each is not None), None)
