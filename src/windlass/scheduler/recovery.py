"""The facts of a run whose journal is lost, from what git shows of it. Pure.

Law: nothing is claimed that git does not show. A task is merged where its merge is on the tip's own
line, and nowhere else. Of the last attempt of a task nothing is decided here: its snapshot is
judged once more by the gate, and a verdict that is pinned is found again, so that no finished work
is done or paid for twice. How older attempts ended shows in the attempt that came after them.
"""

from datetime import datetime

from msgspec.structs import replace

from windlass.errors import IllegalEvent, RepositoryError
from windlass.events import model as e
from windlass.plan import Plan, Task, compare, with_meaning
from windlass.scheduler import turns
from windlass.scheduler.telling import Telling
from windlass.state import apply
from windlass.state.remains import Kept, Made, Mark, Remains, chain

UNKNOWN = "what was spent before, and what the checks had said, is not known any more"
RECOVERED = "recovered from git"


def recovered(remains: Remains, began: e.RunStarted, at: datetime) -> tuple[e.Event, ...]:
    """The facts of the run, as its journal might have had them; `began` is its first.

    Raises RepositoryError where the tip holds what is not the run's.
    """
    _refuse_foreign(remains)
    remains = replace(remains, attempts=_with_what_was_judged(remains))
    try:
        return _Recovery(remains, began).facts(at)
    except IllegalEvent:
        # Some pins are gone, or somebody made one: edits of the plan cannot be told by their place.
        placeless = replace(remains, told=(), notes=(*remains.notes, _misplaced(remains)))
        newest = _newest(remains, began)
        return _Recovery(placeless, _first_texts(remains, began, newest), newest.plan).facts(at)


def _refuse_foreign(remains: Remains) -> None:
    before = remains.base
    if chain(remains.commits, remains.base, remains.tip) is None:
        raise RepositoryError(
            f"the tip of run {remains.run}, {remains.tip[:10]}, does not lead back to its base",
            hint="put it back to the run's last merge with `git update-ref`, and recover again",
        )
    for made in remains.merges:
        if made.run != remains.run or not made.task or made.parents[1:] == ():
            raise RepositoryError(
                f"the tip of run {remains.run} holds {made.commit[:10]}, which is no merge of it",
                hint=f"put the tip back to {before} with `git update-ref`, and recover again",
            )
        before = made.commit


def _with_what_was_judged(remains: Remains) -> dict[str, dict[int, Kept]]:
    """The attempts; one that left nothing new and was judged was judged for what it began with."""
    return {
        id_: {
            n: replace(kept, kind="snapshot", commit=kept.start)
            if kept.kind is None and kept.start is not None and kept.reviews
            else kept
            for n, kept in known.items()
        }
        for id_, known in remains.attempts.items()
    }


def _misplaced(remains: Remains) -> str:
    return f"{len(remains.told)} edits and words of people do not fit what is pinned; left out"


def _newest(remains: Remains, began: e.RunStarted) -> e.RunStarted:
    plans = [told.fact.plan for told in remains.told if isinstance(told.fact, e.PlanRevised)]
    return replace(began, plan=plans[-1]) if plans else began


def _first_texts(remains: Remains, began: e.RunStarted, newest: e.RunStarted) -> e.RunStarted:
    """The newest plan, with each task asking for what it asked for at first.

    For which of its texts a task was merged is not known any more. It is told as merged for the
    first, so that it is stale where there was another, and a person has the last word.
    """
    told = (each.fact for each in remains.told)
    plans = (began.plan, *(fact.plan for fact in told if isinstance(fact, e.PlanRevised)))
    first = {task.id: task for plan in reversed(plans) for task in plan.tasks}
    tasks = tuple(with_meaning(task, first[task.id]) for task in newest.plan.tasks)
    e2e = next((plan.e2e for plan in plans if plan.e2e), None)
    return replace(newest, plan=replace(newest.plan, tasks=tasks, e2e=newest.plan.e2e and e2e))


class _Recovery:
    """One telling: attempts and merges in an order that could have been theirs."""

    def __init__(self, remains: Remains, began: e.RunStarted, newest: Plan | None = None) -> None:
        self._whole, without_stubs = _with_stubs(remains, began)
        edited = newest is not None and bool(compare(began.plan, newest))
        self._then = newest if edited else without_stubs
        """The plan as it is in the end, where it is not the one that it began with."""
        self._remains = remains
        self._telling = Telling(remains, apply(None, self._whole))
        self._merges = remains.merges
        line = (remains.base, *(made.commit for made in self._merges))
        self._place = {commit: place for place, commit in enumerate(line)}
        self._merged_at = {
            owner: self._place[made.commit]
            for made in self._merges
            if (owner := self._owner(made.parents[1])) is not None
        }
        self._done = 0
        """How many of the merges are told."""
        self._unfit: list[str] = []

    def facts(self, at: datetime) -> tuple[e.Event, ...]:
        """All of it."""
        for told in self._remains.told:
            self._advance(told.mark)
            self._repeat(told.fact)
        self._advance(None)
        self._telling.leave_open()
        if self._then is not None:
            self._telling.tell(e.PlanRevised(at=at, plan=self._then))
        telling = self._telling
        notes = (*self._remains.notes, *self._unfit, UNKNOWN)
        self._telling.tell(
            e.RunRecovered(
                at=at,
                candidates=telling.candidates,
                told=self._remains.told_until,
                notes=notes,
            )
        )
        self._telling.tell(e.RunEnded(at=at, status=e.RunEnd.STOPPED, reason=RECOVERED))
        return (self._whole, *telling.facts)

    def _advance(self, mark: Mark | None) -> None:
        """Everything up to a mark; up to the end without one."""
        until = len(self._merges) if mark is None else self._reached(mark)
        self._play(mark)
        while self._done < until:
            self._merge(self._merges[self._done])
            self._done += 1
            self._play(mark)
        for id_ in self._telling.state.tasks if mark is not None else ():
            self._telling.coached(id_, mark.reviews.get(id_, 0) if mark is not None else 0)

    def _reached(self, mark: Mark) -> int:
        """How many merges the tip had, or was sure to get."""
        return max(self._place.get(commit, self._done) for commit in (mark.tip, *mark.moving))

    def _play(self, mark: Mark | None) -> None:
        """Every attempt that had begun by the time the tip stood where it stands now."""
        for id_ in tuple(self._telling.state.tasks):
            while (kept := self._next(id_, mark)) is not None:
                self._telling.attempt(id_, kept)

    def _next(self, id_: str, mark: Mark | None) -> Kept | None:
        task, known = self._telling.state.tasks[id_], self._remains.attempts.get(id_, {})
        n = len(task.attempts) + 1
        if n > (max(known, default=0) if mark is None else mark.attempts.get(id_, 0)):
            return None
        if self._is_to_be_merged(id_) or self._begins_at(id_, n) > self._done:
            return None
        return known.get(n) or Kept(n=n)

    def _is_to_be_merged(self, id_: str) -> bool:
        n = len(self._telling.state.tasks[id_].attempts)
        return self._merged_at.get((id_, n), 0) > self._done

    def _begins_at(self, id_: str, n: int) -> int:
        """How many merges the tip had when that attempt began, as far as pins say."""
        known = self._remains.attempts.get(id_, {})
        later = (known[m].start or known[m].tip for m in sorted(known) if m >= n)
        start = next((start for start in later if start is not None), None)
        if start is None:
            task = self._telling.state.tasks[id_]
            return len(self._merges) if turns.begins_with_tip(self._telling.state, task) else 0
        return self._place.get(start, 0)

    def _merge(self, made: Made) -> None:
        snapshot = made.parents[1]
        id_, n = self._owner(snapshot) or (made.task, 0)
        if id_ not in self._telling.state.tasks:
            raise IllegalEvent(f"{made.commit} is the merge of {id_}, which the plan did not have")
        while len(self._telling.state.tasks[id_].attempts) < n:
            following = len(self._telling.state.tasks[id_].attempts) + 1
            self._telling.attempt(
                id_, self._remains.attempts[id_].get(following) or Kept(n=following)
            )
        if not n:  # its pins are gone: the merge itself is what is left of it
            n = len(self._telling.state.tasks[id_].attempts) + 1
            self._telling.attempt(
                id_, Kept(n=n, start=made.parents[0], kind="snapshot", commit=snapshot)
            )
        self._telling.merged(id_, made)

    def _owner(self, snapshot: str) -> tuple[str, int] | None:
        """The last attempt that left this: one that began with it and left nothing new, too.

        Whoever begins once more after a merge begins from the tip.
        """
        owners = [
            (id_, n)
            for id_, known in self._remains.attempts.items()
            for n, kept in known.items()
            if _left(kept) == snapshot
        ]
        return max(owners, key=lambda owner: owner[1], default=None)

    def _repeat(self, fact: e.Event) -> None:
        """What somebody said, where it was said."""
        telling = self._telling
        if isinstance(fact, e.PlanRevised):
            telling.interrupt()
        if isinstance(fact, e.TaskEvent) and not telling.made_ready(fact):
            name = type(fact).__name__
            self._unfit.append(f"{name} of {fact.task} does not fit what is pinned; left out")
            return
        telling.tell(fact)
        if isinstance(fact, e.TaskGiven):
            telling.kept_by_hand(fact.task)


def _left(kept: Kept) -> str | None:
    """What there was to judge after the attempt, if anything."""
    if kept.kind is None:
        return kept.start
    return kept.commit if kept.kind == "snapshot" else None


def _with_stubs(remains: Remains, began: e.RunStarted) -> tuple[e.RunStarted, Plan | None]:
    """The first fact with every task that git tells of, and the plan without those, if any.

    The plan may have been edited before its edits were pinned; such tasks are withdrawn again.
    """
    revised = [told.fact.plan for told in remains.told if isinstance(told.fact, e.PlanRevised)]
    plans = (began.plan, *revised)
    known = {task.id for plan in plans for task in plan.tasks}
    seen = dict.fromkeys((*remains.attempts, *(made.task for made in remains.merges)))
    lost = [id_ for id_ in seen if id_ not in known]
    if any(plan.e2e for plan in plans) and any(_is_scenario(id_) for id_ in lost):
        # It may have been asked for by an option of a later start.
        settings = replace(began.settings, e2e=replace(began.settings.e2e, run=True))
        began = replace(began, settings=settings)
        lost = [id_ for id_ in lost if not _is_scenario(id_)]
    if not lost:
        return began, None
    stubs = tuple(Task(id=id_, title=f"{id_} (not in the plan any more)") for id_ in lost)
    newest = revised[-1] if revised else began.plan
    return replace(began, plan=_joined(began.plan, stubs)), newest


def _is_scenario(id_: str) -> bool:
    name, _, number = id_.partition("-")
    return name == "e2e" and (number.isdigit() or id_ == name)


def _joined(plan: Plan, more: tuple[Task, ...]) -> Plan:
    return replace(plan, tasks=(*plan.tasks, *more))
