"""What a run of a plan would meet: gaps, questions, and what it is expected to take."""

import pytest

from windlass.core.plan import Finding, Plan, Stage, Task, gaps
from windlass.core.scheduler.estimates import Forecast, Range
from windlass.core.settings import PolicySettings, Settings
from windlass.views.outlook import Outlook, asking_lines, forecast_lines, outlook, warnings_of
from windlass.views.understanding import understanding

CRITERIA = ("works",)
CHECKED = Settings(checks=("make test",))


def plan(*tasks: Task, **fields: object) -> Plan:
    return Plan(id="p", title="P", dialect="milestone", path="p.md", tasks=tasks, **fields)  # pyright: ignore[reportArgumentType]


def task(id_: str, **fields: object) -> Task:
    return Task(id=id_, title=id_, line=int(id_), **fields)  # pyright: ignore[reportArgumentType]


class TestGaps:  # issue 15, line 6
    def test_a_task_without_criteria_is_named(self):
        vague = plan(task("1", acceptance_criteria=CRITERIA), task("2"))
        (found,) = gaps(vague, ("make",))
        assert found == Finding(
            line=2,
            severity="warning",
            text="task 2 has no acceptance criteria, so the Coach has only the text to judge by",
            suggestion="list what must be true when the task is done",
        )

    def test_several_are_one_warning_at_the_first(self):
        tasks = [task(str(n)) for n in range(1, 13)]
        some = plan(*tasks, task("13", acceptance_criteria=CRITERIA))
        (found,) = gaps(some, ("make",))
        assert found.text.endswith(": 1, 2, 3, 4, 5, 6, 7, 8 and 4 more")
        assert found.text.startswith("12 tasks have no acceptance criteria")
        (found,) = gaps(plan(*tasks), ("make",))
        assert found.text.startswith("no task has acceptance criteria")

    def test_tasks_that_no_check_proves_are_named(self):
        tasks = (
            task("1", acceptance_criteria=CRITERIA, checks=("a",)),
            task("2", acceptance_criteria=CRITERIA, path="two.md", stage="x"),
            task("3", acceptance_criteria=CRITERIA, stage="gated"),
        )
        stages = (Stage(name="x"), Stage(name="gated", checks=("b",)))
        (found,) = gaps(plan(*tasks, stages=stages), ())
        assert (found.path, found.line, found.severity) == ("two.md", 2, "warning")
        assert found.text.startswith("task 2 has no checks")
        assert gaps(plan(*tasks, stages=stages), ("make",)) == ()
        assert gaps(plan(*tasks, stages=stages, checks=("make",)), ()) == ()

    def test_the_scenario_needs_no_criteria(self):
        assert gaps(plan(task("1", scenario=True)), ("make",)) == ()


class TestQuestions:
    COMPLEX = plan(task("1", complexity=7), task("2", complexity=6), task("3", complexity=10))

    def test_complex_tasks_ask(self):
        seen = outlook(self.COMPLEX, Settings(), Forecast(tasks=0))
        assert seen.asks == ("1", "3")
        assert list(asking_lines(seen)) == [
            "before 1, 3: complexity 7 or more; `windlass approve TASK` lets each start, --yes all"
        ]

    def test_not_if_the_policy_lets_them_pass(self):
        settings = Settings(policy=PolicySettings(checkpoint="pass"))
        seen = outlook(self.COMPLEX, settings, Forecast(tasks=0))
        assert (seen.asks, list(asking_lines(seen))) == ((), [])

    def test_a_red_base_and_an_unfinished_run_ask_too(self):
        seen = outlook(plan(task("1")), CHECKED, Forecast(tasks=0), "Run abc of p is paused")
        assert list(asking_lines(seen)) == [
            "Run abc of p is paused: continue it, or start again?",
            "if a check fails on the base: start all the same? (policy.red_base)",
        ]
        going = Settings(checks=("make",), policy=PolicySettings(red_base="go"))
        assert outlook(plan(task("1")), going, Forecast(tasks=0)).asks_if == ()
        one = outlook(plan(task("1", complexity=8)), going, Forecast(tasks=0))
        assert "lets it start" in next(asking_lines(one))


class TestForecast:
    @pytest.mark.parametrize(
        ("forecast", "lines"),
        [
            (
                Forecast(tasks=0),
                ["none yet: it takes 3 tasks that were merged here, and so far there are none"],
            ),
            (
                Forecast(tasks=1),
                ["none yet: it takes 3 tasks that were merged here, and so far there is 1"],
            ),
            (
                Forecast(tasks=4, seconds=Range(60, 150), usd=Range(0.5, 1.25)),
                [
                    "$0.50 to $1.25, 1m00s to 2m30s with 3 agents at once",
                    "from 4 tasks merged here: the middle half of them",
                    "without checks, and without waiting for people and usage limits",
                ],
            ),
            (
                Forecast(tasks=4, seconds=Range(60, 150)),
                [
                    "1m00s to 2m30s with 3 agents at once",
                    (
                        "from 4 tasks merged here: the middle half of them;"
                        " what they cost is not known"
                    ),
                    "without checks, and without waiting for people and usage limits",
                ],
            ),
        ],
    )
    def test_it_is_a_range_and_says_what_it_rests_on(self, forecast: Forecast, lines: list[str]):
        assert list(forecast_lines(outlook(plan(task("1")), Settings(), forecast))) == lines

    def test_a_budget_that_may_be_too_small_is_named(self):
        told = Forecast(tasks=4, seconds=Range(60, 150), usd=Range(15, 25))
        *_, last = forecast_lines(outlook(plan(task("1")), Settings(), told))
        assert last == "the run stops at $20.00; --max-cost gives it more"


def test_all_of_it_is_shown_below_the_plan():
    odd = Finding(line=4, text="odd", severity="warning", suggestion="mend it")
    noted = Finding(line=5, text="not read")
    seen = Outlook(
        findings=(noted, odd), asks=("1",), forecast=Forecast(tasks=0), agents=1, max_cost=1
    )
    lines = understanding(plan(task("1"), notes=(noted, odd)), width=80, seen=seen)
    assert lines[lines.index("A run stops and asks") :] == [
        "A run stops and asks",
        "  before 1: complexity 7 or more; `windlass approve TASK` lets it start, --yes",
        "  all",
        "",
        "Estimate",
        "  none yet: it takes 3 tasks that were merged here, and so far there are none",
        "",
        "Passed over",
        "  p.md:5: not read",
        "",
        "Warnings",
        "  p.md:4: odd; mend it",
    ]
    assert warnings_of(seen.findings) == [odd]
