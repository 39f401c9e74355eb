"""`history`: every run of a plan, or of every plan here, newest first."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from windlass.app.plans import never_run, selected_plans
from windlass.app.wiring import Project
from windlass.core.engine import runs
from windlass.core.state.budget import written_off
from windlass.errors import JournalError
from windlass.views.progress import Past, past


class History(Struct, frozen=True, kw_only=True):
    """The runs, newest first."""

    runs: tuple[Past, ...]
    unreadable: Mapping[str, str] = {}
    """Plans whose journal cannot be read, each with the reason."""


def history(project: Project, plan: str | None = None) -> History:
    """Every run of a plan; without a name, of every plan that was run here."""
    found: list[tuple[datetime, int, Past]] = []
    unreadable: dict[str, str] = {}
    for plan_id in selected_plans(project, plan):
        try:
            found += _in_order(_runs(project, plan_id))
        except JournalError as error:
            if plan is not None:
                raise
            unreadable[plan_id] = str(error)  # it must not hide the others
    if not found and not unreadable:
        raise never_run(project)
    found.sort(key=itemgetter(0, 1), reverse=True)
    return History(runs=tuple(each for _, _, each in found), unreadable=unreadable)


def _runs(project: Project, plan_id: str) -> list[Past]:
    live = project.journals.live_pid(plan_id) is not None
    states = runs(entry.event for entry in project.journals.entries(plan_id))
    if states and not live:
        states[-1] = written_off(states[-1])
    found = [replace(past(state), plan=plan_id) for state in states]
    if found and found[-1].status == "in_progress" and not live:
        # A run whose process has died is never shown as running.
        found[-1] = replace(found[-1], status="interrupted")
    return found


def _in_order(found: list[Past]) -> Iterator[tuple[datetime, int, Past]]:
    """Runs of one plan, each with its sort key among the runs of others.

    The journal decides which run is newer, even if the clock was set back between two of them.
    """
    reached = datetime.min.replace(tzinfo=UTC)
    for place, each in enumerate(found):
        reached = max(reached, each.started_at)
        yield reached, place, each
