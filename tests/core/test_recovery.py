"""What is told of a run from its pins alone, where pins are odd, few, or somebody else's."""
# X10

from datetime import timedelta

import pytest
from msgspec.structs import replace

from windlass.errors import RepositoryError
from windlass.events import model as e
from windlass.events.review import Review, TestResults
from windlass.plan import Plan, Task, digest_of
from windlass.scheduler.recovery import recovered
from windlass.settings import Settings
from windlass.state import Phase, RunState, fold
from windlass.state.remains import Kept, Made, Mark, Remains, Told
from worlds import NOON, plan_of

A, B = Task(id="a", title="a"), Task(id="b", title="b")
PLAN = plan_of(A, B)
APPROVED = Review(
    decision="approve", summary="", test_results=TestResults(passed=True), evidence=()
)
SAID = {"at": NOON, "by": "a person"}


def began(plan: Plan = PLAN) -> e.RunStarted:
    return e.RunStarted(
        at=NOON,
        run="r1",
        plan=plan,
        settings=Settings(checks=("test",)),
        base="base",
        base_branch="main",
        sandbox="none",
        version="0",
    )


def made(commit: str, *parents: str, task: str = "a", run: str = "r1") -> Made:
    at = NOON + timedelta(seconds=len(commit))
    return Made(commit=commit, tree=f"tree of {commit}", parents=parents, at=at, run=run, task=task)


BASE = made("base", run="")


def remains(*commits: Made, tip: str = "base", told: tuple[Told, ...] = (), **tasks) -> Remains:
    """Pins of tasks, each a list of its attempts in order."""
    return Remains(
        run="r1",
        began=began(),
        told=told,
        base="base",
        tip=tip,
        commits={each.commit: each for each in (BASE, *commits)},
        attempts={
            id_: {n: replace(kept, n=n) for n, kept in enumerate(attempts, 1)}
            for id_, attempts in tasks.items()
        },
        candidates={},
    )


def attempt(start: str, commit: str | None = None, **more) -> Kept:
    kind = "snapshot" if commit is not None else None
    return Kept(n=0, start=start, commit=commit, **{"kind": kind, **more})


def told(fact: e.Event, tip: str = "base", **attempts: int) -> Told:
    return Told(fact=fact, mark=Mark(tip=tip, attempts=attempts, reviews={}))


def told_of(found: Remains) -> RunState:
    state = fold(recovered(found, began(), NOON))
    assert state is not None
    assert state.ended is e.RunEnd.STOPPED
    assert not state.spent.known
    return state


def test_a_tip_of_somebody_elses_is_refused():
    elsewhere = remains(made("x", task="", run=""), tip="x")
    with pytest.raises(RepositoryError, match="does not lead back to its base"):
        recovered(elsewhere, began(), NOON)
    theirs = remains(made("x", "base", task="", run=""), tip="x")
    with pytest.raises(RepositoryError, match="which is no merge of it; put the tip back to base"):
        recovered(theirs, began(), NOON)


def test_when_anything_was_last_done():
    found = remains(made("one", "base"))
    assert found.at == NOON + timedelta(seconds=3)
    assert replace(found, began=None, commits={"base": BASE}).at == BASE.at


def test_tasks_that_no_plan_has_are_kept_where_merged_and_withdrawn_where_not():
    found = remains(
        made("s", "base", task="x"),
        made("m", "base", "s", task="x"),
        tip="m",
        x=[attempt("base", "s")],
        y=[attempt("m")],
    )
    state = told_of(found)
    assert state.tip == "m"
    assert state.tasks["x"].merge_commit == "m"
    assert state.tasks["x"].candidate == 1, "a merge whose pin is gone gets a number"
    assert len(state.withdrawn["y"].attempts) == 1
    assert [task.id for task in state.plan.tasks] == ["a", "b", "x"]


def test_a_merge_is_left_of_a_task_whose_pins_are_gone():
    state = told_of(remains(made("s", "base"), made("m", "base", "s"), tip="m"))
    assert state.tasks["a"].phase is Phase.MERGED
    assert "lost" in (state.tasks["a"].last.coachings[-1].review or APPROVED).summary


def test_words_that_fit_nothing_are_left_out_and_said():
    answer = e.Answered(task="gone", text="yes", **SAID)
    state = told_of(remains(told=(told(answer),)))
    assert state.notes[0] == "Answered of gone does not fit what is pinned; left out"
    merged = (made("s", "base"), made("m", "base", "s"))
    late = told(e.Answered(task="a", text="yes", **SAID), tip="m", a=1)
    state = told_of(remains(*merged, tip="m", told=(late,), a=[attempt("base", "s")]))
    assert "Answered of a does not fit" in state.notes[0]


@pytest.mark.parametrize("text", ["", digest_of(A), "of another text"])
def test_a_merge_for_a_text_that_no_one_knows_is_stale(text: str):
    merge = replace(made("m", "base", "s"), text=text)
    found = remains(made("s", "base"), merge, tip="m", a=[attempt("base", "s")])
    state = told_of(found)
    assert state.is_stale("a") == (text == "of another text")
    assert state.in_tip == ("a",)


def test_a_task_whose_edits_have_lost_their_place_is_told_as_merged_for_its_first_text():
    newer = replace(A, text="and well")
    lost = e.PlanRevised(at=NOON, plan=plan_of(newer, B))
    misplaced = e.PlanRevised(at=NOON, plan=plan_of(B))
    commits = (made("s", "base"), made("m", "base", "s"))
    words = (told(misplaced), told(lost, tip="m", a=1))
    state = told_of(remains(*commits, tip="m", told=words, a=[attempt("base", "s")]))
    assert "do not fit what is pinned" in state.notes[0]
    assert state.stale == ("a",)
    assert state.specs["a"].text == "and well"


def test_edits_that_do_not_fit_leave_the_newest_plan():
    without = e.PlanRevised(at=NOON, plan=plan_of(replace(B, title="better")))
    found = remains(
        made("s", "base"),
        made("m", "base", "s"),
        tip="m",
        told=(told(without),),
        a=[attempt("base", "s")],
    )
    state = told_of(found)
    assert "do not fit what is pinned" in state.notes[0]
    assert state.specs["b"].title == "better"
    assert state.tasks["a"].phase is Phase.MERGED


def test_who_changed_nothing_may_be_the_one_that_was_merged():
    commits = (made("s", "base"), made("m", "base", "s"))
    unchanged = attempt("s", turn=1)
    state = told_of(remains(*commits, tip="m", a=[attempt("base", "s", turn=1), unchanged]))
    assert state.tasks["a"].phase is Phase.MERGED
    assert len(state.tasks["a"].attempts) == 2
    by_hand = (
        told(e.TaskTaken(task="a", n=2, turn=1, start="s", onto=None, **SAID), a=1),
        told(e.TaskGiven(task="a", n=2, summary="", **SAID), a=2),
    )
    found = remains(*commits, tip="m", told=by_hand, a=[attempt("base", "s", turn=1), unchanged])
    state = told_of(found)
    assert state.tasks["a"].phase is Phase.MERGED
    assert state.tasks["a"].last.by == "a person"


def test_a_person_who_left_nothing_is_followed_by_the_next_player():
    """Nothing is pinned of a workspace that was given back and held nothing new."""
    words = (
        told(e.TaskTaken(task="a", n=1, turn=1, start="base", onto=None, **SAID)),
        told(e.TaskGiven(task="a", n=1, summary="", **SAID), a=1),
    )
    found = remains(made("s", "base"), told=words, a=[attempt("base"), attempt("base", "s")])
    task = told_of(found).tasks["a"]
    assert [each.commit for each in task.attempts] == ["base", "s"]
    assert task.phase is Phase.SAVED


def test_what_a_person_left_is_theirs_whatever_was_pinned_of_giving_it_back():
    taken = told(e.TaskTaken(task="a", n=1, turn=1, start="base", onto=None, **SAID))
    commits = (made("s", "base"), made("t", "s"))
    state = told_of(remains(told=(taken,), a=[attempt("base")]))
    assert state.tasks["a"].phase is Phase.TAKEN, "they work on it still"
    judged = attempt("base", "s", reviews={1: APPROVED})
    state = told_of(remains(*commits, told=(taken,), a=[judged]))
    assert state.tasks["a"].phase is Phase.UNREVIEWED
    assert state.tasks["a"].last.coachings
    later = [attempt("base", "s"), attempt("s", "t", turn=2)]
    state = told_of(remains(*commits, told=(taken,), a=later))
    assert state.tasks["a"].turn == 2
    assert state.tasks["a"].attempts[0].by == "a person"
    assert state.tasks["a"].attempts[1].by is None


def test_what_was_given_up_is_asked_for_again():
    again = told(e.TaskReopened(task="a", **SAID), a=1)
    state = told_of(remains(told=(again,), a=[attempt("base")]))
    assert state.tasks["a"].phase is Phase.RETURNED
    assert state.tasks["a"].first_turn == 2
    half = attempt("base", "s", kind="partial")
    state = told_of(remains(made("s", "base"), told=(again,), a=[half]))
    assert "TaskReopened of a does not fit" in state.notes[0]


def test_who_begins_after_a_merge_was_asked_for_again():
    commits = (made("s", "base"), made("m", "base", "s"))
    state = told_of(remains(*commits, tip="m", a=[attempt("base", "s"), attempt("m", turn=2)]))
    assert state.tasks["a"].phase is Phase.LEFT
    assert state.tasks["a"].merge_before == "m"
    assert state.tasks["a"].turn == 2


def test_a_red_merge_is_told_from_a_conflict():
    commits = (
        made("s", "base"),
        made("bs", "base", task="b"),
        made("bm", "base", "bs", task="b"),
        made("red", "bm", "s"),
    )
    found = remains(
        *commits,
        tip="bm",
        a=[attempt("base", "s", turn=1), attempt("s", onto="bm", turn=1)],
        b=[attempt("base", "bs")],
    )
    facts = recovered(replace(found, candidates={1: "bm", 2: "red"}), began(), NOON)
    assert [f.cause for f in facts if isinstance(f, e.TurnReturned)] == ["merged_checks"]
    facts = recovered(found, began(), NOON)
    assert [f.cause for f in facts if isinstance(f, e.TurnReturned)] == ["conflict"]
    state = fold(facts)
    assert state is not None
    assert state.tasks["a"].rounds == 1
    assert state.tasks["a"].turn == 1


def test_a_start_that_somebody_moved_does_not_keep_its_merge_from_being_told():
    commits = (
        made("s", "base"),
        made("m", "base", "s"),
        made("bs", "m", task="b"),
        made("bm", "m", "bs", task="b"),
    )
    found = remains(*commits, tip="bm", a=[attempt("bm", "s")], b=[attempt("m", "bs")])
    assert told_of(found).done == ("a", "b")


def test_runs_are_sorted_by_their_place_and_only_without_one_by_a_clock():
    of_old = remains()
    later = replace(of_old, began=replace(began(), at=NOON + timedelta(days=1)))
    unpinned = replace(of_old, began=None)
    counted = replace(of_old, order=1, began=replace(began(), at=NOON - timedelta(days=9)))
    assert sorted([counted, later, of_old], key=lambda each: each.age) == [of_old, later, counted]
    assert unpinned.age == (0, BASE.at.timestamp(), BASE.at.timestamp())
    assert counted.age == replace(counted, began=None).age, "no clock is looked at"
