"""Of several tasks each one's own file says how it stands (G9 G11 G14)."""

import time

import pytest
from msgspec.structs import replace

from windlass.core.events.values import RunEnd
from windlass.core.plan import Plan, Task, validated
from windlass.core.settings import Settings
from windlass.core.state import Phase, RunState, fold
from windlass.formats import frontmatter, project, writes
from worlds import World
from worlds import writes as playing

FRONT = "---\nid: {}\nstatus: backlog\n---\n# Body\n"
TASKS = (
    Task(id="A", title="A", path="d/A.md"),
    Task(id="B", title="B", path="d/B.md", depends_on=("A",)),
    Task(id="C", title="C", path="d/C.md", depends_on=("B",)),
    Task(id="D", title="D"),
)


def plan(dialect: str) -> Plan:
    path = "d" if dialect == "taskfolder" else "f.yaml"
    return validated(Plan(id="p", title="P", dialect=dialect, path=path, tasks=TASKS))


def texts() -> dict[str, str]:
    files = {task.path: FRONT.format(task.id) for task in TASKS if task.path}
    return {**files, "d": "x", "f.yaml": "id: F\n"}


def world(dialect: str, *, fails: str = "") -> World:
    plays = {task.id: playing(task.id, "1") for task in TASKS}
    return World(
        plan(dialect),
        plays,
        rule=lambda _command, files: fails not in files,
        settings=Settings(checks=("test",), max_turns=1),
    )


def words(state: RunState) -> dict[str, str]:
    made = project(state, texts())
    found = {path: frontmatter.read(path, text or "") for path, text in made.items()}
    return {path: str(each.data["status"]) for path, each in found.items() if each}


@pytest.mark.parametrize("dialect", ["taskfolder", "feature"])
def test_every_file_has_its_own_task(dialect):
    made = world(dialect)
    made.go()
    assert made.state.ended is RunEnd.COMPLETED
    assert writes(made.state.plan) == ("d/A.md", "d/B.md", "d/C.md")
    assert words(made.state) == dict.fromkeys(writes(made.state.plan), "in_review")
    shown = project(made.state, texts())["d/B.md"]
    assert shown is not None
    assert "worktree_path: .windlass/plans/p/workspaces/B\n" in shown
    assert shown.endswith("---\n# Body\n")


def test_what_is_merged_is_in_review_while_others_go_on_and_what_is_not_begun_is_untouched():
    made = world("taskfolder")
    made.go()
    seen = []
    for count in range(1, len(made.events) + 1):
        state = fold(made.events[:count])
        assert state is not None
        found = tuple(words(state).values())
        seen += [found] if seen[-1:] != [found] else []
    assert seen == [
        (),
        ("in_progress",),
        ("in_review",),
        ("in_review", "in_progress"),
        ("in_review", "in_review"),
        ("in_review", "in_review", "in_progress"),
        ("in_review", "in_review", "in_review"),
    ]


def test_what_waits_for_an_abandoned_task_is_blocked():
    made = world("taskfolder", fails="B")
    made.go()
    assert made.state.ended is RunEnd.FAILED
    assert words(made.state) == {"d/A.md": "in_review", "d/B.md": "blocked", "d/C.md": "blocked"}


def test_where_the_whole_is_proved_wrong_nothing_is_in_review():
    made = world("taskfolder")
    made.go()
    red = replace(made.state, ended=RunEnd.NEEDS_HUMAN)
    assert set(words(red).values()) == {"blocked"}


def test_only_what_is_new_is_written():
    made = world("taskfolder")
    made.go()
    first = {path: text for path, text in project(made.state, texts()).items() if text}
    assert project(made.state, {**texts(), **first}) == {}
    crlf = {path: text.replace("\n", "\r\n") for path, text in first.items()}
    assert project(made.state, crlf) == {}, "however its lines end"
    edited = first["d/A.md"].replace("status: in_review", "status: mine")
    assert list(project(made.state, {**first, "d/A.md": edited})) == ["d/A.md"]
    quoted = FRONT.format("A") + first["d/A.md"]
    assert list(project(made.state, {**first, "d/A.md": quoted})) == ["d/A.md"]


def test_the_position_that_an_older_version_wrote_into_the_file_goes():
    made = world("taskfolder")
    made.go()
    new = project(made.state, texts())["d/A.md"] or ""
    old = new.replace("\n---\n", "\n  journal: r1@7\n---\n", 1)
    assert old != new
    assert project(made.state, {**texts(), "d/A.md": old})["d/A.md"] == new


def test_a_file_that_is_gone_or_broken_is_left_alone():
    made = world("feature")
    made.go()
    files = {"d/A.md": "---\nid: 'half\n---\n", "d/B.md": texts()["d/B.md"]}
    assert list(project(made.state, files)) == ["d/B.md"]


def test_a_feature_is_never_written_into_whose_only_task_has_no_file():
    alone = replace(plan("feature"), tasks=(TASKS[3],))
    made = World(alone, {"D": playing("D", "1")})
    made.go()
    assert writes(alone) == ()
    assert project(made.state, texts()) == {}


def test_a_thousand_tasks_that_are_as_they_were_take_no_time():
    made = world("taskfolder")
    made.go()
    state = made.state
    done = state.tasks["A"]
    tasks = [Task(id=f"T{n}", title="T", path=f"d/{n}.md") for n in range(1000)]
    big = replace(
        state,
        plan=replace(state.plan, tasks=tuple(tasks)),
        specs={task.id: task for task in tasks},
        tasks={task.id: replace(done, id=task.id, phase=Phase.MERGED) for task in tasks},
        merged=tuple(task.id for task in tasks),
    )
    written = project(big, {task.path: FRONT.format(task.id) for task in tasks})
    before = time.process_time()
    assert project(big, {path: text for path, text in written.items() if text}) == {}
    assert time.process_time() - before < 2
