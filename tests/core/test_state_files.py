"""Every format writes its state files for every end of a run and every phase of a task."""

import json
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from formats import FEATURE, SPEC, SPECKIT, STATE_MD, TASK, XML
from windlass.core.events.values import RunEnd
from windlass.core.state import Phase, RunState
from windlass.formats import DIALECTS, load, project, writes
from worlds import World
from worlds import writes as writing

PLANS: dict[str, tuple[str, Mapping[str, str]]] = {
    "milestone": ("p.md", {"p.md": "## Task 1: a\n\n## Task 2: b\n"}),
    "taskfile": ("T.md", {"T.md": TASK.format(id="T", more="")}),
    "taskfolder": (
        "t",
        {f"t/{n}.md": TASK.format(id=f"TASK-{n}", more=f"wave: {n}\n") for n in (1, 2)},
    ),
    "feature": (
        "f.yaml",
        {
            "f.yaml": FEATURE,
            **{f"tasks/backlog/TASK-{n}.md": TASK.format(id=f"TASK-{n}", more="") for n in (1, 2)},
        },
    ),
    "spec": ("S.md", {"S.md": SPEC, ".specflow/STATE.md": STATE_MD}),
    "layers": (
        "t",
        {f"t/{n}-l/L{n}-001.xml": XML.format(id=f"L{n}-001", layer=f"{n}-l") for n in (0, 1)},
    ),
    "speckit": ("tasks.md", {"tasks.md": SPECKIT}),
}


@pytest.fixture(scope="module")
def runs() -> dict[str, RunState]:
    """A completed run of a small plan in each format."""
    return {name: _completed(*plan) for name, plan in PLANS.items()}


def _completed(path: str, texts: Mapping[str, str]) -> RunState:
    plan = load(path, {each: text for each, text in texts.items() if not each.endswith("STATE.md")})
    world = World(plan, {task.id: writing(task.id, "1") for task in plan.tasks})
    world.go()
    assert world.state.ended is RunEnd.COMPLETED
    return world.state


def shown(name: str, state: RunState) -> dict[str, str | None]:
    """What the format's files say, each of which must be one that it may write."""
    made = project(state, PLANS[name][1])
    assert made.keys() <= set(writes(state.plan))
    for path, text in made.items():
        assert text is None or not path.endswith(".json") or json.loads(text)
    return made


def test_there_is_a_plan_of_every_format():
    assert PLANS.keys() == {each.name for each in DIALECTS}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("end", [None, *RunEnd])
def test_for_every_end_of_a_run(runs, name: str, end: RunEnd | None):  # X5 S3
    shown(name, replace(runs[name], ended=end))


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("end", [None, RunEnd.PAUSED, RunEnd.ABORTED])
def test_for_every_phase_of_a_task(runs, name: str, phase: Phase, end: RunEnd | None):  # X5
    state = runs[name]
    first = next(iter(state.tasks))
    tasks = {**state.tasks, first: replace(state.tasks[first], phase=phase)}
    shown(name, replace(state, tasks=tasks, ended=end))


@pytest.mark.parametrize(
    ("end", "word"),
    [(RunEnd.PAUSED, "stopped"), (RunEnd.STOPPED, "stopped"), (RunEnd.ABORTED, "abandoned")],
)
def test_a_layers_plan_at_rest_has_a_word(runs, end: RunEnd, word: str):
    text = shown("layers", replace(runs["layers"], ended=end))["t/execute-state.json"]
    assert json.loads(text or "")["status"] == word


@pytest.mark.parametrize(
    ("end", "word"),
    [(RunEnd.PAUSED, "Paused"), (RunEnd.ABORTED, "Failed"), (RunEnd.ABANDONED, "Failed")],
)
def test_the_table_of_specs_has_a_word(runs, end: RunEnd, word: str):
    text = shown("spec", replace(runs["spec"], ended=end))[".specflow/STATE.md"]
    assert f" {word}" in (text or "")
