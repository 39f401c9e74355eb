"""What a run of a plan would meet: warnings, questions, and what it is expected to take."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from windlass.core.plan import Finding, Plan, gaps
from windlass.core.plan.names import some
from windlass.core.scheduler.estimates import ENOUGH, Forecast
from windlass.core.scheduler.priority import COMPLEX, is_complex
from windlass.core.settings import Settings
from windlass.findings import Severity
from windlass.views.words import duration, money, plural

_SOME = 12


class PlanFinding(Struct, frozen=True, kw_only=True):
    """What is wrong or odd at one place of the plan's files, as `--json` prints it."""

    path: str
    line: int
    """Counted from 1; 0 for the file as a whole."""
    severity: Severity
    message: str
    suggestion: str


class Outlook(Struct, frozen=True, kw_only=True):
    """All of it, for screens and programs."""

    findings: tuple[Finding, ...]
    asks: tuple[str, ...] = ()
    """Tasks that wait for a person's approval before they start."""
    asks_if: tuple[str, ...] = ()
    """What else would be put to a person at the start."""
    forecast: Forecast
    agents: int
    max_cost: float


def outlook(
    plan: Plan, settings: Settings, forecast: Forecast, unfinished: str | None = None
) -> Outlook:
    """What a run with these settings would meet; `unfinished` describes a run that was begun."""
    asks = settings.policy.checkpoint == "ask"
    checked = bool(settings.checks or plan.checks)
    conditions = (
        f"{unfinished}: continue it, or start again?" if unfinished is not None else "",
        "if a check fails on the base: start all the same? (policy.red_base)"
        if checked and settings.policy.red_base == "ask"
        else "",
    )
    return Outlook(
        findings=(*plan.notes, *gaps(plan, settings.checks)),
        asks=tuple(task.id for task in plan.tasks if asks and is_complex(task)),
        asks_if=tuple(filter(None, conditions)),
        forecast=forecast,
        agents=settings.agents,
        max_cost=settings.max_cost,
    )


def asking_lines(seen: Outlook) -> Iterator[str]:
    """Where a run would stop and ask."""
    if seen.asks:
        them = "it" if len(seen.asks) == 1 else "each"
        yield (
            f"before {some(seen.asks, _SOME)}: complexity {COMPLEX} or more;"
            f" `windlass approve TASK` lets {them} start, --yes all"
        )
    yield from seen.asks_if


def forecast_lines(seen: Outlook) -> Iterator[str]:
    """What a run is expected to take, or why that cannot be said yet."""
    found = seen.forecast
    if found.seconds is None:
        have = f"so far there {'is' if found.tasks == 1 else 'are'} {found.tasks or 'none'}"
        yield f"none yet: it takes {ENOUGH} tasks that were merged here, and {have}"
        return
    low, high = (duration(each) for each in (found.seconds.low, found.seconds.high))
    cost = f"{money(found.usd.low)} to {money(found.usd.high)}, " if found.usd else ""
    yield f"{cost}{low} to {high} with {plural(seen.agents, 'agent')} at once"
    unknown = "" if found.usd else "; what they cost is not known"
    yield f"from {plural(found.tasks, 'task')} merged here: the middle half of them{unknown}"
    yield "without checks, and without waiting for people and usage limits"
    if found.usd and found.usd.high > seen.max_cost:
        yield f"the run stops at {money(seen.max_cost)}; --max-cost gives it more"


def warnings_of(findings: tuple[Finding, ...]) -> list[Finding]:
    return [each for each in findings if each.severity == "warning"]


def plan_findings(findings: Iterable[Finding], path: str = "") -> tuple[PlanFinding, ...]:
    """Findings for programs; `path` is the plan's own file."""
    return tuple(
        PlanFinding(
            path=each.path or path,
            line=each.line,
            severity=each.severity,
            message=each.text,
            suggestion=each.suggestion,
        )
        for each in findings
    )
