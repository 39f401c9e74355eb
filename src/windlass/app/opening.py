"""The first lines of a run: warnings, changed settings, and work that could be missed."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from windlass.app.changed_since import differences
from windlass.app.wiring import Project
from windlass.app.wiring.configuration import (
    ResumedSettings,
    lost_secrets,
    setting_line,
    settings_below,
    variable,
)
from windlass.app.wiring.recovering import plans_in_git
from windlass.app.wiring.signatures import unsigned_warning
from windlass.core.nearest import did_you_mean
from windlass.core.plan import Plan, gaps
from windlass.core.settings import WALLED, Level, Settings, leaves
from windlass.core.state import RunState
from windlass.views.outlook import warnings_of
from windlass.views.progress import landed_at
from windlass.views.words import plural

_SOME = 3
"""Warnings about the plan that are shown; `windlass plan` shows all."""


class Opening(Struct, frozen=True, kw_only=True):
    """The input of the opening lines."""

    project: Project
    plan: Plan
    typed: str
    """The plan as the person named it."""
    settings: Settings
    kept: ResumedSettings | None
    """What became of its settings, if the run is resumed."""
    unread_variables: Iterable[str]
    level: Level
    """The sandbox's."""


def lines(opening: Opening) -> Iterator[tuple[str, str]]:
    """The lines of every run, each a word and a text."""
    if opening.level not in WALLED:
        text = f"level {opening.level}: agents are not sandboxed; docs/sandbox.md has the details"
        yield "SANDBOX", text
    if opening.settings.e2e.run and not opening.plan.e2e:
        yield "WARNING", "--e2e has nothing to run: the plan has no E2E scenario"
    if (unused := _unused_settings(opening)) is not None:
        yield "NOTE", f"{unused} is not used: a run reads the settings at the repository's root"
    for name in opening.unread_variables:
        known = (variable(key) for key, _ in leaves(Settings))
        cure = did_you_mean(name, known, "`windlass doctor` lists every key")
        yield "WARNING", f"{name} is not a setting of Windlass; {cure}"


def _unused_settings(opening: Opening) -> str | None:
    """Settings beside the plan, or above it; a command that is started there refuses them."""
    root, plan = opening.project.root, opening.project.root / opening.plan.path
    return settings_below(root, plan if plan.is_dir() else plan.parent)


def lines_of_new_run(opening: Opening, warnings: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The lines of a new run; `warnings` are about its base."""
    project, plan = opening.project, opening.plan
    last = project.journals.last_run(plan.id)
    marked = [task.id for task in plan.tasks if task.marked_done]
    merged = [id_ for id_ in marked if last is not None and id_ in last.in_tip]
    if last is not None and merged:
        text = f"{plural(len(merged), 'task')} that run {last.run} merged will be done again"
        yield "NOTE", f"{text}, from the base"
    if others := len(marked) - len(merged):
        text = f"{plural(others, 'task')} marked as done will be done again"
        yield "WARNING", f"{text}; `windlass adopt` takes them over instead"
    yield from _about_plan(plan, opening.settings, opening.typed)
    pinned = plans_in_git(project).get(plan.id, [])
    if pinned and not project.journals.entries(plan.id):
        text = f"git has run {', '.join(pinned)} of this plan, and its journal is gone"
        yield "WARNING", f"{text}; `windlass recover` would continue it"
    if last is not None and last.merges and landed_at(last) is None:
        ground = project.git.ground(last)
        if ground is None or not ground.holds_tip:
            text = f"not landed: {plural(last.merges, 'merge')} of the run before"
            yield "WARNING", f"{text}; to take that: git merge {project.git.tip(last)}"
    for warning in warnings:
        yield "WARNING", warning
    if (unsigned := unsigned_warning(project, opening.settings)) is not None:
        yield "WARNING", unsigned


def _about_plan(plan: Plan, settings: Settings, typed: str) -> Iterator[tuple[str, str]]:
    found = warnings_of((*plan.notes, *gaps(plan, settings.checks)))
    for each in found[:_SOME]:
        yield "WARNING", f"{each.path or plan.path}:{each.line}: {each.words}"
    if len(found) > _SOME:
        yield "WARNING", f"{len(found) - _SOME} more in the plan: windlass plan {typed}"
    if skipped := sum(each.severity == "note" for each in plan.notes):
        text = f"{plural(skipped, 'note')} on what was skipped"
        yield "NOTE", f"{text}: windlass plan {typed}"


def lines_of_resumed_run(opening: Opening, before: RunState) -> Iterator[tuple[str, str]]:
    """The lines of a resumed run: what differs from when it started."""
    for warning in differences(opening.project, opening.plan, before):
        yield "WARNING", warning
    if opening.kept is not None:
        for change in opening.kept.changes:
            yield "SETTING", setting_line(change)
        for line in opening.kept.kept:
            yield "WARNING", line
    for key in lost_secrets(before.settings, opening.settings):
        text = f"{key} was set when the run started and is not set now, so it is not used"
        yield "WARNING", f"{text}; secrets are never recorded: set {variable(key)} again"
