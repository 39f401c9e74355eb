"""In which order a spec-kit list is done: by its marks, and by what it declares (B10)."""

import pytest

from windlass.core.plan import Plan
from windlass.errors import PlanError
from windlass.formats import load
from windlass.formats.speckit.order import declared, stated


def read(*lines: str) -> Plan:
    return load("tasks.md", "\n".join(["# Tasks: X", "", *lines, ""]))


def waits(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {task.id: task.depends_on for task in plan.tasks}


def test_neighbours_with_the_mark_run_beside_each_other():
    plan = read("## Phase 1", "- [ ] T1 a", "- [ ] T2 [P] b", "- [ ] T3 c [P]", "- [ ] T4 d",
                "- [ ] T5 e", "- [ ] T6 [P, US1] f", "- [ ] T7 [parallel] g", "- [ ] T8 [P?] h",
                "## Phase 2", "- [ ] T9 [P] i", "- [ ] T10 [P] j")  # fmt: skip
    assert waits(plan) == {
        "T1": (),
        "T2": ("T1",),
        "T3": ("T1",),
        "T4": ("T2", "T3"),
        "T5": ("T4",),
        "T6": ("T5",),
        "T7": ("T5",),
        "T8": ("T6", "T7"),
        "T9": (),  # the barrier between phases is the stages', and no dependency
        "T10": (),
    }


def test_a_heading_inside_a_phase_ends_a_step():
    plan = read("## Phase 1", "### Tests", "- [ ] T1 [P] a", "- [ ] T2 [P] b",
                "### Implementation", "- [ ] T3 [P] c", "- [ ] T4 [P] d")  # fmt: skip
    assert waits(plan) == {"T1": (), "T2": (), "T3": ("T1", "T2"), "T4": ("T1", "T2")}


def test_a_step_of_very_many_waits_through_its_first_task():
    tasks = [f"- [ ] T{n:03} [P] a" for n in range(120)]
    plan = read("## Phase 1", "### A", *tasks[:60], "### B", *tasks[60:])
    found = waits(plan)
    assert len(found["T060"]) == 60
    assert {found[f"T{n:03}"] for n in range(61, 120)} == {("T060",)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("(depends on T1, T2)", [("", "T1, T2")]),
        ("(depends on T1–T3 and T5)", [("", "T1–T3 and T5")]),  # noqa: RUF001
        ("**Depends on T1** (done first)", [("", "T1 (done first)")]),
        ("**Dependencies**: Requires T3 (x), T4", [("", "T3 (x), T4")]),
        ("[deps:T1] a", [("", "T1")]),
        ("T9 depends on T1", [("T9", "T1")]),
        ("does not depend on T1", []),
        ("no dependency on T1", []),
        ("**Dependencies**: None", []),
        ("add the dependencies of T1", []),
        ("see T1", []),
    ],
)
def test_what_a_task_declares(text: str, told: list[tuple[str, str]]):
    assert [(each.tasks, each.wait_for) for each in declared(text)] == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("T1 blocks T2, T3", [("T2, T3", "T1")]),
        ("**T1 (model)** blocks T2-T4 (service)", [("T2-T4 (service)", "T1 (model)")]),
        ("Tests (T1-T2) before implementation (T3-T4)", [("T3-T4", "T1-T2")]),
        ("Tests (T1) MUST be written and FAIL before code (T3)", [("T3", "T1")]),
        ("T1 must complete before T2", [("T2", "T1")]),
        ("T2-T4: All depend on T1 completion (exists)", [("T2-T4", "T1")]),
        ("T2 requires T1", [("T2", "T1")]),
        ("T2 ← depends on T1", [("T2", "T1")]),
        ("T1 → T2 → T3, T4", [("T2", "T1"), ("T3, T4", "T2")]),
        ("**Critical Path**: T1 -> T2", [("T2", "T1")]),
        ("T1 and T2", None),
        ("T1 before all else", None),
        ("T2 can run after T1", None),
        ("T2 does not depend on T1", None),
        ("After T1 completes, T2 before T3", None),
        ("T1, like T2, blocks T3", None),
        ("T1 before T2 while the moon shines", None),
    ],
)
def test_what_a_line_about_order_states(text: str, told: list[tuple[str, str]] | None):
    found = stated(text)
    assert (found and [(each.tasks, each.wait_for) for each in found]) == told


ONE = ("## Phase 1", "- [ ] T1 [P] a", "- [ ] T2 [P] b", "- [ ] T3 [P] c")
TWO = ("## Phase 2", "- [ ] T4 [P] d")


def test_declared_dependencies_bind():
    plan = read(*ONE, "- [ ] T5 [P] e (depends on T1-T2)", "- [ ] T6 f (depends on t1)", *TWO,
                "  - T2 depends on T1", "  - depends on T3", "  - T99 depends on T1")  # fmt: skip
    assert waits(plan) == {
        "T1": (),
        "T2": ("T1",),
        "T3": (),
        "T5": ("T1", "T2"),
        "T6": ("T1", "T2", "T3", "T5"),
        "T4": ("T3",),
    }
    assert [note.text for note in plan.notes] == ["names 'T99', which is not a task of this plan"]


def test_a_section_about_order_binds_where_it_is_certain():
    plan = read(*ONE, *TWO, "## Dependencies", "", "T1 blocks T2", "T2 can be before T3", "",
                "- Groups:", "  - T3 before T4", "  - T4 before T1", "  - T1 before T9",
                "- nothing about T1")  # fmt: skip
    assert waits(plan) == {"T1": (), "T2": ("T1",), "T3": (), "T4": ("T3",)}
    assert {note.line: note.text for note in plan.notes} == {
        12: "is about an order, but is not certain enough: ignored",
        16: "contradicts the order of the list: ignored",
        17: "names 'T9', which is not a task of this plan",
    }


def test_tasks_that_wait_for_each_other_are_refused():
    with pytest.raises(PlanError, match="tasks wait for each other"):
        read(*ONE, "", "## Dependencies", "- T1 → T2 → T1")


def test_dependencies_without_end_are_refused():
    tasks = [f"- [ ] T{n:04} [P] a (depends on T0000-T1999)" for n in range(2000)]
    with pytest.raises(PlanError, match="more than 100,000 dependencies are declared"):
        read("## Phase 1", *tasks)
