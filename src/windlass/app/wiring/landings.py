"""A landing that died is settled by the next command that opens the run, also by no landing."""

import anyio

from windlass.adapters.git.landing import Branches, unfinished_landings
from windlass.adapters.git.store import Store
from windlass.app.wiring.project import Project


def settle_landings(project: Project, plan_id: str) -> None:
    """Take back or complete what landings have left in the user's checkouts."""
    if not unfinished_landings(project.origin):
        return
    store = Store(project.origin, project.folders(plan_id))
    try:
        anyio.run(Branches(store, project.environment).settle)
    finally:
        store.close()
