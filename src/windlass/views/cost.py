"""What a run has used up: derived from its events every time, never counted along."""

from msgspec import Struct

from windlass.state import RunState, TaskState

UNKNOWN_COST = "an agent was killed, or an answer broke off or had no clear price"
"""Why a sum can be an estimate; what is not known counts as the most it can have been."""


class Cost(Struct, frozen=True, kw_only=True):
    """Money and tokens."""

    usd: float
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    known: bool
    """False where some of it is an estimate (`UNKNOWN_COST`)."""

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.input_tokens + self.output_tokens + self.cached_tokens


def task_cost(task: TaskState) -> Cost:
    """What one task has used up."""
    return _sum([task])


def run_cost(state: RunState) -> Cost:
    """What the whole run has used up."""
    return _sum(list(state.all_tasks))


def _sum(tasks: list[TaskState]) -> Cost:
    usages = [task.spent for task in tasks]
    return Cost(
        usd=round(sum(task.cost_usd for task in tasks), 6),
        input_tokens=sum(usage.input_tokens + usage.cache_write_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cached_tokens=sum(usage.cache_read_tokens for usage in usages),
        known=all(usage.known for usage in usages),
    )
