"""Facts of a run that git shows and its journal does not: merges, snapshots, starts. Pure.

A journal restored from its mirror knows every pin, and nothing is added. Git shows more if the
mirror was rewound or damaged, or if a version of Windlass without a mirror made the run.
Law: nothing is claimed that git does not show. A task is merged if its merge is a first-parent
ancestor of the tip. The work of an attempt is judged again, and a pinned verdict is reused, so no
finished work is paid for twice. Every fact is applied at once, so the transition tables allow it.
"""

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.review import Review, TestResults
from windlass.core.plan import Task
from windlass.core.state import Phase, RunState, apply
from windlass.core.state.checks import task_checks
from windlass.core.state.remains import Kept, Made, Remains, attempts_of, chain
from windlass.core.state.transitions import IN_TIP, TASK_TRANSITIONS
from windlass.errors import RepositoryError

UNKNOWN = "what was spent meanwhile, and what the checks had said, is not known any more"
RECOVERED = "recovered from git"

_BY = "windlass recover"
_NOT_KNOWN = "What attempt {n} still lacked is not known any more, because the journal was lost."
"""Names the attempt: two that are unknown are not the same feedback twice."""
_LOST_VERDICT = Review(
    decision="approve",
    summary="The verdict is lost. That its merge is in the tip shows that it approved.",
    test_results=TestResults(passed=None),
    evidence=(),
)
_UNPAID = e.Usage(known=False)
_JUDGED = frozenset({Phase.SAVED, Phase.CHECKED, Phase.UNREVIEWED, Phase.APPROVED})
"""Phases of committed work that needs no Player before it can be merged."""


def adopted(state: RunState, remains: Remains, at: datetime) -> tuple[e.Event, ...]:
    """The facts that git shows beyond this state.

    Raises RepositoryError if the tip holds a commit that is no merge of the run.
    """
    merges = _merges_beyond(state, remains)
    recorded = {task.id: len(task.attempts) for task in state.all_tasks}
    later = [id_ for id_, known in remains.attempts.items() if max(known) > recorded.get(id_, 0)]
    if not merges and not later and max(remains.candidates, default=0) <= state.candidates:
        return ()
    adoption = _Adoption(state, remains)
    adoption.begin(at, {*later, *(made.task for made in merges)})
    for made in merges:
        adoption.merged(made)
    for id_ in later:
        adoption.attempts(id_, max(remains.attempts[id_]))
    return adoption.ended(at)


def resumed_unchanged(state: RunState, at: datetime) -> e.RunResumed:
    """The fact that a command resumes a run with the same settings, to record something in it."""
    return e.RunResumed(
        at=at,
        settings=state.settings,
        sandbox=state.sandbox,
        metered=state.metered,
        coach_commands=state.coach_commands,
        base_moved_to=state.base_moved_to,
        configured=state.configured,
    )


def put_back(state: RunState, remains: Remains) -> bool:
    """Whether the tip's pin was moved back to before the run's last merge."""
    if remains.tip is None or remains.tip == state.tip:
        return False
    return chain(remains.commits, remains.tip, state.tip) is not None


def _merges_beyond(state: RunState, remains: Remains) -> tuple[Made, ...]:
    """The merges in the tip that the state does not know."""
    if remains.tip is None or put_back(state, remains):
        return ()
    line = chain(remains.commits, state.tip, remains.tip)
    if line is None:
        raise RepositoryError(
            f"the tip of run {remains.run}, {remains.tip[:10]}, does not lead back to"
            f" {state.tip[:10]}",
            hint="put it back to the run's last merge with `git update-ref`, and recover again",
        )
    before = state.tip
    for made in line:
        if made.run != remains.run or not made.task or not made.parents[1:]:
            raise RepositoryError(
                f"the tip of run {remains.run} holds {made.commit[:10]}, which is no merge of it",
                hint=f"put the tip back to {before} with `git update-ref`, and recover again",
            )
        before = made.commit
    # A process that resumes the run finds an announced move by itself.
    announced = {task.candidate_commit for task in state.all_tasks if task.moving_as is not None}
    return () if remains.tip in announced else line


class _Adoption:
    """Collects the facts beyond a state, and applies each one."""

    def __init__(self, state: RunState, remains: Remains) -> None:
        self._state = state
        self._remains = remains
        self._plan = state.plan
        self._attempts = {id_: attempts_of(remains, id_, state.tip) for id_ in remains.attempts}
        self._numbers = {commit: number for number, commit in remains.candidates.items()}
        self._candidates = max((state.candidates, *remains.candidates))
        self._facts: list[e.Event] = []

    def begin(self, at: datetime, tasks: set[str]) -> None:
        """End all effects, and add stubs for tasks that are no longer in the plan."""
        state = self._state
        for task in state.tasks.values():
            if task.phase is Phase.PLAYING and self._kept(task.id).kind == "snapshot":
                self._finished(task.id, self._time(self._kept(task.id).commit))
        self._add(resumed_unchanged(state, at))
        lost = sorted(tasks - state.tasks.keys())
        if lost:
            stubs = (Task(id=id_, title=f"{id_} (not in the plan any more)") for id_ in lost)
            plan = replace(state.plan, tasks=(*state.plan.tasks, *stubs))
            self._add(e.PlanRevised(at=at, plan=plan))

    def ended(self, at: datetime) -> tuple[e.Event, ...]:
        """All facts, with an end: the run rests until it is resumed."""
        if self._state.plan != self._plan:
            self._add(e.PlanRevised(at=at, plan=self._plan))
        notes = (*self._remains.notes, UNKNOWN)
        self._add(e.RunRecovered(at=at, candidates=self._candidates, notes=notes))
        self._add(e.RunEnded(at=at, status=e.RunEnd.STOPPED, reason=RECOVERED))
        return tuple(self._facts)

    def merged(self, made: Made) -> None:
        """Add a merge of the tip; its snapshot must have been approved."""
        id_, snapshot = made.task, made.parents[1]
        if self._state.tasks[id_].phase is Phase.BUILT:
            self._add(e.MergeSetAside(at=made.at, task=id_))
        self._settle(id_)
        task = self._state.tasks[id_]
        if task.phase not in _JUDGED or task.last.commit != snapshot:
            known = self._remains.attempts.get(id_, {})
            # Every start before the merge led to it, even if the pin of its work is gone.
            before = (n for n, kept in known.items() if not self._builds_on(made, kept.start))
            n = max((len(task.attempts) + 1, *before))
            self.attempts(id_, n - 1)
            left = Kept(n=n, start=made.parents[0])
            self._attempt(id_, replace(known.get(n, left), kind="snapshot", commit=snapshot))
        if self._state.tasks[id_].phase is not Phase.APPROVED:
            self._approved(id_, made.at)
        number = self._numbers.get(made.commit)
        if number is None:  # its pin is gone; use a number that no pin has
            number = self._candidates = self._candidates + 1
        onto = made.parents[0]
        at = made.at
        for fact in (
            e.MergeStarted(at=at, task=id_, candidate=number, commit=snapshot, onto=onto),
            e.MergeBuilt(at=at, task=id_, candidate=number, commit=made.commit, tree=made.tree),
            e.TipMoveStarted(at=at, tasks=(id_,), commit=made.commit, tip=self._state.tip),
            e.TaskMerged(at=at, task=id_, candidate=number, commit=made.commit, text=made.text),
        ):
            self._add(fact)

    def _builds_on(self, merge: Made, commit: str | None) -> bool:
        """Whether the commit contains the merge, as far as git shows."""
        ahead, seen = [commit or ""], set[str]()
        while ahead:
            at = ahead.pop()
            if at == merge.commit:
                return True
            if at not in seen and at in self._remains.commits:
                seen.add(at)
                ahead += self._remains.commits[at].parents
        return False

    def attempts(self, id_: str, until: int) -> None:
        """Add every Player start up to this one, with its work."""
        known = self._pinned(id_)
        for n in range(len(self._state.tasks[id_].attempts) + 1, until + 1):
            self._attempt(id_, known.get(n, Kept(n=n)))

    def _attempt(self, id_: str, kept: Kept) -> None:
        self._make_ready(id_, kept)
        task = self._state.tasks[id_]
        start = kept.start or task.head or self._state.tip
        at, n = self._time(start), kept.n
        turn = task.turn or kept.turn or 1  # only the tip itself has turn 0
        self._add(e.PlayerStarted(at=at, task=id_, n=n, turn=turn, start=start, onto=kept.onto))
        if kept.kind == "snapshot":
            self._finished(id_, at)
        else:
            self._add(
                e.PlayerFailed(
                    at=at,
                    task=id_,
                    n=n,
                    failure=e.Failure.INTERRUPTED,
                    message="it had not finished when the run ended",
                    usage=_UNPAID,
                )
            )
        self._saved(id_, kept)

    def _finished(self, id_: str, at: datetime) -> None:
        n = self._state.tasks[id_].last.n
        self._add(e.PlayerFinished(at=at, task=id_, n=n, summary="", usage=_UNPAID))

    def _settle(self, id_: str) -> None:
        """Add the snapshot of the last Player's work, as far as git shows it."""
        if self._state.tasks[id_].phase in {Phase.PLAYED, Phase.LEFT}:
            self._saved(id_, self._kept(id_))

    def _saved(self, id_: str, kept: Kept) -> None:
        task = self._state.tasks[id_]
        start = task.last.start
        kind = "snapshot" if task.phase is Phase.PLAYED else "partial"
        commit = kept.commit or start
        at, tree = self._time(commit), self._tree(commit)
        self._add(e.SnapshotStarted(at=at, task=id_, n=task.last.n, kind=kind))
        self._add(
            e.SnapshotTaken(
                at=at,
                task=id_,
                n=task.last.n,
                kind=kind,
                commit=commit,
                tree=tree,
                changed=tree != self._tree(start),
                files=kept.files,
                created=kept.created,
                deleted=kept.deleted,
            )
        )

    def _make_ready(self, id_: str, kept: Kept) -> None:
        """Bring the task to a phase in which this Player may start."""
        self._settle(id_)
        task = self._state.tasks[id_]
        at, ways = self._time(kept.start), TASK_TRANSITIONS[task.phase]
        if e.PlayerStarted in ways:
            return
        if task.phase in IN_TIP:
            stands = task.phase is Phase.MERGED
            self._add(e.TaskReopened(at=at, task=id_, by=_BY, may_stand=stands))
        elif e.TurnReturned in ways:
            counted = (kept.turn or task.turn + 1) > task.turn
            cause = "checks" if counted else "conflict"
            feedback = _NOT_KNOWN.format(n=task.last.n)
            self._add(e.TurnReturned(at=at, task=id_, cause=cause, feedback=feedback))
        elif e.CheckpointPassed in ways:
            self._add(e.CheckpointPassed(at=at, task=id_, by=_BY))
        else:
            self._add(e.TaskReset(at=at, task=id_, by=_BY))

    def _approved(self, id_: str, at: datetime) -> None:
        last = self._state.tasks[id_].last
        commit, k = last.commit or "", len(last.coachings) + 1
        kept = self._kept(id_)
        review = kept.reviews[max(kept.reviews)] if kept.reviews else _LOST_VERDICT
        checked = bool(task_checks(self._state, id_))
        self._add(e.CoachStarted(at=at, task=id_, n=last.n, k=k, commit=commit))
        self._add(
            e.CoachAnswered(
                at=at, task=id_, n=last.n, k=k, commit=commit, review=review, usage=_UNPAID
            )
        )
        self._add(e.TaskApproved(at=at, task=id_, commit=commit, checked=checked))

    def _kept(self, id_: str) -> Kept:
        """The pins of the task's last Player start."""
        n = self._state.tasks[id_].last.n
        return self._pinned(id_).get(n, Kept(n=n))

    def _pinned(self, id_: str) -> Mapping[int, Kept]:
        """The pins of the task's Player starts, by number."""
        return self._attempts.get(id_, {})

    def _add(self, fact: e.Event) -> None:
        self._state = apply(self._state, fact)
        self._facts.append(fact)

    def _tree(self, commit: str) -> str:
        made = self._remains.commits.get(commit)
        return made.tree if made is not None else ""

    def _time(self, commit: str | None) -> datetime:
        made = self._remains.commits.get(commit or "")
        return made.at if made is not None and made.run else self._state.started_at
