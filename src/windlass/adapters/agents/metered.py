"""An agent that never holds the key: it gets a token for the meter, and the meter alone counts.

What the agent says it has cost is left out, for every request it made is in the journal already.
What was said when a request was refused is put in: its program does not pass on until when to wait,
takes an account's usage limit for a passing trouble, since it does not know of the account, and the
end of the run's own budget for an account without money. Nor does it pass on what the meter said of
a request that has no price, or of a provider's numbers that cannot be.
"""

from collections.abc import Callable, Mapping
from pathlib import PurePath

from msgspec.structs import replace

from windlass.adapters.agents.vendor import Vendor
from windlass.adapters.meter.proxy import Meter
from windlass.adapters.meter.rate_limits import Refusal
from windlass.core.events.model import Failure, Usage
from windlass.ports import Agent, Brief, Report, Watch


class MeteredAgent:
    """Lets a fresh agent work through the meter."""

    def __init__(
        self,
        meter: Meter,
        vendor: Vendor,
        make: Callable[[Mapping[str, str]], Agent],
        address: str | None = None,
    ) -> None:
        """Take what makes an agent of the vendor with the variables it reaches its model with.

        `address` is the meter's in an agent's box, where that has a network of its own.
        """
        self._address = address
        self._meter = meter
        self._vendor = vendor
        self._make = make

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """Work with a token that is good for this call only."""
        admission = self._meter.admit(brief.task, brief.role)
        url = self._address or admission.url
        credentials = self._vendor.through_meter(admission.token, url)
        try:
            report = await self._make(credentials).work(brief, workspace, watch)
        finally:
            refusal = self._meter.dismiss(admission.token)
        return replace(informed(report, refusal), usage=Usage())


CUT = "an answer was cut short: too little of the run's own budget is left for a longer one"
_EXPLAINED = frozenset({Failure.ENVIRONMENT, Failure.TRANSIENT})
"""Failures of a request that the meter knows more of than the agent's program."""


def informed(report: Report, refusal: Refusal | None) -> Report:
    """The report with what the last refusal says of the cause, and of when to go on."""
    if refusal is not None and refusal.is_cut:
        # Whatever its program made of half an answer: it is no result.
        return replace(report, failure=Failure.BUDGET, message=CUT, answer=None)
    if refusal is not None and refusal.is_ours and report.failure is Failure.BUDGET:
        return replace(report, message="the run's own budget is used up")
    if refusal is not None and refusal.why and report.failure in _EXPLAINED:
        return replace(report, message=refusal.why)
    if refusal is None or report.failure not in {Failure.USAGE_LIMIT, Failure.TRANSIENT}:
        return report
    if refusal.is_limit and report.failure is Failure.TRANSIENT:
        message = "the provider's usage limit is reached"
        report = replace(report, failure=Failure.USAGE_LIMIT, message=message)
    return replace(report, retry_at=report.retry_at or refusal.until)
