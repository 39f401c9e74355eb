"""An error says what, where and the cure, in one line for people and in parts for programs."""

import pytest

from windlass import errors
from windlass.errors import PlanError
from windlass.formats import load
from windlass.views.problems import Problem, bad_usage, error_line, problem_of

TRACEBACK = "nothing recorded is lost; WINDLASS_DEBUG=1 shows the traceback"


@pytest.mark.parametrize(
    ("error", "line", "problem"),
    [
        (
            errors.PlanError("no tasks", path="p.md", line=3, hint="write one"),
            "p.md:3: no tasks; write one",
            Problem(what="no tasks", where="p.md:3", cure="write one", exit=2),
        ),
        (
            errors.PlanError("no such file", path="p.md"),
            "p.md: no such file",
            Problem(what="no such file", where="p.md", cure="", exit=2),
        ),
        (
            errors.Busy("plan 'p' is running", about="p", hint="wait"),
            "plan 'p' is running; wait",
            Problem(what="plan 'p' is running", where="p", cure="wait", exit=5),
        ),
        (
            errors.Interrupted("the disk is full"),
            "the disk is full",
            Problem(what="the disk is full", where="windlass x", cure="", exit=4),
        ),
        (
            FileNotFoundError(2, "No such file", "/a\nb"),
            "No such file: /a b; fix that and try again; nothing recorded is lost",
            Problem(
                what="No such file",
                where="/a b",
                cure="fix that and try again; nothing recorded is lost",
                exit=4,
            ),
        ),
        (
            OSError("odd"),
            "odd; fix that and try again; nothing recorded is lost",
            Problem(
                what="odd",
                where="windlass x",
                cure="fix that and try again; nothing recorded is lost",
                exit=4,
            ),
        ),
        (
            KeyboardInterrupt(),
            "interrupted",
            Problem(
                what="interrupted",
                where="windlass x",
                cure="run the command again; nothing recorded is lost",
                exit=4,
            ),
        ),
        (
            KeyError("k"),
            f"a bug in Windlass, KeyError: 'k'; {TRACEBACK}",
            Problem(
                what="a bug in Windlass, KeyError: 'k'",
                where="windlass x",
                cure=TRACEBACK,
                exit=1,
            ),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_kind_of_error(error: BaseException, line: str, problem: Problem):
    assert error_line(error) == line
    assert problem_of(error, "windlass x") == problem


def test_bad_usage_names_the_help_of_the_command():
    assert bad_usage("No such option", "windlass run") == Problem(
        what="No such option",
        where="windlass run",
        cure="`windlass run --help` shows its usage",
        exit=2,
    )


def test_a_plan_with_several_errors_tells_of_all():
    with pytest.raises(PlanError) as refused:
        load("p.md", "## Task 1: a\n**Complexity:** huge\n**Depend on:** x\n")
    told = problem_of(refused.value, "windlass x")
    assert (told.what, told.where) == ("'complexity' cannot be 'huge'", "p.md:2")
    assert [(each.line, each.severity) for each in told.findings] == [(2, "error"), (3, "warning")]
    assert problem_of(PlanError("odd", path="p.md"), "windlass x").findings == ()
