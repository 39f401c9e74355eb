"""What was understood of a plan, as people see it: complete, harmless, and within its columns."""

import re

from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec.structs import replace

from windlass.core.plan import Finding, Plan, Stage, Task, validated
from windlass.views.columns import columns, fitted, wrapped
from windlass.views.graph import MAX_ROWS, picture
from windlass.views.understanding import understanding

HOSTILE = "\x1b[2J\x07\x9b31m\u202e\r\n"


def plan(**depends_on: str) -> Plan:
    tasks = tuple(
        Task(id=task, title=f"Do {task}", depends_on=tuple(deps.split()))
        for task, deps in depends_on.items()
    )
    return validated(Plan(id="p", title="P", dialect="milestone", path="p.md", tasks=tasks))


def staged(unstaged: Plan, *stages: Stage, **members: str) -> Plan:
    place = {task: stage for stage, tasks in members.items() for task in tasks.split()}
    tasks = tuple(replace(task, stage=place.get(task.id)) for task in unstaged.tasks)
    return replace(unstaged, tasks=tasks, stages=stages)


def drawn(any_plan: Plan, width: int = 78) -> str:
    return "\n".join(picture(any_plan, width).lines)


def read_back(lines: tuple[str, ...]) -> dict[str, set[str]]:
    """Who waits for whom, by nothing but what is drawn."""
    found: dict[str, set[str]] = {}
    rails: dict[int, set[str]] = {}
    for line in lines:
        gutter, _, name = re.fullmatch(r"([ ○●◇│├┤┼└┘┴─╌]*?)(  (\w+)  .*|)", line).groups()  # type: ignore[union-attr]
        cells = dict(enumerate(gutter[::2]))
        own = next(at for at, cell in cells.items() if cell in "○●◇")
        touched = {own}
        for way in (-1, 1):
            at = own
            while gutter[2 * at + way : 2 * at + way + 1] == "─":
                at += way
                touched |= {at} if cells[at] in "├┤┼└┘┴" else set()
        above = set[str]().union(*(rails.get(at, set()) for at in touched))
        waits = set() if cells[own] == "○" else above
        for at in list(rails):
            if cells.get(at, " ") not in "│├┤┼":
                del rails[at]
        rails[own] = {name} if name else waits
        if name:
            found[name] = waits
    return found


class TestPicture:
    def test_a_sequence(self):  # K1
        assert drawn(plan(a="", b="a", c="b")) == snapshot("""\
○  a  Do a
●  b  Do b
●  c  Do c\
""")

    def test_a_diamond(self):
        assert drawn(plan(a="", b="a", c="a", d="b c")) == snapshot("""\
○    a  Do a
├─●  b  Do b
● │  c  Do c
●─┘  d  Do d\
""")

    def test_several_wait_for_the_same_several(self):
        made = plan(a="", b="", c="", d="a b c", e="a b c", f="a b c", g="d e f")
        assert drawn(made) == snapshot("""\
○      a  Do a
│ ○    b  Do b
│ │ ○  c  Do c
◇─┴─┘
├─●    d  Do d
├─│─●  e  Do e
● │ │  f  Do f
●─┴─┘  g  Do g\
""")
        assert picture(made, 78).legend == snapshot(
            "○ starts at once · ● waits for all that its line leads up to · ◇ lines meet"
        )

    def test_a_line_that_crosses_a_rail_leaves_it_whole(self):
        assert drawn(plan(a="", b="", c="a", d="b", e="", f="c d", g="a e", h="")) == snapshot("""\
○        a  Do a
│ ○      b  Do b
├─│─●    c  Do c
│ ● │    d  Do d
│ │ │ ○  e  Do e
│ ●─┘ │  f  Do f
●─────┘  g  Do g
○        h  Do h\
""")

    def test_waves(self):  # a barrier is a line; what is declared is rails
        made = plan(a="", b="", c="a", d="", e="b")
        stages = (Stage(name="wave1"), Stage(name="wave2"), Stage(name="wave3"))
        barred = staged(made, *stages, wave1="a b", wave2="c d", wave3="e")
        assert drawn(barred) == snapshot("""\
     stage wave1
○    a  Do a
│ ○  b  Do b
│╌│  then stage wave2
● │  c  Do c
○ │  d  Do d
╌╌│  then stage wave3
  ●  e  Do e\
""")
        assert picture(barred, 78).legend == snapshot(
            "○ starts with its stage · ● waits for all that its line leads up to"
        )

    def test_stages_without_barriers_are_only_named(self):
        assert drawn(staged(plan(a="", b="a", c=""), one="a", two="b")) == snapshot("""\
   stage one
○  a  Do a
│  stage two
●  b  Do b
   no stage
○  c  Do c\
""")

    def test_stages_that_contradict_the_order_are_not_drawn(self):
        contrary = staged(plan(a="b", b=""), Stage(name="x"), Stage(name="y"), x="a", y="b")
        assert "stage" not in drawn(contrary)

    def test_a_wide_plan_is_shown_in_steps(self):
        wide = {f"t{number}": "" for number in range(20)}
        made = plan(**wide, last=" ".join(wide))
        assert drawn(made, 60) == snapshot("""\
1  t0  t1  t2  t3  t4  t5  t6  t7  t8  t9  t10  t11  t12
   t13  t14  t15  t16  t17  t18  t19
2  last\
""")
        assert picture(made, 60).legend == snapshot(
            "the tasks of a line can start at once, when all above it are done"
        )

    def test_a_long_plan_is_cut_with_a_word(self):
        names = [f"t{number}" for number in range(2000)]
        before = dict(zip(names, ("", *names), strict=False))
        lines = picture(plan(**before), 78).lines
        assert len(lines) == MAX_ROWS + 1
        assert lines[-1] == snapshot("… and 1,900 more, too many to draw")

    def test_a_plan_both_wide_and_long_is_cut_with_a_word(self):
        lanes = {f"t{n}-{lane}".replace("-", "_"): n for n in range(110) for lane in range(14)}
        deps = {name: f"t{n - 1}_{name[-1]}" if n else "" for name, n in lanes.items()}
        made = plan(**{name: dep if dep in lanes else "" for name, dep in deps.items()})
        lines = picture(made, 60).lines
        assert len(lines) == MAX_ROWS + 1
        assert re.fullmatch("… and [0-9]+ more lines", lines[-1])

    @given(st.lists(st.sets(st.integers(1, 8), max_size=3), min_size=1, max_size=40))
    def test_what_is_drawn_says_exactly_what_the_plan_says(self, back: list[set[int]]):
        made = plan(
            **{
                f"t{number}": " ".join(f"t{number - far}" for far in sorted(fars) if far <= number)
                for number, fars in enumerate(back)
            }
        )
        shown = picture(made, 78)
        if "●" in shown.legend:
            told = {task.id: set(task.depends_on) for task in made.tasks}
            assert read_back(shown.lines) == told
        assert all(columns(line) <= 78 for line in shown.lines)


FULL = Plan(
    id="full",
    title="All there is",
    dialect="feature",
    path="plans/full",
    tasks=(
        Task(
            id="T-1",
            title="Begin",
            acceptance_criteria=("It begins", "It says:\n- one\n\n  ```\n  code\n  ```"),
            files=tuple(f"src/module_{number}.py" for number in range(12)),
            checks=("pytest -q", "ruff check"),
            complexity=7,
            stage="setup",
            path="plans/full/1.md",
            line=3,
        ),
        Task(
            id="T-2",
            title="Go on",
            depends_on=("T-1",),
            stage="core",
            model="opus",
            max_turns=1,
            skip_absent=True,
            removes_tests=True,
            marked_done=True,
            path="plans/full/2.md",
        ),
    ),
    stages=(Stage(name="setup"), Stage(name="core", checks=("make gate",))),
    checks=("make test",),
    e2e="Try it.",
    notes=(
        Finding(line=4, text="not understood", path="plans/full/1.md"),
        Finding(line=0, text=f"the file is empty, and {'so on ' * 20}", path="plans/full/x.json"),
        Finding(line=9, text="of the plan's own file"),
    ),
)


class TestUnderstanding:
    def test_all_there_is(self):
        assert "\n".join(understanding(FULL, width=80)) == snapshot("""\
All there is
  plans/full
  dialect feature · id full
  2 tasks · 2 stages · 2 criteria

Stage setup · 1 task

  T-1  Begin
       needs nothing · 2 criteria · complexity 7
       in      plans/full/1.md:3
       files   src/module_0.py, src/module_1.py, src/module_2.py,
               src/module_3.py, src/module_4.py, src/module_5.py,
               src/module_6.py, src/module_7.py, src/module_8.py,
               src/module_9.py, and 2 more
       checks  pytest -q
               ruff check

Stage core · 1 task
begins when stage setup is done
gate    make gate

  T-2  Go on
       after T-1 · no criteria · model opus · at most 1 turn ·
       absent checks are skipped · removes tests · marked as done
       in      plans/full/2.md

Order
  ○ starts with its stage · ● waits for all that its line leads up to

     stage setup
  ○  T-1  Begin
  │  then stage core
  ●  T-2  Go on

Critical path: 2 of 2 tasks, one after the other
  T-1 → T-2

Every task must pass
  make test

It has an E2E scenario; --e2e runs it.

1 of 2 tasks marked as done.
A run ignores these marks; `windlass adopt` imports them.

Passed over
  plans/full/1.md:4: not understood
  plans/full/x.json:
    the file is empty, and so on so on so on so on so on so on so on so on so on
    so on so on so on so on so on so on so on so on so on so on so on
  plans/full:9: of the plan's own file\
""")

    def test_every_criterion_where_asked_for(self):
        told = understanding(FULL, width=80, verbose=True)
        shown = told[told.index("  T-1  Begin") : told.index("Stage core · 1 task") - 1]
        assert "\n".join(shown) == snapshot("""\
  T-1  Begin
       needs nothing · 2 criteria · complexity 7
       in      plans/full/1.md:3
       files   src/module_0.py, src/module_1.py, src/module_2.py,
               src/module_3.py, src/module_4.py, src/module_5.py,
               src/module_6.py, src/module_7.py, src/module_8.py,
               src/module_9.py, src/module_10.py, src/module_11.py
       checks  pytest -q
               ruff check
       1. It begins
       2. It says:
          - one

            ```
            code
            ```\
""")

    def test_one_task_has_no_order(self):
        told = understanding(plan(a=""), width=80)
        assert "\n".join(told) == snapshot("""\
P
  p.md
  dialect milestone · id p
  1 task · no criteria

  a  Do a
     needs nothing · no criteria\
""")

    def test_much_is_counted_instead(self):
        many = {f"t{number}": "" for number in range(70)}
        made = plan(**many, z=" ".join(many))
        noted = replace(made, notes=tuple(Finding(line=n, text="odd") for n in range(1, 50)))
        told = understanding(noted, width=80)
        assert any("t11 and 58 more" in line for line in told)
        assert told[-1] == snapshot("  … and 19 more; --verbose shows all")
        assert len(understanding(noted, width=80, verbose=True)) == len(told) + 18

    def test_a_long_critical_path_is_named_by_its_ends(self):
        names = [f"t{number}" for number in range(100)]
        told = understanding(plan(**dict(zip(names, ("", *names), strict=False))), width=80)
        path = told[told.index("Critical path: 100 of 100 tasks, one after the other") + 1 :]
        assert "\n".join(path) == snapshot("""\
  t0 → t1 → t2 → t3 → t4 → t5 → t6 → t7 → t8 → t9 → t10 → t11 → t12 → t13 →
  t14 → t15 → t16 → t17 → t18 → t19 → t20 → t21 → t22 → t23 → t24 → t25 → t26 →
  t27 → t28 → t29 → (40 more) → t70 → t71 → t72 → t73 → t74 → t75 → t76 → t77 →
  t78 → t79 → t80 → t81 → t82 → t83 → t84 → t85 → t86 → t87 → t88 → t89 → t90 →
  t91 → t92 → t93 → t94 → t95 → t96 → t97 → t98 → t99\
""")

    @given(st.text(max_size=200), st.integers(20, 120))
    def test_no_text_of_a_plan_moves_the_cursor_or_spills(self, text: str, width: int):
        hostile = f"{HOSTILE}{text}{HOSTILE}"
        tasks = tuple(
            replace(
                task,
                title=hostile,
                acceptance_criteria=(hostile,),
                files=(hostile,),
                checks=(hostile,),
                stage=hostile,
                model=hostile,
                path="",
            )
            for task in FULL.tasks
        )
        made = replace(
            FULL,
            title=hostile,
            tasks=tasks,
            stages=(Stage(name=hostile, checks=(hostile,)),),
            checks=(hostile,),
            notes=(Finding(line=1, text=hostile),),
        )
        for line in understanding(made, width=width, verbose=True):
            assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", line)
            assert columns(line) <= max(width, 60)


class TestColumns:
    def test_an_ideograph_takes_two_and_a_joined_accent_none(self):
        assert [columns(text) for text in ("abc", "日本", "e\u0301")] == [3, 4, 1]

    def test_what_is_too_wide_is_cut(self):
        assert [fitted("日本語です", width) for width in (10, 9, 4, 1)] == [
            "日本語です",
            "日本語で…",
            "日…",
            "…",
        ]

    @given(st.lists(st.text(max_size=30), max_size=20), st.integers(5, 40))
    def test_wrapped_lines_fit_and_lose_nothing_but_what_is_cut(self, parts: list[str], width: int):
        assert all(columns(line) <= width for line in wrapped(parts, width, between=", "))

    def test_a_line_that_goes_on_ends_in_what_joins(self):
        assert list(wrapped(["aa", "bb", "cc"], 7, between=", ")) == ["aa, bb,", "cc"]
