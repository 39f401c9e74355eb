"""`costs`: what agents have cost, over all runs of a plan or of every plan here."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from windlass.app.plans import selected_plans
from windlass.app.wiring import Project
from windlass.errors import BadInput
from windlass.views.bills import Bill, By, bills, recovered_runs, totals, whole
from windlass.views.cost import Cost


class Costs(Struct, frozen=True):
    """The bills, and their sums."""

    bills: tuple[Bill, ...]
    recovered: bool = False
    """Whether a part is unknown, because the journal was recovered from git without its mirror."""

    @property
    def total(self) -> Cost:
        return replace(whole(list(self.bills)), recovered=self.recovered)

    def by(self, what: By) -> Mapping[str, Cost]:
        """A sum for each plan, run, task, role or model."""
        return totals(list(self.bills), what)


def costs(project: Project, plan: str | None = None, *, run: str | None = None) -> Costs:
    """What agents have cost in a plan; without a name, in every plan that was run here.

    `run` is the beginning of a run's id: count only that run.
    """
    found: list[Bill] = []
    recovered: set[str] = set()
    for plan_id in selected_plans(project, plan):
        events = [entry.event for entry in project.journals.entries(plan_id)]
        found += bills(plan_id, events, live=project.journals.live_pid(plan_id) is not None)
        recovered |= recovered_runs(events)
    if run is not None:
        found = [bill for bill in found if bill.run.startswith(run)]
        recovered = {each for each in recovered if each.startswith(run)}
    if run is not None and not found:
        raise BadInput(f"no run {run!r} has cost anything", hint="`windlass history` lists runs")
    return Costs(tuple(found), recovered=bool(recovered))
