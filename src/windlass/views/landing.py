"""Why the base branch was not moved to what was merged, and how it can be."""

import shlex

from msgspec import Struct

from windlass.state import RunState
from windlass.views.progress import integration_branch
from windlass.views.tree import unverified_stage


class Cure(Struct, frozen=True, kw_only=True):
    """What lets a landing come about that was refused."""

    told: str = ""
    """In a sentence; empty where the refusal says it itself."""
    commands: tuple[str, ...]


def cure(state: RunState, plan: str) -> Cure:
    """What a person can do about it; `plan` as they named it."""
    again = f"windlass land {plan}"
    if (stage := unverified_stage(state)) is not None:
        where = shlex.quote(f"{state.plan.id}:{stage}")
        passed, retried = f"windlass approve {where}", f"windlass retry {where}"
        told = f"`{passed}` lets it pass, `{retried}` has it done once more"
        told = f"{told}; `{again} --yes` lands it all the same"
        return Cure(told=told, commands=(passed, retried, f"{again} --yes"))
    branch, landing = integration_branch(state), state.landing
    merging = f"git merge {branch}"
    if state.base_branch is None:
        return Cure(commands=(merging,))
    if landing is not None and landing.relation == "gone":
        made = f"git branch {shlex.quote(state.base_branch)} {branch}"
        told = f"`{made}` makes it again, with all of it; or take it into another: `{merging}`"
        return Cure(told=told, commands=(made, merging))
    if landing is not None and landing.rewound and not landing.anyway:
        anyway = f"{again} --yes"
        return Cure(told=f"`{anyway}` lands it all the same", commands=(anyway,))
    if landing is not None and landing.conflicted:
        told = f"merge it by hand on {state.base_branch}: `{merging}`, then `{again}`"
        return Cure(told=told, commands=(merging, again))
    return Cure(commands=(again,))
