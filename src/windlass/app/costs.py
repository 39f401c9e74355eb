"""`costs`: what agents have used up, over all runs of a plan or of every plan here."""

from collections.abc import Mapping

from msgspec import Struct

from windlass.app.plans import plans_meant
from windlass.app.wiring import Project
from windlass.errors import BadInput
from windlass.views.bills import Bill, By, bills, totals, whole
from windlass.views.cost import Cost


class Costs(Struct, frozen=True):
    """What was used up: the bills, and what they come to."""

    bills: tuple[Bill, ...]

    @property
    def total(self) -> Cost:
        """All of them."""
        return whole(list(self.bills))

    def by(self, what: By) -> Mapping[str, Cost]:
        """A sum for each plan, run, task, role or model."""
        return totals(list(self.bills), what)


def costs(project: Project, plan: str | None = None, *, run: str | None = None) -> Costs:
    """What agents have used up in a plan; without a name, in every plan that was run here.

    `run` is the beginning of a run's id: then only that one counts.
    """
    found = tuple(
        bill
        for plan_id in plans_meant(project, plan)
        for bill in bills(
            plan_id,
            (entry.event for entry in project.journals.entries(plan_id)),
            live=project.journals.live_pid(plan_id) is not None,
        )
        if run is None or bill.run.startswith(run)
    )
    if run is not None and not found:
        raise BadInput(f"no run {run!r} has cost anything", hint="`windlass history` lists runs")
    return Costs(found)
