"""How each attempt of a task began and ended, told from its pins and from what came after it."""

from datetime import datetime

from windlass.events import model as e
from windlass.events.review import Review, TestResults
from windlass.scheduler import evidence, gate, turns
from windlass.scheduler.gate import Judgement
from windlass.state import Phase, RunState, apply, demands
from windlass.state.remains import Kept, Made, Remains
from windlass.state.transitions import IN_TIP, TASK_TRANSITIONS

_NOT_KNOWN = "It is not known any more, for the journal was lost."
_CHECKS = (
    "The checks did not pass on what attempt {n} left. What they said is not known any more, for "
    "the journal was lost; run them."
)
_MERGE = "Attempt {n} could not be merged with what others had merged meanwhile. " + _NOT_KNOWN
_INTERRUPTED = "it had not finished when the run ended"
_PINNED = "what it said is pinned"
_LOST_VERDICT = Review(
    decision="approve",
    summary="The verdict is lost. That its merge is in the tip shows that it approved.",
    test_results=TestResults(passed=None),
    evidence=(),
)
_UNPAID = e.Usage(known=False)
_BY = "a person"
_JUDGED = frozenset({Phase.SAVED, Phase.UNREVIEWED})
"""Phases of work that has yet to be judged."""


class Telling:
    """Facts about tasks, each applied as it is told, so that none is told that could not be."""

    def __init__(self, remains: Remains, state: RunState) -> None:
        self.state = state
        self.facts: list[e.Event] = []
        self._remains = remains
        self._numbers = {commit: number for number, commit in remains.candidates.items()}
        self.candidates = max(remains.candidates, default=0)

    def tell(self, fact: e.Event) -> None:
        """The fact is told, and true."""
        self.state = apply(self.state, fact)
        self.facts.append(fact)

    def attempt(self, id_: str, kept: Kept) -> None:
        """A Player that started, and what it left; what became of that is told later."""
        self._settle(id_, kept)
        task = self.state.tasks[id_]
        if kept.start is None and turns.begins_with_tip(self.state, task):
            tip = kept.tip or self.state.tip
            tree, at = self._tree(tip), self._time(tip)
            self.tell(e.TipTaken(at=at, task=id_, n=kept.n, commit=tip, tree=tree))
            return
        start = kept.start or task.head or self.state.tip
        began = e.PlayerStarted(
            at=self._time(start),
            task=id_,
            n=kept.n,
            turn=task.turn or kept.turn or 1,  # none but the tip itself is of no turn
            start=start,
            onto=kept.onto,
        )
        self.tell(began)
        if kept.kind == "snapshot":
            self._finished(id_, kept)
        elif kept.kind == "partial":
            self._interrupted(id_)
            self._saved(id_, kept)

    def merged(self, id_: str, made: Made) -> None:
        """The last attempt was approved and is in the tip."""
        left = Kept(n=self.state.tasks[id_].last.n, kind="snapshot", commit=made.parents[1])
        if self.state.tasks[id_].phase is Phase.PLAYED:
            self._saved(id_, left)
        elif self.state.tasks[id_].phase is Phase.PLAYING:
            self._finished(id_, left)
        self._approved(id_, made.at)
        number = self._numbers.get(made.commit)
        if number is None:  # its pin is gone, and gets a number that nobody had
            number = self.candidates = self.candidates + 1
        self._built(id_, number, made)
        moved = e.TipMoveStarted(at=made.at, tasks=(id_,), commit=made.commit, tip=self.state.tip)
        self.tell(moved)
        self.tell(
            e.TaskMerged(at=made.at, task=id_, candidate=number, commit=made.commit, text=made.text)
        )

    def coached(self, id_: str, reviews: int) -> None:
        """Verdicts that are pinned, up to that one: each is found again when it is asked for."""
        task = self.state.tasks[id_]
        if not task.attempts or task.phase not in _JUDGED:
            return
        for k in range(len(task.last.coachings) + 1, reviews + 1):
            self._coach_started(id_, k)
            pinned = k in self._kept(id_).reviews
            self.tell(
                e.CoachFailed(
                    at=self.state.at,
                    task=id_,
                    n=task.last.n,
                    k=k,
                    failure=e.Failure.INTERRUPTED if pinned else e.Failure.INCONCLUSIVE,
                    message=_PINNED if pinned else _INTERRUPTED,
                    usage=_UNPAID,
                )
            )

    def made_ready(self, fact: e.TaskEvent) -> bool:
        """Bring the task to where this could be said of it, as far as that goes."""
        id_ = fact.task
        if id_ not in self.state.tasks:
            return False
        match fact:
            case e.Answered() | e.CheckpointPassed():
                self._asked(id_)
            case e.TaskReopened() if self.state.tasks[id_].phase not in IN_TIP:
                self._given_up(id_)
            case e.MergeStands() if self.state.tasks[id_].phase is Phase.PLAYING:
                self._left_nothing(id_, finished=True)
            case e.TaskReset() if self.state.tasks[id_].phase is Phase.PLAYING:
                self._left_nothing(id_, finished=False)
            case e.TaskTaken():
                taken = Kept(n=fact.n, start=fact.start, turn=fact.turn, onto=fact.onto)
                self._settle(id_, taken)
            case _:
                pass
        task = self.state.tasks[id_]
        undone = isinstance(fact, e.TaskResetUndone) and task.before_reset is None
        return type(fact) in TASK_TRANSITIONS[task.phase] and not undone

    def kept_by_hand(self, id_: str) -> None:
        """What a person left, where it was committed."""
        kept = self._kept(id_)
        if kept.kind == "snapshot":
            self._saved(id_, kept)

    def _given_up(self, id_: str) -> None:
        """The task had used up its turns, or it could not have been asked for again."""
        at = self.state.at
        if self.state.tasks[id_].phase is Phase.PLAYING:
            self._left_nothing(id_, finished=True)
        if self.state.tasks[id_].phase in _JUDGED:
            self._returned(id_, Kept(n=0), at, counted=True)
        if self.state.tasks[id_].phase is Phase.RETURNED:
            self.tell(e.TaskAbandoned(at=at, task=id_, reason=_NOT_KNOWN))

    def _asked(self, id_: str) -> None:
        """A person was asked, where that was possible."""
        task = self.state.tasks[id_]
        if task.phase is Phase.UNREVIEWED:
            self._answered(id_, self._time(task.last.commit))
        if e.HelpNeeded in TASK_TRANSITIONS[self.state.tasks[id_].phase]:
            review = self._review(id_) if task.attempts else None
            question = (review.question if review is not None else None) or _NOT_KNOWN
            self.tell(e.HelpNeeded(at=self.state.at, task=id_, question=question))

    def interrupt(self) -> None:
        """Another process took the run over: no Player works any more."""
        for id_, task in self.state.tasks.items():
            if task.phase is not Phase.PLAYING:
                continue
            following = self._remains.attempts.get(id_, {}).get(task.last.n + 1)
            if following is None:
                self._interrupted(id_)
            else:
                self._left_nothing(id_, finished=self._is_counted(id_, following))
        state = self.state
        self.tell(
            e.RunResumed(
                at=state.at,
                settings=state.settings,
                sandbox=state.sandbox,
                metered=state.metered,
                coach_commands=state.coach_commands,
            )
        )

    def leave_open(self) -> None:
        """What nobody knows the end of: to be kept, judged or asked for by whoever resumes."""
        for id_, task in self.state.tasks.items():
            if task.phase is Phase.PLAYING:
                self._interrupted(id_)
            elif task.phase is Phase.TAKEN and self._kept(id_).kind == "snapshot":
                self._handed_back(id_)
                self.coached(id_, max(self._kept(id_).reviews, default=0))
            elif task.attempts:
                self.coached(id_, max(self._kept(id_).reviews, default=0))

    def _settle(self, id_: str, following: Kept) -> None:
        """How the attempt before this one ended."""
        task = self.state.tasks[id_]
        at = self._time(following.start)
        if task.phase in IN_TIP:
            stands = task.phase is Phase.MERGED
            self.tell(e.TaskReopened(at=at, task=id_, by=_BY, may_stand=stands))
            return
        if not task.attempts or task.phase is Phase.PENDING:
            return
        if task.phase is Phase.TAKEN:
            self._handed_back(id_)
        elif task.phase is Phase.PLAYED:  # by hand, and nothing came of it
            self._saved(id_, Kept(n=task.last.n, kind="snapshot", commit=task.last.start))
        counted = self._is_counted(id_, following)
        if task.phase in {Phase.PLAYING, Phase.LEFT}:
            self._left_nothing(id_, finished=counted)
        if self._is_anew(id_, following):
            self.tell(e.TaskReset(at=at, task=id_, by=_BY))
        elif self.state.tasks[id_].phase in _JUDGED:
            self._returned(id_, following, at, counted=counted or following.turn is None)

    def _is_anew(self, id_: str, following: Kept) -> bool:
        """Whether that attempt began from elsewhere than what was left."""
        task = self.state.tasks[id_]
        return following.start not in {None, task.head} and not task.last.is_tip

    def _is_counted(self, id_: str, following: Kept) -> bool:
        """Whether the last attempt used up its turn."""
        turn = self.state.tasks[id_].turn
        return (following.turn or turn) > turn and not self._is_anew(id_, following)

    def _returned(self, id_: str, following: Kept, at: datetime, *, counted: bool) -> None:
        task = self.state.tasks[id_]
        commit = task.last.commit or ""
        left_nothing = commit == task.last.start and not (task.last.is_tip or self._review(id_))
        if left_nothing:
            self.tell(e.TurnReturned(at=at, task=id_, cause="unchanged", feedback=_NOT_KNOWN))
        elif following.onto is not None:
            self._sent_back_from_merge(id_, following.onto, at)
        elif counted and not (task.last.is_tip and following.start is None):
            self._judged(id_, at)
        else:
            self._asked(id_)
            self.tell(e.Answered(at=at, task=id_, text=_NOT_KNOWN, by=_BY))

    def _judged(self, id_: str, at: datetime) -> None:
        """Returned for the Coach's verdict, where the gate says so of it; else by the checks."""
        n, review = self.state.tasks[id_].last.n, self._review(id_)
        reason = ""
        if review is not None:
            verdict = gate.judge_review(
                review,
                criteria=len(evidence.criteria(self.state, id_)),
                checked=bool(demands.task_checks(self.state, id_)),
            )
            reason = verdict.reason if verdict.judgement is Judgement.RETURN else ""
            self._answered(id_, at)
        if reason:
            self.tell(e.TurnReturned(at=at, task=id_, cause="review", feedback=reason))
        else:
            told = _CHECKS.format(n=n)
            self.tell(e.TurnReturned(at=at, task=id_, cause="checks", feedback=told))

    def _sent_back_from_merge(self, id_: str, onto: str, at: datetime) -> None:
        task = self.state.tasks[id_]
        self._approved(id_, at)
        tried = (self._remains.commits.get(c) for c in self._remains.candidates.values())
        parents = (onto, task.last.commit)
        made = next((m for m in tried if m is not None and m.parents == parents), None)
        told = _MERGE.format(n=task.last.n)
        if made is not None:
            self._built(id_, self._numbers[made.commit], made)
            self.tell(e.TurnReturned(at=at, task=id_, cause="merged_checks", feedback=told))
            return
        number = self.state.candidates + 1
        self.tell(
            e.MergeStarted(
                at=at, task=id_, candidate=number, commit=task.last.commit or "", onto=onto
            )
        )
        self.tell(e.MergeConflicted(at=at, task=id_, candidate=number, files=(), detail=_NOT_KNOWN))
        self.tell(e.TurnReturned(at=at, task=id_, cause="conflict", feedback=told))

    def _built(self, id_: str, number: int, made: Made) -> None:
        onto, commit = made.parents[:2]
        begun = e.MergeStarted(at=made.at, task=id_, candidate=number, commit=commit, onto=onto)
        self.tell(begun)
        self.tell(
            e.MergeBuilt(at=made.at, task=id_, candidate=number, commit=made.commit, tree=made.tree)
        )

    def _approved(self, id_: str, at: datetime) -> None:
        self._answered(id_, at)
        commit = self.state.tasks[id_].last.commit or ""
        checked = bool(demands.task_checks(self.state, id_))
        self.tell(e.TaskApproved(at=at, task=id_, commit=commit, checked=checked))

    def _answered(self, id_: str, at: datetime) -> None:
        """The last verdict, as an answer; those before it came to nothing."""
        reviews = self._kept(id_).reviews
        self.coached(id_, max(reviews, default=1) - 1)
        last = self.state.tasks[id_].last
        k = len(last.coachings) + 1
        self._coach_started(id_, k)
        self.tell(
            e.CoachAnswered(
                at=at,
                task=id_,
                n=last.n,
                k=k,
                commit=last.commit or "",
                review=self._review(id_) or _LOST_VERDICT,
                usage=_UNPAID,
            )
        )

    def _coach_started(self, id_: str, k: int) -> None:
        last = self.state.tasks[id_].last
        # Where no pin tells what was tried, nothing that was said holds of anything.
        unknown = last.is_tip and self._kept(id_).tip is None
        commit = "" if unknown else last.commit or ""
        at = self._time(last.commit)
        self.tell(e.CoachStarted(at=at, task=id_, n=last.n, k=k, commit=commit))

    def _finished(self, id_: str, kept: Kept) -> None:
        at = self._time(kept.commit)
        done = e.PlayerFinished(at=at, task=id_, n=kept.n, summary="", usage=_UNPAID)
        self.tell(done)
        self._saved(id_, kept)

    def _interrupted(self, id_: str) -> None:
        last = self.state.tasks[id_].last
        self.tell(
            e.PlayerFailed(
                at=last.started_at,
                task=id_,
                n=last.n,
                failure=e.Failure.INTERRUPTED,
                message=_INTERRUPTED,
                usage=_UNPAID,
            )
        )

    def _left_nothing(self, id_: str, *, finished: bool) -> None:
        """An attempt without a commit of its own: what it started from is what it left."""
        last, gone = self.state.tasks[id_].last, self.state.tasks[id_].phase is Phase.LEFT
        kind = "snapshot" if finished and not gone else "partial"
        kept = Kept(n=last.n, start=last.start, kind=kind, commit=last.start)
        if kind == "snapshot":
            self._finished(id_, kept)
            return
        if not gone:
            self._interrupted(id_)
        self._saved(id_, kept)

    def _saved(self, id_: str, kept: Kept) -> None:
        last = self.state.tasks[id_].last
        commit, kind, at = (
            kept.commit or last.start,
            kept.kind or "partial",
            self._time(kept.commit),
        )
        self.tell(e.SnapshotStarted(at=at, task=id_, n=kept.n, kind=kind))
        self.tell(
            e.SnapshotTaken(
                at=at,
                task=id_,
                n=kept.n,
                kind=kind,
                commit=commit,
                tree=self._tree(commit),
                changed=self._tree(commit) != self._tree(last.start),
                files=kept.files,
                created=kept.created,
                deleted=kept.deleted,
            )
        )

    def _handed_back(self, id_: str) -> None:
        """A person gave the workspace back: there is a commit of it, or what came after."""
        last = self.state.tasks[id_].last
        given = e.TaskGiven(at=last.started_at, task=id_, n=last.n, summary="", by=last.by or _BY)
        self.tell(given)
        unchanged = Kept(n=last.n, start=last.start, kind="snapshot", commit=last.start)
        kept = self._kept(id_)
        self._saved(id_, kept if kept.kind == "snapshot" else unchanged)

    def _review(self, id_: str) -> Review | None:
        reviews = self._kept(id_).reviews
        return reviews[max(reviews)] if reviews else None

    def _kept(self, id_: str) -> Kept:
        n = self.state.tasks[id_].last.n
        return self._remains.attempts.get(id_, {}).get(n) or Kept(n=n)

    def _tree(self, commit: str) -> str:
        made = self._remains.commits.get(commit)
        return made.tree if made is not None else ""

    def _time(self, commit: str | None) -> datetime:
        made = self._remains.commits.get(commit or "")
        return made.at if made is not None and made.run else self.state.started_at
