"""The order of a plan's runs, counted in their pins. Law: no clock says which run is the newest."""

from windlass.adapters.git.layout import Refs, orders
from windlass.adapters.git.store import Store


async def next_order(store: Store, refs: Refs) -> str:
    """The pin that makes this run the newest of its plan; the caller holds the plan's lock."""
    known = await _orders(store, refs)
    return refs.order(max(known.values(), default=0) + 1)


async def is_newest(store: Store, refs: Refs) -> bool:
    """Whether the run's place is above that of every other run of its plan."""
    known = await _orders(store, refs)
    return known.pop(refs.run, 0) > max(known.values(), default=0)


async def _orders(store: Store, refs: Refs) -> dict[str, int]:
    return orders(await store.pins(f"refs/windlass/{refs.plan}/"), refs.plan)
