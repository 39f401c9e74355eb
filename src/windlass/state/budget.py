"""One budget over all tasks, turns, retries and restarts: of money, and of tokens where set."""

from windlass.state.model import RunState


def used_up(state: RunState) -> str | None:
    """Why nothing more may be spent, if so. A request that crosses the line is the last one."""
    settings = state.settings
    if state.spent_usd >= settings.max_cost:
        return f"the budget of ${settings.max_cost:.2f} is used up"
    if settings.max_tokens is not None and state.spent_tokens >= settings.max_tokens:
        return f"the budget of {settings.max_tokens} tokens is used up"
    return None
