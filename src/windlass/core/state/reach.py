"""Which tasks can never start as things stand, and because of which."""

from collections.abc import Mapping

from windlass.core.state.model import RunState


def blocked(state: RunState) -> Mapping[str, str]:
    """Each task that has yet to begin and cannot, with the abandoned one it waits for."""
    return state.index.blocked
