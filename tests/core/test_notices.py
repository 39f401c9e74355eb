"""What is worth a word to a person who is not looking."""  # K10

from datetime import timedelta

import pytest

from windlass.core.events import model as e
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.core.state import apply
from windlass.ports import Notice, Report
from windlass.views.notices import notice_of
from worlds import NOON, World, plan_of, writes

TITLE = 'Quote "it" and $(touch x)'
A, B = Task(id="a", title=TITLE), Task(id="b", title="Second", depends_on=("a",))
STALLED = Report(failure=e.Failure.STALLED, message="no")


def notices(world: World) -> list[Notice]:
    found, state = [], None
    for event in world.events:
        state = apply(state, event)
        found.append(notice_of(event, state))
    return [notice for notice in found if notice is not None]


def test_one_word_when_it_is_done():
    world = World(plan_of(A, B), {"a": writes("a", "1"), "b": writes("b", "1")})
    world.go()
    (notice,) = notices(world)
    assert (notice.kind, notice.title) == ("done", "Done: P")
    assert (notice.plan, notice.run, notice.task) == ("p", "r1", "")
    assert notice.text.startswith("2 tasks: 2 completed · ")
    assert notice.text.endswith(" · $0.03 spent")


def test_a_question_is_passed_on_once_and_as_it_is():
    world = World(plan_of(A), {"a": lambda *_: STALLED})
    world.go()
    (notice,) = notices(world)
    assert notice.kind == "human"
    assert notice.title == f"Needs you: a {TITLE} · P"
    assert "windlass status p" in notice.text
    assert notice.task == "a"
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN


def test_a_run_that_waits_for_a_person_without_a_question_of_a_task():
    world = World(plan_of(A), {}, rule=lambda *_: False)
    world.go()
    (notice,) = notices(world)
    assert (notice.kind, notice.title) == ("human", "Needs you: P")
    assert notice.text.splitlines()[-1].startswith("1 task: 1 pending")


def test_a_failure_is_told_with_the_end_or_at_once_where_others_go_on():
    alone = World(plan_of(A), {"a": lambda *_: None}, settings=Settings(max_turns=1))
    alone.go()
    assert [(n.kind, n.title) for n in notices(alone)] == [("failed", "Failed: P")]
    others = World(
        plan_of(A, Task(id="c", title="c"), dialect="feature"),
        {"a": lambda *_: None, "c": writes("c", "1")},
        settings=Settings(max_turns=1),
    )
    others.go()
    kinds = [(n.kind, n.task) for n in notices(others)]
    assert kinds == [("failed", "a"), ("failed", "")]


def test_a_limit_that_several_wait_for_is_told_once():
    limit = Report(
        failure=e.Failure.USAGE_LIMIT, message="limit", retry_at=NOON + timedelta(hours=1)
    )
    left = {"a": [limit], "c": [limit]}

    def play(task: str):
        def work(_n: int, _turn: int, files: dict[str, str]) -> Report | None:
            files[task] = "1"
            return left[task].pop() if left[task] else None

        return work

    tasks = (A, Task(id="c", title="c"))
    world = World(plan_of(*tasks), {t.id: play(t.id) for t in tasks}, settings=Settings(agents=2))
    world.clock.time = NOON
    world.go()
    first, *rest = notices(world)
    assert (first.kind, first.task) == ("limit", "a")
    assert "until 13:00:00Z" in first.text
    assert [n.kind for n in rest] == ["done"]


def test_money_that_is_used_up_is_a_limit_too():
    spent = Report(failure=e.Failure.BUDGET, message="no")
    world = World(plan_of(A), {"a": lambda *_: spent})
    world.go()
    (notice,) = notices(world)
    assert (notice.kind, notice.title) == ("limit", "Limit: P")


@pytest.mark.parametrize(
    "status", [e.RunEnd.STOPPED, e.RunEnd.PAUSED, e.RunEnd.ABORTED, e.RunEnd.ABANDONED]
)
def test_nobody_is_told_what_they_did_themselves(status: e.RunEnd):
    world = World(plan_of(A), {"a": writes("a", "1")})
    world.go()
    begun = world.events[0]
    ended = e.RunEnded(at=NOON, status=status)
    assert notice_of(ended, apply(apply(None, begun), ended)) is None
