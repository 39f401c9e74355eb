"""Which checks a tree must pass, and the gate's verdict on their results so far."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from windlass.core.events.values import CheckResult, Outcome
from windlass.core.plan import Task
from windlass.core.plan.names import escaped
from windlass.core.scheduler import gate, stages, tallies
from windlass.core.state import Phase, RunState, TaskState
from windlass.core.state.checks import distinct, project_checks
from windlass.core.state.transitions import IN_TIP
from windlass.core.state.work import base_of_work, removes_tests


class Demand(Struct, frozen=True, kw_only=True):
    """The checks that one tree must pass."""

    checks: tuple[str, ...]
    skippable: frozenset[str]
    """Those that may find no test."""
    unproven: frozenset[str] = frozenset()
    """Those from a text that nothing was merged for; they must find a test."""


def merge_demand(state: RunState, tasks: Sequence[TaskState]) -> Demand:
    """The checks of a merge: of its tasks, of tasks merged since they began, of finished stages."""
    own = [state.specs[task.id] for task in tasks]
    since = state.merged[min(task.merged_before for task in tasks) :]
    others = [spec for other in since if (spec := _proven_as(state, other)) is not None]
    before = (check for spec in own for check in stages.checks_before(state, spec.stage))
    return _demand(state, own, others, before)


def tip_demand(state: RunState, stage: str | None = None) -> Demand:
    """The checks of the tip after that stage, or at the end: those of all merged tasks."""
    merged = [spec for id_ in state.merged if (spec := _asked_of_tip(state, id_)) is not None]
    demand = _demand(state, (), merged, stages.checks_after(state, stage))
    return replace(demand, unproven=_unproven(state, state.merged))


def stale_demand(state: RunState) -> Demand:
    """The checks of stale tasks' new texts on the tip."""
    checks = distinct(check for id_ in state.stale for check in state.specs[id_].checks)
    unproven = _unproven(state, state.stale)
    return Demand(checks=checks, skippable=frozenset(checks) - unproven, unproven=unproven)


def _unproven(state: RunState, ids: Iterable[str]) -> frozenset[str]:
    """The checks that nothing was merged for, unless the task or the policy lets them be absent."""
    if state.settings.policy.absent == "skip":
        return frozenset()
    tasks = (task for id_ in ids if (task := state.tasks.get(id_)) and task.phase in IN_TIP)
    return frozenset(
        check
        for task in tasks
        if task.merged_as is not None and not state.specs[task.id].skip_absent
        for check in state.specs[task.id].checks
        if check not in task.merged_as.checks
    )


def _demand(
    state: RunState, own: Iterable[Task], others: Iterable[Task], more: Iterable[str]
) -> Demand:
    """The incoming tasks decide whether the project's checks may find no test."""
    common = project_checks(state)
    incoming = [(spec, (*common, *spec.checks)) for spec in own]
    asked = [*incoming, *((spec, spec.checks) for spec in others)]
    checks = distinct((*common, *(check for _, own in asked for check in own), *more))
    if state.settings.policy.absent == "skip":
        return Demand(checks=checks, skippable=frozenset(checks))
    needed = {check for spec, own in asked if not spec.skip_absent for check in own}
    skippable = {check for _, own in asked for check in own} - needed
    return Demand(checks=checks, skippable=frozenset(skippable))


def _merged_as(state: RunState, task_id: str) -> Task | None:
    """The text that a task was merged for, which may differ from the plan's text now."""
    task = state.tasks.get(task_id) or state.withdrawn.get(task_id)
    return task.merged_as if task is not None else None


def _asked_of_tip(state: RunState, task_id: str) -> Task | None:
    """The text by which the tip is checked for a task: the plan's text if the task is done for it.

    For a stale task, a reopened one and one that left the plan it is the text of their merge.
    """
    task = state.tasks.get(task_id)
    done = task is not None and task.phase is Phase.MERGED
    return state.specs[task_id] if done else _merged_as(state, task_id)


def _proven_as(state: RunState, task_id: str) -> Task | None:
    """The text by which a task limits another task's merge: only checks that the tip passes.

    A new check of an accepted text counts once the tip has passed it. The next task is not blamed
    for a red one.
    """
    merged_as, task = _merged_as(state, task_id), state.tasks.get(task_id)
    accepted = task.accepted if task is not None else None
    if merged_as is None or accepted is None:
        return merged_as
    results = state.evidence.get(state.tip_tree or "", {})
    passed = {check for check, result in results.items() if result.outcome is Outcome.PASS}
    proven = passed.union(merged_as.checks)
    spec = accepted.spec
    return replace(spec, checks=tuple(check for check in spec.checks if check in proven))


def criteria(state: RunState, task_id: str) -> tuple[str, ...]:
    """The acceptance criteria; a task without any has its description as the only one."""
    spec = state.specs[task_id]
    return spec.acceptance_criteria or (f"The task is done as described: {spec.title}",)


def task_verdict(state: RunState, task: TaskState) -> gate.Verdict:
    """The gate's verdict on a task's own snapshot."""
    demand = _demand(state, (state.specs[task.id],), (), ())
    rules = gate.Rules(
        skippable=demand.skippable,
        before=_said_of(state, base_of_work(task)),
        removing=_removes_tests(state, task),
    )
    return _verdict(state, task.last.tree or "", demand, runs=task.check_runs, rules=rules)


def less_proven(state: RunState, task: TaskState) -> tuple[tallies.Shortfall, ...]:
    """The checks of its snapshot that prove less than before, for the Coach."""
    demand = _demand(state, (state.specs[task.id],), (), ())
    said = state.evidence.get(task.last.tree or "", {})
    results = [said[check] for check in demand.checks if check in said]
    return tallies.shortfalls(results, _said_of(state, base_of_work(task)), demand.skippable)


def doubted_checks(state: RunState, task: TaskState) -> tuple[str, ...]:
    """The checks that an approval must have evidence about, by name."""
    return tuple(escaped(short.command) for short in less_proven(state, task))


def _removes_tests(state: RunState, task: TaskState) -> bool:
    return removes_tests(state.specs[task.id], task)


def _said_of(state: RunState, commit: str) -> Mapping[str, CheckResult]:
    """The results on the base or a tip, with which the work on it is compared."""
    tip = state.evidence.get(state.tip_trees.get(commit, ""), {})
    # Once a merge has removed tests, the base is no longer comparable.
    outdated = state.tests_removed and commit != state.base
    base = {} if outdated else {result.command: result for result in state.baseline or ()}
    return {**base, **tip}


def merge_verdict(state: RunState, tasks: Sequence[TaskState]) -> gate.Verdict:
    """The gate's verdict on these tasks, each merged onto the one before it.

    A failure of a single task is checked again before it counts; one of several is not, because
    the batch is halved first.
    """
    demand, last = merge_demand(state, tasks), tasks[-1]
    rules = gate.Rules(
        skippable=demand.skippable,
        doubted=len(tasks) == 1,
        before=_said_of(state, state.tip),
        removing=any(_removes_tests(state, task) for task in tasks),
    )
    return _verdict(state, last.candidate_tree or "", demand, runs=last.check_runs, rules=rules)


def stage_verdict(state: RunState, stage: str) -> gate.Verdict:
    """The gate's verdict on the tip after a stage."""
    demand = tip_demand(state, stage)
    return tree_verdict(state, state.tip_tree or "", demand, runs=state.tip_runs)


def tree_verdict(state: RunState, tree: str, demand: Demand, *, runs: int) -> gate.Verdict:
    """The gate's verdict on a tip, where a check may find no test.

    Unless it found tests when its task was merged, so they were lost since; or unless it came with
    an edited text and has never passed.
    """
    skippable = frozenset(demand.checks) - _proven(state) - demand.unproven
    rules = gate.Rules(skippable=skippable, doubted=True)
    return _verdict(state, tree, demand, runs=runs, rules=rules)


def _proven(state: RunState) -> frozenset[str]:
    """The checks that ran tests for a merged task; none once a task has removed tests."""
    if state.tests_removed:
        return frozenset()
    merged = (state.tasks[id_] for id_ in state.done)
    results = (result for task in merged if task.counted for result in task.last.results)
    return frozenset(result.command for result in results if result.tests)


def _verdict(
    state: RunState, tree: str, demand: Demand, *, runs: int, rules: gate.Rules
) -> gate.Verdict:
    """The verdict on a tree, from all results on the same tree."""
    said = state.evidence.get(tree, {})
    return gate.judge_checks(
        demand.checks,
        [said[check] for check in demand.checks if check in said],
        runs=runs,
        rules=replace(rules, flaky=state.settings.policy.flaky),
    )
