"""What an act that cannot be undone, or is public, would do: for a person to agree to.

Law: it says what changes, what is kept, and the command that does it without asking.
"""

from collections.abc import Sequence

from msgspec import Struct

from windlass.core.plan.names import some
from windlass.core.state import Phase, RunState, TaskState
from windlass.views.cost import amounts, column, run_cost, task_cost
from windlass.views.outcome import run_status
from windlass.views.progress import integration_branch
from windlass.views.tree import failed_stage, unverified_stage
from windlass.views.words import one_line, plural

_NAMED = 5
_TITLE = 80


class Consequences(Struct, frozen=True, kw_only=True):
    what: str
    """The thing that it happens to, and its state."""
    lines: tuple[str, ...] = ()
    """What changes, and what is kept."""
    question: str
    command: str
    """The command that does it without asking."""
    shown: bool = False
    """Whether the person has the details on the screen already."""

    @property
    def text(self) -> str:
        return "" if self.shown else "\n".join((self.what, *(f"  {line}" for line in self.lines)))


def aborting(state: RunState, *, live: bool) -> Consequences:
    plan = state.plan.id
    merged = [f"the merged work stays on {integration_branch(state)}"] if state.merges else []
    kept = "; ".join((*merged, "other work stays pinned", "workspaces stay until `windlass clean`"))
    stops = "Its agents are stopped now, and it" if live else "It"
    return Consequences(
        what=_run(state),
        lines=(f"{stops} ends for good: it cannot be resumed.", f"Kept: {kept}."),
        question="Abort this run?",
        command=f"windlass abort {plan} --yes",
    )


def restarting(state: RunState, typed: str) -> Consequences:
    return Consequences(
        what=_run(state),
        lines=(
            "A new run starts from the base and does every task again, at new cost.",
            "This one ends for good; its work stays pinned.",
        ),
        question="Leave this run and start a new one?",
        command=f"windlass run {typed} --restart --yes",
    )


def redoing(state: RunState, subject: str, tasks: Sequence[TaskState]) -> Consequences:
    """Of a merged task, or of the merged tasks of a stage."""
    named = f"{state.plan.id}:{subject}"
    ids = {task.id for task in tasks}
    depend = [t.id for t in state.plan.tasks if ids & {*t.depends_on} and t.id in state.in_tip]
    others = f"; and {len(tasks) - _NAMED} more" if len(tasks) > _NAMED else ""
    more = [f"{some(depend, _NAMED)}, which build on it, stay as merged."] if depend else []
    return Consequences(
        what=f"{'; '.join(_merged(state, task) for task in tasks[:_NAMED])}{others}.",
        lines=(
            "Windlass does it again from the tip, with new turns at new cost.",
            "The merged work stays until the redo replaces it.",
            *more,
            f"`windlass retry {named} --undo` takes this back until the redo is merged.",
        ),
        question=f"Redo {plural(len(tasks), 'merged task')}?",
        command=f"windlass retry {named} --yes",
    )


def landing_over(state: RunState, changed: Sequence[str]) -> Consequences:
    are = "has" if len(changed) == 1 else "have"
    files = f"{some([one_line(path, _TITLE) for path in changed], _NAMED)} {are}"
    return Consequences(
        what=f"{state.base_branch} is checked out, and {files} uncommitted changes.",
        lines=(
            "The changes stay. The branch and your other files move to the merged work.",
            "Windlass refuses if a changed file is in the way.",
        ),
        question=f"Move {state.base_branch} now?",
        command=f"windlass land {state.plan.id} --yes",
    )


def publishing(state: RunState, base: str | None) -> Consequences:
    into = f" into {base}" if base else ""
    return Consequences(
        what=f"{one_line(state.plan.title, _TITLE)} · {plural(state.merges, 'merge')}",
        lines=(pushing(state),),
        question=f"Push it and open a pull request{into}?",
        command=f"windlass pr {state.plan.id} --yes",
    )


def pushing(state: RunState) -> str:
    """What is public afterwards."""
    return f"Windlass pushes {integration_branch(state)} to your remote, where others see it."


def replacing_journal(plan: str) -> Consequences:
    return Consequences(
        what=f"The journal of {plan} is not lost.",
        lines=("Windlass replaces it by what git has, and keeps the old one next to it.",),
        question="Replace it?",
        command=f"windlass recover {plan} --force --yes",
    )


def _run(state: RunState) -> str:
    merged = f"{len(state.done)} of {plural(len(state.tasks), 'task')} merged"
    title = one_line(state.plan.title, _TITLE)
    return (
        f"Run {state.run} of {state.plan.id} ({title}, {one_line(state.plan.path, _TITLE)}) is"
        f" {run_status(state)}: {merged}, {amounts(run_cost(state))}."
    )


def _merged(state: RunState, task: TaskState) -> str:
    commit = f" as {task.merge_commit[:10]}" if task.merge_commit else ""
    turns = plural(task.last.turn, "turn") if task.counted else "no turn"
    title = one_line(state.specs[task.id].title, _TITLE)
    return f"{task.id} {title} is merged{commit} ({turns}, {column(task_cost(state, task))})"


def merged_in(state: RunState, subject: str, edited: Sequence[str]) -> tuple[TaskState, ...]:
    """The merged tasks that a retry would redo although their text has not changed.

    `edited` are tasks whose text has, which the run has not seen yet.
    """
    if subject in {failed_stage(state), unverified_stage(state)}:
        return ()  # the run itself offers to redo it
    of_stage = state.index.stages.get(subject, ())
    ids = (subject,) if subject in state.tasks and not _is_for_stage(state, subject) else of_stage
    found = (state.tasks[id_] for id_ in ids if id_ not in edited)
    return tuple(task for task in found if task.phase is Phase.MERGED)


def _is_for_stage(state: RunState, subject: str) -> bool:
    """A stage may have the name of a task; it is meant if the task itself cannot be retried."""
    retriable = {Phase.MERGED, Phase.STALE, Phase.ABANDONED}
    return subject in state.index.stages and state.tasks[subject].phase not in retriable
