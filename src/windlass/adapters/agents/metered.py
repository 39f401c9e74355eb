"""An agent that never holds the key: it gets a token for the meter, and only the meter counts.

The cost that the agent reports is dropped, because each of its requests is in the journal already.
The meter's refusals are added to the report, because the agent's program misreads them: it does not
say until when to wait, takes an account's usage limit for a temporary failure, and the end of the
run's budget for an account without money. Nor does it pass on why the meter refused a request that
has no price, rejected the provider's usage numbers, or could not reach the provider. It does not
know which variable holds the key that was refused, and who named the model that does not exist.
"""

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import assert_never

from msgspec.structs import replace

from windlass.adapters.agents.vendor import Vendor
from windlass.adapters.meter.holds import Holds
from windlass.adapters.meter.proxy import Meter
from windlass.adapters.meter.rate_limits import Complaint, Refusal
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
        keys: tuple[str, ...] = (),
    ) -> None:
        """Take a factory for an agent of the vendor.

        The factory gets the variables to reach its model, and what the meter holds of its requests.
        `keys` are the variables with the credentials that the meter uses.

        `address` is the meter's address inside an agent's box, if that has its own network.
        """
        self._address = address
        self._meter = meter
        self._vendor = vendor
        self._make = make
        self._keys = keys or vendor.keys[:1]

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """Work with a token that is valid for this call only."""
        admission = self._meter.admit(brief.task, brief.role)
        url = self._address or admission.url
        credentials = self._vendor.through_meter(admission.token, url)
        try:
            report = await self._make(credentials, admission.holds).work(brief, workspace, watch)
        finally:
            refusal = self._meter.dismiss(admission.token)
        report = replace(informed(report, refusal), usage=Usage())
        if refusal is None or refusal.complaint is None or report.failure not in _COMPLAINED:
            return report
        message = self._complaint(refusal.complaint, refusal.status, brief)
        return replace(report, message=message, lasting=True)

    def _complaint(self, complaint: Complaint, status: int, brief: Brief) -> str:
        """What the provider finds wrong, and where a person set it."""
        vendor, answer = self._vendor, f"(HTTP {status})"
        match complaint:
            case Complaint.KEY:
                keys = " and ".join(self._keys)
                return f"the provider refused the credentials in {keys} {answer}"
            case Complaint.MODEL:
                ours = "the default" if brief.model == vendor.model else "option --model"
                source = brief.model_source or ours
                return f"the provider has no model {brief.model!r}, set by {source} {answer}"
            case Complaint.PATH:
                return f"nothing answers at the address in {vendor.address} {answer}"
            case _:
                assert_never(complaint)


CUT = "an answer was cut short: too little of the run's own budget is left for a longer one"
_COMPLAINED = frozenset({Failure.AUTH, Failure.ENVIRONMENT})
"""Failures that an answer with a complaint leads to."""
_EXPLAINED = frozenset({Failure.ENVIRONMENT, Failure.TRANSIENT})
"""Failures that the meter can explain better than the agent's program."""


def informed(report: Report, refusal: Refusal | None) -> Report:
    """The report, with the cause and retry time that the last refusal gives."""
    if refusal is not None and refusal.is_cut:
        # Half an answer is no result, whatever the program made of it.
        return replace(report, failure=Failure.BUDGET, message=CUT, answer=None)
    if refusal is not None and refusal.is_ours and report.failure is Failure.BUDGET:
        return replace(report, message="the run's own budget is used up")
    if refusal is not None and refusal.unreached and report.failure in _EXPLAINED:
        # A repeat helps once the provider is back; it does not make a certificate trusted.
        failure = Failure.ENVIRONMENT if refusal.is_lasting else report.failure
        return replace(
            report,
            failure=failure,
            message=refusal.why,
            unreached=True,
            lasting=refusal.is_lasting,
        )
    if refusal is not None and refusal.why and report.failure in _EXPLAINED:
        return replace(report, message=refusal.why)
    if refusal is None or report.failure not in {Failure.USAGE_LIMIT, Failure.TRANSIENT}:
        return report
    if refusal.is_limit and report.failure is Failure.TRANSIENT:
        message = "the provider's usage limit is reached"
        report = replace(report, failure=Failure.USAGE_LIMIT, message=message)
    return replace(report, retry_at=report.retry_at or refusal.until)
