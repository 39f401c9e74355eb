"""Plain lines: in logs, on GitHub Actions, and in silence; and which screen is chosen when."""

import io
import re
from datetime import timedelta

import pytest

from windlass.cli.screens.actions import ActionsScreen, defused, errors, summary
from windlass.cli.screens.choice import chosen, wants_ascii, wants_colour
from windlass.cli.screens.plain import BEAT, PlainScreen
from windlass.core.events import model as e
from windlass.core.events.model import Entry
from windlass.core.events.review import CriterionEvidence, Issue, Review, TestResults
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.core.state import RunState, apply
from windlass.ports import Activity
from windlass.views.lines import Line
from worlds import NOON, World, plan_of, writes

A = Task(id="a", title="First: of 100%, all", max_turns=1)
FIX = Issue(
    severity="must_fix", category="x", description="50% is\n::error::wrong", file="src/a,b.py:41"
)


def refuses(*issues: Issue) -> Review:
    return Review(
        decision="feedback",
        summary="",
        test_results=TestResults(passed=True),
        evidence=(CriterionEvidence(criterion=1, met=False, evidence="none"),),
        issues=issues,
        feedback="::stop-commands::x\n##[add-path]/tmp",
    )


def told(screen: PlainScreen, events: list[e.Event]) -> RunState:
    state = None
    for seq, event in enumerate(events, 1):
        state = apply(state, event)
        screen.entry(Entry(seq=seq, event=event), state)
    assert state is not None
    return state


def abandoned() -> World:
    world = World(
        plan_of(A),
        {"a": writes("a", "x")},
        settings=Settings(checks=("test",)),
        coach=lambda *_: refuses(FIX),  # pyright: ignore[reportArgumentType]
    )
    world.go()
    return world


class TestPlain:
    def test_every_event_has_its_time_in_utc(self):
        out = io.StringIO()
        screen = PlainScreen(out, now=lambda: NOON)
        told(screen, abandoned().events)
        screen.activity(Activity(task="a", kind="tool", text="Reading\x1b[2J a.py"))
        lines = [line for line in out.getvalue().splitlines() if not line.startswith(" " * 22)]
        assert all(re.match(r"\d\d:\d\d:\d\dZ  ", line) for line in lines)
        assert lines[-1] == "12:00:00Z             a → Reading [2J a.py"
        assert "\x1b" not in out.getvalue()

    def test_a_silence_is_broken_after_a_minute(self):
        out, now = io.StringIO(), [NOON]
        screen = PlainScreen(out, now=lambda: now[0])
        screen.beat()
        told(screen, abandoned().events[:4])
        before = out.getvalue()
        now[0] = NOON + BEAT - timedelta(seconds=1)
        screen.beat()
        assert out.getvalue() == before
        now[0] = NOON + BEAT
        screen.beat()
        assert out.getvalue().removeprefix(before).startswith("12:01:00Z      ALIVE  0/1 done")

    def test_quiet_tells_only_the_end(self):
        out = io.StringIO()
        screen = PlainScreen(out, now=lambda: NOON, quiet=True)
        state = told(screen, abandoned().events)
        screen.activity(Activity(task="a", kind="tool", text="Reading"))
        assert out.getvalue() == ""
        screen.closing(state, 1, [Line("Next", "windlass land")])
        assert "windlass land" in out.getvalue()


class TestActions:
    def test_details_fold_and_failures_are_marked_at_their_file(self):
        out = io.StringIO()
        screen = ActionsScreen(out, now=lambda: NOON, verbose=False, quiet=False)
        told(screen, abandoned().events)
        said = out.getvalue().splitlines()
        assert sum(line.startswith("::group::") for line in said) == said.count("::endgroup::") > 0
        assert (
            "::error file=src/a%2Cb.py,line=41,title=a First%3A of 100%25%2C all"
            "::50%25 is ::error::wrong" in said
        )

    def test_no_text_of_an_agent_commands_the_runner(self):
        out = io.StringIO()
        screen = ActionsScreen(out, now=lambda: NOON, verbose=True, quiet=False)
        state = told(screen, abandoned().events)
        screen.activity(Activity(task="a", kind="text", text="::add-mask::x ##[command]y"))
        screen.closing(state, 1, [Line("Next", "x", ("::warning::y",))])
        for line in out.getvalue().splitlines():
            assert "##[" not in line
            commands = ("::group::", "::endgroup::", "::error ")
            assert not line.lstrip().startswith("::") or line.startswith(commands)

    def test_a_failure_without_a_review_says_why(self):
        world = World(plan_of(A), {"a": writes("a", "x")}, rule=lambda _, files: "a" not in files)
        world.go()
        event = next(event for event in world.events if isinstance(event, e.TaskAbandoned))
        (command,) = errors(event, world.state)
        assert command.startswith("::error title=a First%3A of 100%25%2C all::")

    def test_the_page_of_the_job_shows_text_as_it_is(self):
        state = abandoned().state
        page = summary(state, [Line("Summary", "<b>x</b>")], [("a | b", "done", "1", "$1")])
        assert "- **Summary** \\<b\\>x\\</b\\>" in page
        assert "| a \\| b | done | 1 | \\$1 |" in page

    def test_defused(self):
        assert defused("  ::error::x") == "  : :error::x"
        assert defused("a ::b") == "a ::b"


@pytest.mark.parametrize(
    ("asked", "environment", "terminal", "display"),
    [
        ("auto", {"TERM": "xterm"}, True, "live"),
        ("auto", {"TERM": "xterm"}, False, "plain"),
        ("auto", {"TERM": "dumb"}, True, "plain"),
        ("auto", {}, True, "plain"),
        ("auto", {"TERM": "xterm", "CI": "true"}, True, "plain"),
        ("auto", {"TERM": "xterm", "CI": "false"}, True, "live"),
        ("auto", {"TERM": "xterm", "CLAUDECODE": "1"}, True, "plain"),
        ("auto", {"TERM": "xterm", "AI_AGENT": "x"}, True, "plain"),
        ("live", {"TERM": "xterm", "CI": "true"}, True, "live"),
        ("live", {"TERM": "xterm"}, False, "plain"),
        ("plain", {"TERM": "xterm"}, True, "plain"),
        ("json", {"TERM": "xterm"}, True, "json"),
        ("none", {"TERM": "xterm"}, True, "none"),
    ],
)
def test_which_display(asked: str, environment: dict[str, str], terminal: bool, display: str):  # noqa: FBT001
    assert chosen(asked, environment, terminal=terminal) == display


@pytest.mark.parametrize(
    ("environment", "terminal", "colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"CLICOLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"CLICOLOR_FORCE": "0"}, False, False),
    ],
)
def test_when_in_colour(environment: dict[str, str], terminal: bool, colour: bool):  # noqa: FBT001
    assert wants_colour(environment, terminal=terminal) is colour


def test_letters():
    assert [wants_ascii(name) for name in ("utf-8", "UTF8", "ascii", "latin-1", None)] == [
        False,
        False,
        True,
        True,
        True,
    ]
