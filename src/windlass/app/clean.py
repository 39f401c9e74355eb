"""`clean`: delete workspaces, caches, logs and refs whose work is merged or pinned.

Law: it works under the plan's lock, and asks before it deletes anything. Work that is not pinned is
pinned first; if that fails, it stays.
"""

from collections.abc import Callable

import anyio
from msgspec import Struct

from windlass.app.plans import selected_plans
from windlass.app.wiring import Project
from windlass.app.wiring.cleaning import Cleanup, CleanupOptions
from windlass.app.wiring.landings import settle_landings
from windlass.core.engine import runs
from windlass.errors import BadInput, Busy, WindlassError
from windlass.views.cleaning import Item
from windlass.views.outcome import Exit


class CleanRequest(CleanupOptions, frozen=True, kw_only=True):
    """Which plan to clean up, and what to delete in addition."""

    plan: str | None = None
    """None: every plan that was run here."""


class Found(Struct, frozen=True, kw_only=True):
    """The things of one plan, each to be deleted or kept."""

    plan: str
    items: tuple[Item, ...]

    @property
    def going(self) -> int:
        """How many would be deleted."""
        return sum(item.goes for item in self.items)


class Cleaned(Struct, frozen=True, kw_only=True):
    """The result for one plan."""

    plan: str
    deleted: tuple[Item, ...] = ()
    failed: tuple[Item, ...] = ()
    """What could not be deleted, each with the reason."""
    busy: Busy | None = None
    """Set if a run of the plan is live; then nothing was deleted."""

    @property
    def exit_code(self) -> int:
        if self.busy is not None:
            return Exit.BUSY
        return Exit.FAILED if self.failed else Exit.COMPLETED


def clean(
    project: Project, request: CleanRequest, *, confirm: Callable[[Found], bool]
) -> tuple[Cleaned, ...]:
    """Delete what can be deleted, plan by plan, if `confirm` agrees to the list.

    A plan with a live run is skipped, unless it is the one that was named.
    """
    return tuple(
        _clean(project, plan_id, request, confirm)
        for plan_id in selected_plans(project, request.plan)
    )


def _clean(
    project: Project, plan_id: str, request: CleanRequest, confirm: Callable[[Found], bool]
) -> Cleaned:
    try:
        with project.journals.session(plan_id) as session:
            settle_landings(project, plan_id)
            states = runs(entry.event for entry in session.entries)
            if not states:
                raise BadInput(f"plan {plan_id!r} was never run here", hint="`windlass status`")
            cleanup = Cleanup(project, states, request)
            return anyio.run(_delete, cleanup, plan_id, confirm)
    except Busy as busy:
        if request.plan is not None:
            raise
        return Cleaned(plan=plan_id, busy=busy)


async def _delete(cleanup: Cleanup, plan_id: str, confirm: Callable[[Found], bool]) -> Cleaned:
    try:
        found = await cleanup.look()
        shown = Found(plan=plan_id, items=tuple(each.item for each in found))
        if not confirm(shown) or not shown.going:
            return Cleaned(plan=plan_id)
        cleanup.end_leftovers()
        deleted: list[Item] = []
        failed: list[Item] = []
        for each in found:
            if each.delete is None:
                continue
            try:
                await each.delete()
                deleted.append(each.item)
            except (WindlassError, OSError) as error:
                failed.append(Item(name=each.item.name, goes=False, why=str(error)))
        return Cleaned(plan=plan_id, deleted=tuple(deleted), failed=tuple(failed))
    finally:
        await cleanup.close()
