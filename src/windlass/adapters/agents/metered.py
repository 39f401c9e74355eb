"""An agent that never holds the key: it gets a token for the meter, and only the meter counts.

The cost that the agent reports is dropped, because each of its requests is in the journal already.
The meter's refusals are added to the report, because the agent's program misreads them: it does not
say until when to wait, takes an account's usage limit for a temporary failure, and the end of the
run's budget for an account without money. Nor does it pass on why the meter refused a request that
has no price, or rejected the provider's usage numbers.
"""

from collections.abc import Callable, Mapping
from pathlib import PurePath

from msgspec.structs import replace

from windlass.adapters.agents.vendor import Vendor
from windlass.adapters.meter.holds import Holds
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
        make: Callable[[Mapping[str, str], Holds], Agent],
        address: str | None = None,
    ) -> None:
        """Take a factory for an agent of the vendor.

        The factory gets the variables to reach its model, and what the meter holds of its requests.

        `address` is the meter's address inside an agent's box, if that has its own network.
        """
        self._address = address
        self._meter = meter
        self._vendor = vendor
        self._make = make

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """Work with a token that is valid for this call only."""
        admission = self._meter.admit(brief.task, brief.role)
        url = self._address or admission.url
        credentials = self._vendor.through_meter(admission.token, url)
        try:
            report = await self._make(credentials, admission.holds).work(brief, workspace, watch)
        finally:
            refusal = self._meter.dismiss(admission.token)
        return replace(informed(report, refusal), usage=Usage())


CUT = "an answer was cut short: too little of the run's own budget is left for a longer one"
_EXPLAINED = frozenset({Failure.ENVIRONMENT, Failure.TRANSIENT})
"""Failures that the meter can explain better than the agent's program."""


def informed(report: Report, refusal: Refusal | None) -> Report:
    """The report, with the cause and retry time that the last refusal gives."""
    if refusal is not None and refusal.is_cut:
        # Half an answer is no result, whatever the program made of it.
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
