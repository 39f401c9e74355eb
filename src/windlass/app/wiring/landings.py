"""The next command that opens the run settles a landing that died, even if it does not land."""

import anyio

from windlass.adapters.git.landing import Branches, unfinished_landings
from windlass.adapters.git.store import Store
from windlass.app.wiring.project import Project


def settle_landings(project: Project, plan_id: str) -> None:
    """Undo or complete landings that died in the user's checkouts."""
    if not unfinished_landings(project.origin):
        return
    store = Store(project.origin, project.folders(plan_id))
    try:
        anyio.run(Branches(store, project.environment).settle)
    finally:
        store.close()
