"""The order of tasks: what is refused and why, and what follows from what is accepted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from windlass.core.plan import (
    Plan,
    Stage,
    Task,
    critical_lengths,
    critical_path,
    ordered,
    steps,
    transitive_dependents,
    validated,
)
from windlass.core.plan.graph import MAX_TASKS
from windlass.errors import PlanError


def plan(**depends_on: str) -> Plan:
    """A plan of tasks by id, each with the ids it depends on, separated by spaces."""
    tasks = enumerate(depends_on.items(), 1)
    return Plan(
        id="p",
        title="P",
        dialect="milestone",
        path="p.md",
        tasks=tuple(
            Task(id=name, title=name, depends_on=tuple(deps.split()), line=line)
            for line, (name, deps) in tasks
        ),
    )


def of_ids(*ids: str) -> Plan:
    return Plan(
        id="p",
        title="P",
        dialect="milestone",
        path="p.md",
        tasks=tuple(Task(id=each, title="", line=line) for line, each in enumerate(ids, 1)),
    )


def refusal(refused: Plan) -> str:
    with pytest.raises(PlanError) as caught:
        validated(refused)
    return str(caught.value)


@st.composite
def acyclic(draw: st.DrawFn) -> Plan:
    """A plan whose tasks stand in any order, and whose dependencies have no cycle."""
    count = draw(st.integers(1, 12))
    tasks = [
        Task(
            id=f"t{index}",
            title="",
            depends_on=tuple(
                f"t{dep}" for dep in sorted(draw(st.sets(st.integers(0, index - 1), max_size=4)))
            )
            if index
            else (),
        )
        for index in range(count)
    ]
    shuffled = draw(st.permutations(tasks))
    return Plan(id="p", title="P", dialect="milestone", path="p.md", tasks=tuple(shuffled))


class TestValidated:
    def test_a_good_plan_is_returned_as_it_is(self):
        good = plan(a="", b="a", c="a b")

        assert validated(good) is good

    def test_a_plan_without_tasks_is_refused_with_the_cure(self):
        assert refusal(of_ids()).startswith("p.md: no tasks found; a task is a heading")

    @pytest.mark.parametrize(
        "unsafe",
        [
            "../../x", "-rf", "a/b", "x.lock", "X.LOCK", ".", "..", "a..b", "a.", ".a", "",
            "a b", "a:b", "a\n", "a~1", "a^", "@{", "é", "x" * 65,
        ],
    )  # fmt: skip
    def test_an_id_that_cannot_name_a_ref_and_a_folder_is_refused(self, unsafe: str):
        said = refusal(of_ids("ok", unsafe))

        assert said.startswith(f"p.md:2: task id {unsafe!r} cannot name a ref and a folder")

    @pytest.mark.parametrize("safe", ["1.1", "3a.1", "10", "T-04", "_x", "x" * 64, "lock", "a-"])
    def test_an_id_that_can_is_accepted(self, safe: str):
        assert validated(of_ids(safe)).tasks[0].id == safe

    @pytest.mark.parametrize("again", ["t-04", "T-04"])
    def test_an_id_is_used_once_also_when_case_is_ignored(self, again: str):
        said = refusal(of_ids("T-04", "b", again))

        assert said.startswith(f"p.md:3: task id {again!r} is already used on line 1")

    def test_a_dependency_outside_the_plan_is_refused_by_name(self):
        said = refusal(plan(a="", b="a c"))

        assert (
            said == "p.md:2: task 'b' depends on 'c', which is not in the plan; the plan has a, b"
        )

    def test_a_cycle_is_named_with_its_whole_way(self):
        assert "p.md:1: tasks wait for each other: a → b → a" in refusal(plan(a="b", b="a"))

    def test_a_task_that_waits_for_itself_is_a_cycle(self):
        assert "p.md:2: tasks wait for each other: b → b" in refusal(plan(a="", b="b"))

    def test_a_cycle_is_named_without_the_way_to_it(self):
        said = refusal(plan(start="x b", x="", b="c", c="d", d="b"))

        assert "p.md:3: tasks wait for each other: b → c → d → b" in said

    def test_a_diamond_is_no_cycle(self):
        assert validated(plan(d="b c", b="a", c="a", a=""))

    @given(acyclic())
    def test_no_plan_without_a_cycle_is_refused(self, good: Plan):
        assert validated(good) is good

    @given(acyclic(), st.data())
    def test_any_edge_back_is_refused(self, good: Plan, data: st.DataObject):
        first = data.draw(st.sampled_from(good.tasks))
        later = sorted(transitive_dependents(good, first.id))
        back = data.draw(st.sampled_from([*later, first.id]))
        tasks = tuple(
            Task(id=each.id, title="", depends_on=(*each.depends_on, back))
            if each.id == first.id
            else each
            for each in good.tasks
        )

        assert "tasks wait for each other" in refusal(
            Plan(id="p", title="P", dialect="milestone", path="p.md", tasks=tasks)
        )

    def test_ten_thousand_tasks_in_a_row_need_no_recursion(self):
        count = MAX_TASKS - 1
        row = {f"t{n}": f"t{n + 1}" for n in range(count)} | {f"t{count}": ""}

        assert ordered(validated(plan(**row)))[0].id == f"t{count}"

    def test_what_has_more_tasks_than_anyone_plans_is_refused(self):
        with pytest.raises(PlanError, match="more than 10,000 tasks"):
            validated(plan(**{f"t{n}": "" for n in range(MAX_TASKS + 1)}))

    def test_a_clash_over_two_files_names_both(self):
        tasks = (Task(id="a", title="a", path="1.md", line=3), Task(id="A", title="a", path="2.md"))
        with pytest.raises(PlanError, match=r"2\.md.*already used in 1\.md:3"):
            validated(Plan(id="p", title="p", dialect="x", path="p", tasks=tasks))


class TestOrdered:
    def test_a_plan_in_order_keeps_its_order(self):
        assert [task.id for task in ordered(plan(c="", a="c", b=""))] == ["c", "a", "b"]

    def test_a_dependency_comes_before_its_dependents(self):
        assert [task.id for task in ordered(plan(d="b c", c="a", b="a", a=""))] == list("abcd")

    @given(acyclic())
    def test_every_task_comes_once_and_after_what_it_depends_on(self, any_plan: Plan):
        done: set[str] = set()
        for task in ordered(any_plan):
            assert done.issuperset(task.depends_on)
            assert task.id not in done
            done.add(task.id)
        assert len(done) == len(any_plan.tasks)


class TestCriticalLengths:
    def test_the_longest_way_counts(self):
        lengths = critical_lengths(plan(a="", b="a", c="a", d="b c"), {"b": 5.0, "c": 2.0})

        assert lengths == {"a": 12.0, "b": 8.5, "c": 5.5, "d": 3.5}

    @given(acyclic())
    def test_a_task_is_farther_from_the_end_than_its_dependents(self, any_plan: Plan):
        lengths = critical_lengths(any_plan, {})

        for task in any_plan.tasks:
            assert all(lengths[dep] > lengths[task.id] for dep in task.depends_on)


class TestTransitiveDependents:
    def test_everything_behind_a_task_is_found_and_nothing_else(self):
        chain = plan(a="", b="a", c="b", d="a", e="")

        assert transitive_dependents(chain, "a") == {"b", "c", "d"}
        assert transitive_dependents(chain, "b") == {"c"}
        assert transitive_dependents(chain, "e") == set()


def test_a_plan_knows_its_tasks_by_id():
    known = plan(a="", b="a")

    assert known.task("b") is known.tasks[1]


def staged(stages: str, **tasks: str) -> Plan:
    """Each task 'stage: dependencies', and the stages that have barriers."""
    made = [(task, *value.split(":")) for task, value in tasks.items()]
    return Plan(
        id="p",
        title="p",
        dialect="x",
        path="p.md",
        tasks=tuple(
            Task(id=task, title=task, stage=stage or None, depends_on=tuple(deps.split()))
            for task, stage, deps in made
        ),
        stages=tuple(Stage(name=name) for name in stages.split()),
    )


class TestCriticalPath:
    def test_it_is_the_longest_chain(self):
        assert critical_path(plan(a="", b="a", c="", d="b c", e="c")) == ("a", "b", "d")

    def test_of_equals_the_first_counts(self):
        assert critical_path(plan(a="", b="", c="a b")) == ("a", "c")

    def test_a_plan_without_tasks_has_none(self):
        assert critical_path(plan()) == ()

    def test_a_barrier_counts(self):
        barred = staged("1 2 3", a="1:", b="1:a", c="2:", d="3:", e="3:a")
        assert critical_path(barred) == ("a", "b", "c", "d")
        assert steps(barred) == {"a": 1, "b": 2, "c": 3, "d": 4, "e": 4}

    def test_a_stage_without_tasks_lets_all_pass(self):
        assert critical_path(staged("1 2 3", a="1:", b="3:")) == ("a", "b")

    def test_a_task_of_no_stage_waits_for_its_dependencies_only(self):
        assert steps(staged("1 2", a="1:", b="2:", c=":")) == {"a": 1, "b": 2, "c": 1}

    def test_stages_that_contradict_the_dependencies_are_left_out(self):
        assert critical_path(staged("1 2", a="1:b", b="2:")) == ("b", "a")

    @given(acyclic())
    def test_without_barriers_it_is_as_long_as_the_scheduler_thinks(self, any_plan: Plan):
        lengths = critical_lengths(any_plan, {})
        assert len(critical_path(any_plan)) == max(lengths.values(), default=0)


def test_a_plan_knows_every_file_it_was_read_from():
    there = plan(a="", b="a")
    assert there.paths == ("p.md",)
    apart = replace(there.tasks[1], path="tasks/b.md")
    assert replace(there, tasks=(there.tasks[0], apart)).paths == ("p.md", "tasks/b.md")
