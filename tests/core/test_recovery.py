"""What is added to a journal from its pins alone, where pins are odd, few, or not the run's."""
# X10

from datetime import timedelta

import pytest
from msgspec.structs import replace

from windlass.core.events import codec
from windlass.core.events import model as e
from windlass.core.events import segments as form
from windlass.core.events.review import Review, TestResults
from windlass.core.events.segments import Mark
from windlass.core.plan import Plan, Task, digest_of
from windlass.core.scheduler.recovery import adopted, put_back
from windlass.core.settings import Settings
from windlass.core.state import Phase, RunState, apply
from windlass.core.state.remains import Kept, Made, Remains, attempts_of
from windlass.errors import JournalDamaged, JournalError, RepositoryError
from worlds import NOON, plan_of

A, B = Task(id="a", title="a"), Task(id="b", title="b")
PLAN = plan_of(A, B)
APPROVED = Review(
    decision="approve", summary="well", test_results=TestResults(passed=True), evidence=()
)


def begun(plan: Plan = PLAN) -> RunState:
    return apply(
        None,
        e.RunStarted(
            at=NOON,
            run="r1",
            plan=plan,
            settings=Settings(checks=("test",)),
            base="base",
            base_branch="main",
            sandbox="none",
            version="0",
        ),
    )


def after(state: RunState, *facts: e.Event) -> RunState:
    for fact in facts:
        state = apply(state, fact)
    return state


def started(n: int = 1, start: str = "base") -> e.PlayerStarted:
    return e.PlayerStarted(at=NOON, task="a", n=n, turn=n, start=start)


def saved(commit: str, n: int = 1) -> tuple[e.Event, ...]:
    return (
        e.PlayerFinished(at=NOON, task="a", n=n, summary="", usage=e.Usage()),
        e.SnapshotStarted(at=NOON, task="a", n=n, kind="snapshot"),
        e.SnapshotTaken(
            at=NOON, task="a", n=n, kind="snapshot", commit=commit, tree="t", changed=True
        ),
    )


def approved(commit: str) -> tuple[e.Event, ...]:
    return (
        e.CoachStarted(at=NOON, task="a", n=1, k=1, commit=commit),
        e.CoachAnswered(
            at=NOON, task="a", n=1, k=1, commit=commit, review=APPROVED, usage=e.Usage()
        ),
        e.TaskApproved(at=NOON, task="a", commit=commit, checked=True),
    )


def made(commit: str, *parents: str, task: str = "a", run: str = "r1") -> Made:
    at = NOON + timedelta(seconds=len(commit))
    return Made(commit=commit, tree=f"tree of {commit}", parents=parents, at=at, run=run, task=task)


MERGE = (made("s", "base"), made("m", "base", "s"))


def remains(*commits: Made, tip: str | None = "base", **tasks) -> Remains:
    """Pins of tasks, each a list of its attempts in order."""
    return Remains(
        run="r1",
        base="base",
        tip=tip,
        commits={each.commit: each for each in (made("base", run=""), *commits)},
        attempts={
            id_: {n: replace(kept, n=n) for n, kept in enumerate(attempts, 1)}
            for id_, attempts in tasks.items()
        },
    )


def attempt(start: str, commit: str | None = None, **more) -> Kept:
    kind = "snapshot" if commit is not None else None
    return Kept(**{"n": 0, "start": start, "commit": commit, "kind": kind, **more})


def with_all(state: RunState, found: Remains) -> RunState:
    facts = adopted(state, found, NOON)
    assert facts
    state = after(state, *facts)
    assert state.ended is e.RunEnd.STOPPED
    assert not state.spent.known
    return state


def test_where_git_shows_nothing_more_nothing_is_added():
    assert adopted(begun(), remains(), NOON) == ()
    assert adopted(begun(), remains(tip=None), NOON) == ()
    known = after(begun(), started(), *saved("s"))
    assert adopted(known, remains(*MERGE, a=[attempt("base", "s")]), NOON) == ()


def test_a_tip_that_is_not_the_runs_is_refused():
    with pytest.raises(RepositoryError, match="does not lead back to base"):
        adopted(begun(), remains(made("x", task="", run=""), tip="x"), NOON)
    theirs = remains(made("x", "base", task="", run=""), tip="x")
    with pytest.raises(RepositoryError, match="which is no merge of it; put the tip back to base"):
        adopted(begun(), theirs, NOON)


def test_a_tip_that_was_put_back_is_known_as_such():
    merged = with_all(begun(), remains(*MERGE, tip="m"))
    assert put_back(merged, remains(*MERGE))
    assert not put_back(merged, remains(*MERGE, tip="m"))
    assert not put_back(merged, remains(tip=None))
    assert adopted(merged, remains(*MERGE), NOON) == ()


def test_a_move_that_was_announced_is_left_to_the_one_who_resumes():
    known = after(
        begun(),
        started(),
        *saved("s"),
        *approved("s"),
        e.MergeStarted(at=NOON, task="a", candidate=1, commit="s", onto="base"),
        e.MergeBuilt(at=NOON, task="a", candidate=1, commit="m", tree="t"),
        e.TipMoveStarted(at=NOON, tasks=("a",), commit="m", tip="base"),
    )
    found = replace(remains(*MERGE, tip="m", a=[attempt("base", "s")]), candidates={1: "m"})
    assert adopted(known, found, NOON) == ()
    more = (made("bs", "m", task="b"), made("bm", "m", "bs", task="b"))
    further = remains(*MERGE, *more, tip="bm", a=[attempt("base", "s")])
    assert with_all(known, further).done == ("a", "b"), "and beyond it all of it is told"


def test_a_number_that_is_pinned_is_never_used_again():
    found = replace(remains(made("red", "base", "s")), candidates={7: "red"})
    assert with_all(begun(), found).candidates == 7


def test_tasks_that_no_plan_has_are_kept_where_merged_and_withdrawn_where_not():
    found = remains(
        made("s", "base", task="x"),
        made("m", "base", "s", task="x"),
        tip="m",
        x=[attempt("base", "s")],
        y=[attempt("m")],
    )
    state = with_all(begun(), found)
    assert state.tip == "m"
    assert state.tasks["x"].merge_commit == "m"
    assert state.tasks["x"].candidate == 1, "a merge whose pin is gone gets a number"
    assert len(state.withdrawn["y"].attempts) == 1


def test_a_merge_is_left_of_a_task_whose_pins_are_gone():
    state = with_all(begun(), remains(*MERGE, tip="m"))
    assert state.tasks["a"].phase is Phase.MERGED
    assert "lost" in (state.tasks["a"].last.coachings[-1].review or APPROVED).summary


def test_a_verdict_that_is_pinned_is_told_with_its_merge():
    judged = attempt("base", "s", reviews={1: APPROVED})
    state = with_all(begun(), remains(*MERGE, tip="m", a=[judged]))
    assert state.tasks["a"].last.coachings[-1].review == APPROVED


@pytest.mark.parametrize(
    "known",
    [
        (started(),),
        (started(), *saved("s")[:1]),
        (started(), *saved("s")),
        (started(), *saved("s"), *approved("s")),
    ],
)
def test_from_wherever_the_journal_ends_the_merge_is_of_the_same_attempt(known):
    found = remains(*MERGE, tip="m", a=[attempt("base", "s")])
    task = with_all(after(begun(), *known), found).tasks["a"]
    assert (task.phase, len(task.attempts), task.turn) == (Phase.MERGED, 1, 1)


@pytest.mark.parametrize("text", ["", digest_of(A), "of another text"])
def test_a_merge_for_a_text_that_is_not_known_is_stale(text: str):
    found = remains(MERGE[0], replace(MERGE[1], text=text), tip="m", a=[attempt("base", "s")])
    state = with_all(begun(), found)
    assert state.is_stale("a") == (text == "of another text")
    assert state.in_tip == ("a",)


def test_a_player_that_changed_nothing_may_be_the_one_that_was_merged():
    unchanged = attempt("s", turn=1)
    found = remains(*MERGE, tip="m", a=[attempt("base", "s", turn=1), unchanged])
    state = with_all(begun(), found)
    assert state.tasks["a"].phase is Phase.MERGED
    assert len(state.tasks["a"].attempts) == 2


def test_a_player_that_begins_after_a_merge_was_asked_for_again():
    found = remains(*MERGE, tip="m", a=[attempt("base", "s"), attempt("m", turn=2)])
    state = with_all(begun(), found)
    assert state.tasks["a"].phase is Phase.FAILED
    assert state.tasks["a"].merge_before == "m"
    assert state.tasks["a"].turn == 2


def test_turns_count_on_and_conflicts_use_none():
    later = [attempt("base", "s"), attempt("s", "t", turn=2), attempt("t", onto="base", turn=2)]
    task = with_all(begun(), remains(*MERGE, made("t", "s"), a=later)).tasks["a"]
    assert [each.turn for each in task.attempts] == [1, 2, 2]
    assert (task.turn, task.rounds, task.phase) == (2, 1, Phase.FAILED)
    assert task.head == "t", "the next one goes on from there"


def test_the_next_start_shows_the_work_whose_pin_is_gone():
    later = [attempt("base"), attempt("s", turn=2)]
    for known in (begun(), after(begun(), started()), after(begun(), started(), *saved("s")[:1])):
        task = with_all(known, remains(*MERGE, a=later)).tasks["a"]
        first, second = task.attempts
        assert (first.commit, first.kind, first.changed) == ("s", "snapshot", True)
        assert first.feedback, "its turn was returned"
        assert (second.start, second.turn, task.turn) == ("s", 2, 2)


def test_the_next_start_of_the_same_turn_shows_work_that_was_interrupted():
    found = remains(*MERGE, a=[attempt("base"), attempt("s", turn=1)])
    task = with_all(begun(), found).tasks["a"]
    assert (task.attempts[0].commit, task.attempts[0].kind) == ("s", "partial")
    assert [each.turn for each in task.attempts] == [1, 1]


def test_a_commit_names_the_turn_of_a_start_whose_pins_are_gone():
    second = replace(made("t", "s"), turn=2)
    pins = {1: attempt("base", "s", n=1), 3: attempt("t", n=3, turn=3)}
    found = replace(remains(*MERGE, second), attempts={"a": pins})
    task = with_all(begun(), found).tasks["a"]
    assert [each.turn for each in task.attempts] == [1, 2, 3]
    assert (task.attempts[1].commit, task.attempts[1].kind) == ("t", "snapshot")


def test_a_turn_that_changed_nothing_was_a_turn():
    later = [attempt("base", "s"), attempt("s", turn=2), attempt("s", turn=3)]
    task = with_all(begun(), remains(*MERGE, a=later)).tasks["a"]
    assert [each.turn for each in task.attempts] == [1, 2, 3]
    assert [each.kind for each in task.attempts] == ["snapshot", "snapshot", "partial"]
    [first, second] = [each.feedback for each in task.attempts if each.feedback is not None]
    assert first != second, "two answers that are not known are not the same answer twice"


def test_a_start_with_a_tip_to_merge_shows_that_the_work_before_it_was_approved():
    later = [attempt("base"), attempt("s", onto="base", turn=1), attempt("s", onto="base", turn=1)]
    task = with_all(begun(), remains(*MERGE, a=later)).tasks["a"]
    assert [each.kind for each in task.attempts] == ["snapshot", "partial", "partial"]
    assert (task.rounds, task.turn) == (1, 1), "the round was interrupted, and repeated"


@pytest.mark.parametrize("start", ["m", "b", "earlier", None])
def test_a_start_from_anything_but_the_tasks_work_shows_nothing_of_it(start: str | None):
    pins = {1: attempt("base", n=1), 2: Kept(n=2, start=start, turn=2)}
    others = (made("b", "base", task="b"), made("earlier", run="r0"))
    found = replace(remains(*MERGE, *others, tip="m"), attempts={"a": pins, "b": {}})
    assert attempts_of(found, "a", "base") == pins


def test_a_run_that_is_recovered_keeps_its_settings_and_where_they_came_from():
    before = after(
        begun(),
        e.RunResumed(
            at=NOON,
            settings=Settings(agents=3),
            sandbox="bwrap",
            metered=True,
            coach_commands=False,
            base_moved_to="moved",
            configured=(e.Configured(key="agents", value="3"),),
        ),
    )
    recovered = with_all(before, remains(a=[attempt("base")]))
    stretch = {"at", "only", "passes_checkpoints", "found"}
    for field in set(e.RunResumed.__struct_fields__) - stretch:
        assert getattr(recovered, field) == getattr(before, field), field


def test_what_stood_in_the_way_of_a_player_that_started_is_over():
    asked = e.HelpNeeded(at=NOON, task="a", question="how?")
    found = remains(*MERGE, a=[attempt("base", "s")])
    assert with_all(after(begun(), asked), found).tasks["a"].phase is Phase.SAVED
    taken = e.TaskTaken(at=NOON, task="a", n=1, turn=1, start="base", onto=None, by="ada")
    beyond = remains(*MERGE, a=[attempt("base"), attempt("base", "s")])
    task = with_all(after(begun(), taken), beyond).tasks["a"]
    assert (task.phase, len(task.attempts)) == (Phase.SAVED, 2)


def test_segments_prove_themselves_and_follow_each_other():
    records = [b'{"n":1}', b'{"n":2}', b'{"n":3}']
    first, one = form.write("p", records[:1], Mark())
    second, two = form.write("p", records[1:], one)
    assert first.startswith(b"Journal of p: records 1 to 1\n\n")
    assert form.read(second, one) == (records[1:], two)
    assert form.end_of(second) == two
    for broken in (second, first.replace(b'"n":1', b'"n":2'), b"", first[:-9]):
        with pytest.raises(JournalError):
            form.read(broken, Mark())
    with pytest.raises(JournalError, match="without its hash"):
        form.end_of(b'{"n":1}\n')
    assert two.hash == codec.chain(Mark().after(records[:2]).hash, records[2])


def test_segments_give_the_journal_in_any_order_and_up_to_what_is_missing():
    records = [b'{"n":%d}' % n for n in range(9)]
    mark, texts = Mark(), list[bytes]()
    for part in (records[:2], records[2:3], records[3:9]):
        text, mark = form.write("p", part, mark)
        texts.append(text)
    shorter, _ = form.write("p", records[3:5], Mark().after(records[:3]))
    forged = texts[1].replace(b'"n":2', b'"n":7')
    other, _ = form.write("q", [b"{}"], Mark())
    assert form.assemble("p", [other, shorter, forged, *reversed(texts)]) == (records, mark)
    assert form.assemble("p", [texts[0], texts[2]])[0] == records[:2]
    assert form.assemble("p", texts[1:]) == ([], Mark())


def test_a_long_journal_is_split_into_segments_of_a_bounded_size():
    records = [b"x" * (form.SEGMENT_BYTES // 3)] * 7
    assert [len(part) for part in form.split(records)] == [4, 3]
    assert list(form.split([])) == []


def test_a_journal_that_is_behind_its_mirror_or_another_is_refused():
    records = [b"1", b"2"]
    form.refuse_other("p", [*records, b"3"], Mark().after(records))
    with pytest.raises(JournalDamaged, match="is behind: it ends at 1, its mirror in git at 2"):
        form.refuse_other("p", records[:1], Mark().after(records))
    with pytest.raises(JournalDamaged, match="not the one that is mirrored in git"):
        form.refuse_other("p", [b"1", b"x"], Mark().after(records))
