"""execute-state.json in the tasks folder, field by field as the seed has it (X2 X3 X9)."""

import json
import re
from datetime import timedelta

import pytest
from msgspec.structs import replace

from windlass.adapters.git.checkout_git_dir import BRANCH
from windlass.core.events.review import Issue, Review, TestResults
from windlass.core.events.values import RunEnd
from windlass.core.plan import Plan, Stage, Task, validated
from windlass.core.settings import Settings
from windlass.core.state import RunState, fold
from windlass.core.state.transitions import STATUS
from windlass.formats import project, writes
from windlass.formats.layers import state as layers_state
from windlass.ports import Report
from worlds import World
from worlds import writes as writing

FOLDER = "docs/tasks/slack"
PATH = f"{FOLDER}/execute-state.json"

# The fields of the seed's example, in its order; a task's and a layer's from all it shows of them.
FIELDS = [
    "schema_version", "prd_slug", "project_path", "worktree_dir", "tasks_path", "status",
    "current_layer", "current_batch", "started_at", "updated_at", "completed_at", "layers", "tasks",
    "merge_queue", "metrics",
]  # fmt: skip
LAYER = [
    "status", "tasks_total", "tasks_completed", "tasks_failed", "started_at", "completed_at",
]  # fmt: skip
TASK = [
    "status", "attempts", "worktree_path", "branch", "commits", "errors", "retry_feedback",
    "merged_at",
]  # fmt: skip
METRICS = [
    "total_tasks", "completed_tasks", "failed_tasks", "total_attempts", "total_commits",
    "elapsed_time_seconds",
]  # fmt: skip
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
GLOBAL_WORDS = {"pending", "in_progress", "completed", "stopped", "abandoned"}
TASK_WORDS = {
    "pending", "in_progress", "verifying", "verified", "merging", "completed", "failed",
    "abandoned",
}  # fmt: skip


def plan_of(*tasks: Task) -> Plan:
    stages = tuple(Stage(name=name) for name in dict.fromkeys(task.stage or "" for task in tasks))
    return validated(
        Plan(id="slack", title="S", dialect="layers", path=FOLDER, tasks=tasks, stages=stages)
    )


def task(task_id: str, stage: str, *depends_on: str, **more) -> Task:
    return Task(id=task_id, title=task_id, stage=stage, depends_on=depends_on, **more)


def seeds_world(**settings) -> World:
    """The seed's run in small: a layer is done, then one task at once and one with a fix."""
    tasks = (
        task("L0-001", "0-setup"),
        task("L2-001", "2-backend", "L0-001"),
        task("L2-002", "2-backend", "L0-001"),
        task("L2-003", "2-backend", "L2-001", "L2-002"),
    )

    def play(n: int, turn: int, files: dict[str, str]) -> Report | None:
        files["b"] = f"turn {turn}"
        return None

    def coach(task_id: str, turn: int, _files) -> Review | None:
        if task_id != "L2-002" or turn > 1:
            return None
        said = "expected 201 got 422\nAdd min_length=1 to hunter2"
        issue = Issue(severity="must_fix", category="bug", description=said)
        red = TestResults(passed=False)
        return Review(
            decision="feedback",
            summary="",
            test_results=red,
            evidence=(),
            issues=(issue,),
            feedback=said,
        )

    plays = {each.id: writing(each.id, "1") for each in tasks} | {"L2-002": play}
    return World(
        plan_of(*tasks), plays, coach=coach, settings=Settings(checks=("test",), **settings)
    )


def told(state: RunState, redact=str) -> dict:
    files = project(state, {}, redact)
    assert list(files) == [PATH] == list(writes(state.plan))
    text = files[PATH]
    assert text is not None
    assert text.endswith("}\n")
    return json.loads(text)


def at(world: World, wanted) -> dict:
    """What is told at the first position where `wanted` holds."""
    for count in range(1, len(world.events) + 1):
        state = fold(world.events[:count])
        assert state is not None
        if wanted(found := told(state)):
            return found
    raise AssertionError


def test_every_field_of_the_seeds_example():
    world = seeds_world()
    world.go()
    world_state = world.state
    data = told(world_state, lambda text: text.replace("hunter2", "***"))

    assert list(data) == FIELDS
    assert data["schema_version"] == "2.0"
    assert data["prd_slug"] == "slack"
    assert (data["project_path"], data["tasks_path"]) == (".", FOLDER)
    assert data["worktree_dir"] == ".windlass/plans/slack/workspaces"
    assert (data["status"], data["current_layer"]) == ("completed", "2-backend")
    assert data["current_batch"] == 2, "two began together, the third when they were merged"
    for key in ("started_at", "updated_at", "completed_at"):
        assert TIME.fullmatch(data[key])
    assert list(data["layers"]) == ["0-setup", "2-backend"]
    backend = data["layers"]["2-backend"]
    assert list(backend) == LAYER
    assert backend["status"] == "completed"
    assert [backend[key] for key in LAYER[1:4]] == [3, 3, 0]
    assert TIME.fullmatch(backend["started_at"])
    assert TIME.fullmatch(backend["completed_at"])

    first, second = data["tasks"]["L2-001"], data["tasks"]["L2-002"]
    assert list(first) == list(second) == TASK
    assert (first["status"], first["attempts"]) == ("completed", 1)
    assert (first["worktree_path"], first["branch"]) == (None, None), "it is merged"
    [commit] = first["commits"]
    assert list(commit) == ["hash", "type", "attempt", "created_at"]
    [attempt] = world_state.tasks["L2-001"].attempts
    assert commit["hash"] == attempt.commit
    assert (commit["type"], commit["attempt"]) == ("implementation", 1)
    assert TIME.fullmatch(commit["created_at"])
    assert (first["errors"], first["retry_feedback"]) == ([], [])
    assert TIME.fullmatch(first["merged_at"])

    assert (second["status"], second["attempts"]) == ("completed", 2)
    kinds = [(each["type"], each["attempt"]) for each in second["commits"]]
    assert kinds == [("implementation", 1), ("fix", 2)]
    [error] = second["errors"]
    assert list(error) == ["attempt", "message", "details", "timestamp"]
    assert error["attempt"] == 1
    assert "\n" not in error["message"]
    assert "Add min_length=1 to ***" in f"{error['message']}\n{error['details']}"
    assert TIME.fullmatch(error["timestamp"])
    [retry] = second["retry_feedback"]
    assert list(retry) == ["attempt", "feedback"]
    assert retry["attempt"] == 2
    assert "Add min_length=1 to ***" in retry["feedback"]


def test_the_queue_and_the_figures_of_the_seeds_example():
    world = seeds_world()
    world.go()
    data = told(world.state)
    queue = data["merge_queue"]
    assert [list(each) for each in queue] == [["task_id", "priority", "status"]] * 3
    assert [each["task_id"] for each in queue] == ["L2-001", "L2-002", "L2-003"]
    assert [each["priority"] for each in queue] == [1, 2, 3]
    assert {each["status"] for each in queue} == {"merged"}

    assert list(data["metrics"]) == METRICS
    elapsed = int((world.state.at - world.state.started_at).total_seconds())
    assert list(data["metrics"].values()) == [4, 4, 0, 5, 5, elapsed]


def test_while_it_runs_it_says_where_each_task_is():
    world = seeds_world()
    world.go()
    begun = at(world, lambda data: data["tasks"]["L2-002"]["status"] == "in_progress")
    assert (begun["status"], begun["current_layer"]) == ("in_progress", "2-backend")
    assert (begun["current_batch"], begun["completed_at"]) == (1, None)
    assert begun["layers"]["0-setup"]["status"] == "completed"
    assert begun["layers"]["2-backend"]["status"] == "in_progress"
    assert begun["layers"]["2-backend"]["completed_at"] is None
    running = begun["tasks"]["L2-002"]
    assert running["worktree_path"] == ".windlass/plans/slack/workspaces/L2-002"
    assert running["branch"] == BRANCH == layers_state.BRANCH
    assert begun["tasks"]["L2-003"] == {
        "status": "pending", "attempts": 0, "worktree_path": None, "branch": None, "commits": [],
        "errors": [], "retry_feedback": [], "merged_at": None,
    }  # fmt: skip

    returned = at(world, lambda data: data["tasks"]["L2-002"]["status"] == "failed")
    assert returned["tasks"]["L2-002"]["retry_feedback"][0]["attempt"] == 2
    assert (
        returned["metrics"]["failed_tasks"] == returned["layers"]["2-backend"]["tasks_failed"] == 1
    )

    ready = at(world, lambda data: data["tasks"]["L2-001"]["status"] == "verified")
    words = {each["task_id"]: each["status"] for each in ready["merge_queue"]}
    assert words == {"L2-001": "ready", "L2-002": "pending"}
    merging = at(world, lambda data: data["tasks"]["L2-001"]["status"] == "merging")
    assert merging["merge_queue"][0]["status"] == "merging"


def test_before_the_first_task_nothing_is_under_way():
    world = seeds_world()
    world.go()
    state = fold(world.events[:1])
    assert state is not None
    data = told(state)
    assert (data["status"], data["current_layer"], data["current_batch"]) == ("pending", None, 0)
    assert data["merge_queue"] == []
    assert {layer["status"] for layer in data["layers"].values()} == {"pending"}
    assert data["layers"]["0-setup"]["started_at"] is None


def test_only_the_seeds_words_are_used_at_every_step():
    world = seeds_world()
    world.go()
    lives: dict[str, list[str]] = {}
    for count in range(1, len(world.events) + 1):
        state = fold(world.events[:count])
        assert state is not None
        data = told(state)
        assert data["status"] in GLOBAL_WORDS
        assert {each["status"] for each in data["layers"].values()} <= {
            "pending", "in_progress", "completed",
        }  # fmt: skip
        for task_id, entry in data["tasks"].items():
            life = lives.setdefault(task_id, [])
            life += [entry["status"]] if life[-1:] != [entry["status"]] else []
    clean = ["pending", "in_progress", "verifying", "verified", "merging", "completed"]
    assert lives["L2-001"] == clean
    assert lives["L2-002"] == [*clean[:3], "failed", *clean[1:]]
    assert set(layers_state._STATUS) == set(STATUS.values())
    assert set(layers_state._STATUS.values()) == TASK_WORDS


def test_a_task_that_used_up_its_attempts():  # X5
    tasks = (task("L0-001", "0-setup"), task("L1-001", "1-next", "L0-001"))
    world = World(
        plan_of(*tasks),
        {"L0-001": lambda *_: None, "L1-001": writing("a", "1")},
        settings=Settings(checks=("test",), max_turns=2),
    )
    world.go()
    data = told(world.state)
    assert (data["status"], data["completed_at"]) == ("abandoned", None)
    gone = data["tasks"]["L0-001"]
    assert (gone["status"], gone["attempts"], gone["commits"]) == ("abandoned", 2, [])
    assert gone["worktree_path"].endswith("/L0-001"), "its workspace is kept"
    assert [error["attempt"] for error in gone["errors"]] == [1, 2]
    assert [retry["attempt"] for retry in gone["retry_feedback"]] == [2]
    assert data["merge_queue"] == []
    assert data["layers"]["0-setup"]["status"] == "in_progress"
    assert data["metrics"]["failed_tasks"] == 1
    assert data["tasks"]["L1-001"]["status"] == "pending"


def test_a_task_that_waits_for_a_person_before_it_begins_is_pending():
    world = World(plan_of(task("L0-001", "0-setup", complexity=9)), {"L0-001": writing("a", "1")})
    world.go()
    data = told(world.state)
    assert data["status"] == "stopped"
    assert data["tasks"]["L0-001"]["status"] == "pending"


@pytest.mark.parametrize(
    ("ended", "word"),
    [
        (None, "in_progress"),
        (RunEnd.COMPLETED, "completed"),
        (RunEnd.FAILED, "stopped"),  # a red tip: nobody gave a task up
        (RunEnd.NEEDS_HUMAN, "stopped"),
        (RunEnd.STOPPED, "stopped"),
        (RunEnd.LIMIT, "stopped"),
        (RunEnd.ABANDONED, "abandoned"),
    ],
)
def test_the_runs_word(ended, word):
    world = seeds_world()
    world.go()
    assert told(replace(world.state, ended=ended))["status"] == word


def test_time_is_told_in_whole_seconds_of_utc():
    world = seeds_world()
    world.go()
    at = world.state.started_at + timedelta(minutes=15, seconds=0.9)
    later = replace(world.state, at=at, ended_at=at)
    data = told(later)
    assert data["metrics"]["elapsed_time_seconds"] == 900
    assert data["updated_at"] == f"{later.at:%Y-%m-%dT%H:%M:%SZ}"


def test_an_interrupted_player_is_an_error_and_no_attempt_of_its_own():
    names = seeds_world().go().names
    world = seeds_world()
    world.go(crash_at=names.index("agent:during") + 1)
    world.go()
    entry = told(world.state)["tasks"]["L0-001"]
    assert (entry["status"], entry["attempts"]) == ("completed", 1)
    assert [error["attempt"] for error in entry["errors"]] == [1]
    assert entry["errors"][0]["details"] is None
    assert entry["retry_feedback"] == []
