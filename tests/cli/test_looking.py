"""log, history, costs and status --watch: looking at what was, and what goes on."""  # K13 G12

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta

import pytest
from msgspec.structs import replace

from desk import Desk
from quick import quick_run
from windlass.core.plan import Task
from windlass.core.settings import SandboxSettings, Settings
from windlass.testing.agents import Play, ScriptedAgent, approval
from windlass.views.cost import run_cost
from worlds import World, plan_of, writes

TASKS = (Task(id="a", title="First"), Task(id="b", title="Second"))


@pytest.fixture
def world(desk: Desk) -> World:
    """Two tasks, the second returned once, recorded as the run of a plan `p`."""

    def second(_n: int, turn: int, files: dict[str, str]) -> None:
        files["b"] = "good" if turn > 1 else "bad"

    world = World(
        plan_of(*TASKS),
        {"a": writes("a", "x"), "b": second},
        rule=lambda _, files: files.get("b") != "bad",
        settings=Settings(checks=("test",), agents=1),
    )
    world.go()
    desk.record("p", world.events)
    return world


def on_a_terminal(desk: Desk, *args: str, **more: str) -> str:
    """What a command shows there."""
    far, near = pty.openpty()
    command = [sys.executable, "-m", "windlass", *args]
    env = {**desk.environment, "TERM": "xterm", **more}
    with subprocess.Popen(command, cwd=desk.repo, env=env, stdout=near) as process:
        os.close(near)
        shown = b""
        with suppress(OSError):  # as a terminal ends whose other side is closed
            while chunk := os.read(far, 65_536):
                shown += chunk
        os.close(far)
    assert process.returncode == 0
    return shown.decode().replace("\r\n", "\n")


class TestDiff:
    HOSTILE = b"a\x1b]0;owned\x07\x1b[2Jb\r\ncaf\xe9\t\xc2\x9b31m\xe2\x80\xae\n"

    @pytest.fixture
    def merged(self, desk: Desk) -> Desk:
        def play(brief, workspace):
            if brief.role == "coach":
                return Play(answer=approval(brief))
            (workspace / "odd").write_bytes(self.HOSTILE)
            return Play()

        desk.commit("plan.md", "# Milestone: X\n\n## Task a: One\n")
        agent = ScriptedAgent({"coach a": play}, default=play)
        settings = Settings(checks=("true",), sandbox=SandboxSettings(level="none"))
        assert quick_run(desk.repo, agent, settings=settings).done == ("a",)
        return desk

    def test_a_terminal_obeys_nothing_of_it(self, merged: Desk):
        plain = on_a_terminal(merged, "diff", "a", NO_COLOR="1")
        assert r"+a\x1b]0;owned\x07\x1b[2Jb\r" in plain
        assert "\t" in plain
        assert all(c.isprintable() or c in "\t\n" for c in plain)

    def test_colours_are_windlasss_own(self, merged: Desk):
        coloured = on_a_terminal(merged, "diff", "a")
        assert "\n\x1b[32m+a\\x1b]0;owned" in coloured
        assert "\x1b]" not in coloured
        assert "\x1b[2J" not in coloured

    def test_a_pipe_gets_a_patch_that_applies(self, merged: Desk):
        command = [sys.executable, "-m", "windlass", "diff", "a"]
        env = merged.environment
        patch = subprocess.check_output(command, cwd=merged.repo, env=env)
        assert b"+a\x1b]0;owned\x07\x1b[2Jb\r\n+caf\xe9\t" in patch
        subprocess.run(["git", "apply"], cwd=merged.repo, env=env, input=patch, check=True)
        assert (merged.repo / "odd").read_bytes() == self.HOSTILE


def words(out: str) -> list[str]:
    return [line.split()[2] for line in out.splitlines() if line[:1] == "2"]


class TestLog:
    def test_filters_narrow_it_down_together(self, desk: Desk, world: World):
        every = words(desk.call("log", "p").out)
        assert {"START", "PLAYER", "RETURNED", "DONE"} <= set(every)
        assert words(desk.call("log", "p", "--task", "b", "--kind", "returned").out) == ["RETURNED"]
        assert words(desk.call("log", "--kind", "TaskMerged").out) == ["DONE", "DONE"]
        second = desk.call("log", "p", "--task", "b", "--turn", "2").out
        assert words(second)[0] == "PLAYER"
        assert "RETURNED" not in second
        assert "DONE" in second

    def test_a_kind_that_there_is_not_is_refused_with_those_there_are(
        self, desk: Desk, world: World
    ):
        said = desk.call("log", "p", "--kind", "NOPE")
        assert (said.code, said.out) == (2, "")
        assert "'NOPE'" in said.err
        assert "RETURNED" in said.err
        assert "TurnReturned" in said.err
        for word in ("needs_you", "NEEDS YOU", "LIMIT"):
            assert desk.call("log", "p", "--kind", word).code == 0, "there is none in this run"

    def test_a_task_alone_names_plan_and_task(self, desk: Desk, world: World):
        assert desk.call("log", "b").out == desk.call("log", "p", "--task", "b").out
        assert desk.call("log", "p:b").out == desk.call("log", "b").out
        assert desk.call("log", "nothing").code == 2

    def test_since(self, desk: Desk, world: World):
        everything = desk.call("log", "p").out
        nothing = desk.call("log", "p", "--since", "1s")
        assert nothing == (0, "", "windlass: no matching lines in the log of p\n")
        assert desk.call("log", "p", "--since", "900000w").out == everything
        assert desk.call("log", "p", "--since", "2026-01-01").out == everything
        assert desk.call("log", "p", "--since", "99999999999d").out == everything
        wrong = desk.call("log", "p", "--since", "yesterday")
        assert wrong.code == 2
        assert "10m, 2h, 3d" in wrong.err

    def test_json_gives_facts_and_the_filters_hold(self, desk: Desk, world: World):
        out = desk.call("log", "p", "--json", "--kind", "PlayerStarted", "--task", "b").out
        facts = [json.loads(line)["event"] for line in out.splitlines()]
        assert [(fact["type"], fact["turn"]) for fact in facts] == [
            ("PlayerStarted", 1),
            ("PlayerStarted", 2),
        ]

    def test_following_a_run_that_is_over_ends_at_once(self, desk: Desk, world: World):
        followed = desk.call("log", "p", "--follow")
        assert (followed.code, followed.out) == (0, desk.call("log", "p").out)

    def test_following_a_run_whose_process_is_gone_says_so(self, desk: Desk, world: World):
        desk.record("q", world.events[:-1])
        followed = desk.call("log", "q", "--follow")
        assert "windlass resume q" in followed.err


class TestCosts:
    def test_by_plan_task_role_and_model(self, desk: Desk, world: World):
        told = json.loads(desk.call("costs", "--json").out)
        cost = run_cost(world.state)
        assert told["total"]["cost_usd"] == cost.cost_usd
        for by in ("plan", "task", "role", "model"):
            assert round(sum(each["cost_usd"] for each in told[by].values()), 6) == cost.cost_usd
        assert set(told["task"]) == {"p:a", "p:b"}
        out = desk.call("costs", "p", "--by", "role").out
        assert out.startswith("role")
        assert "player" in out
        assert "total" in out

    def test_one_run_only(self, desk: Desk, world: World):
        told = json.loads(desk.call("costs", "--run", "r1", "--by", "run", "--json").out)
        assert list(told["run"]) == ["r1"]
        assert desk.call("costs", "--run", "other").code == 2

    def test_nothing_was_run(self, desk: Desk):
        assert desk.call("costs").code == 2
        assert desk.call("history").code == 2


class TestHistory:
    def test_newest_first_and_no_dead_run_shows_as_running(self, desk: Desk, world: World):
        desk.record("q", world.events[:-1])
        told = json.loads(desk.call("history", "--json").out)
        assert told["schema"] == 1
        told = told["runs"]
        assert {each["plan"]: each["status"] for each in told} == {
            "p": "completed",
            "q": "interrupted",
        }
        assert [each["turns"] for each in told] == [3, 3]
        out = desk.call("history", "p").out
        assert "completed" in out
        assert "2/2 done" in out

    def test_the_journal_orders_runs_whose_clock_was_set_back(self, desk: Desk, world: World):
        first, second = world.events[0], world.events[0]
        earlier = replace(second, run="r2", at=first.at - timedelta(hours=2))
        desk.record("q", [first, earlier])
        told = json.loads(desk.call("history", "q", "--json").out)["runs"]
        assert [each["run"] for each in told] == ["r2", "r1"]

    def test_a_journal_that_cannot_be_read_hides_no_other(self, desk: Desk, world: World):
        broken = desk.repo / ".windlass/plans/z/journal.db"
        broken.parent.mkdir(parents=True)
        broken.write_bytes(b"no journal")
        told = desk.call("history")
        assert "completed" in told.out
        assert "z: " in told.err
        assert desk.call("history", "z").code != 0


def test_status_watch_of_a_run_that_is_over_shows_how_it_stands(desk: Desk, world: World):
    assert desk.call("status", "p", "--watch").out == desk.call("status", "p").out


def test_status_watch_tells_old_activity_with_its_own_time(desk: Desk, world: World):
    line = '{"ts":"2026-01-01T01:02:03+00:00","task":"a","kind":"tool","text":"Reading"}'
    desk.write(".windlass/plans/p/runs/r1/activity.jsonl", f"{line}\n")
    assert "01:02:03Z             a → Reading\n" in desk.call("status", "p", "--watch").out


def test_status_is_watched_by_people_or_read_by_programs(desk: Desk, world: World):
    said = desk.call("status", "p", "--watch", "--json")
    assert said.code == 2
    assert "log --follow --json" in json.loads(said.out)["error"]["cure"]
    assert "log --follow --json" in said.err


NEW_YORK = "EST5EDT,M3.2.0,M11.1.0"


class TestTimes:
    """People read their own time on a terminal; programs and files get UTC."""

    @pytest.mark.parametrize(
        ("command", "local", "utc"),
        [
            ("log", "2025-12-31 19:00:00-05  ", "2026-01-01 00:00:00Z  "),
            ("history", "2025-12-31 19:00-05  ", "2026-01-01 00:00Z  "),
        ],
    )
    def test_a_terminal_shows_local_time_and_a_pipe_utc(
        self, desk: Desk, world: World, command: str, local: str, utc: str
    ):
        assert on_a_terminal(desk, command, "p", TZ=NEW_YORK).startswith(local)
        assert desk.call(command, "p", TZ=NEW_YORK).out.startswith(utc)
        for_programs = on_a_terminal(desk, command, "p", "--json", TZ=NEW_YORK)
        assert "2026-01-01T00:00:00.002000Z" in for_programs
        assert "19:00" not in for_programs

    def test_each_time_has_the_offset_of_its_own_day(self, desk: Desk, world: World):
        summer = [replace(event, at=event.at + timedelta(days=180)) for event in world.events]
        desk.record("q", summer)
        shown = on_a_terminal(desk, "history", TZ=NEW_YORK)
        assert "2026-06-29 20:00-04  q" in shown
        assert "2025-12-31 19:00-05  p" in shown

    def test_since_takes_the_time_that_the_screen_shows(self, desk: Desk, world: World):
        everything = desk.call("log", "p").out
        for since in ("2025-12-31T19:00", "2026-01-01T00:00Z", "2025-12-31 19:00:00-05"):
            assert desk.call("log", "p", "--since", since, TZ=NEW_YORK).out == everything
        assert desk.call("log", "p", "--since", "2026-01-01T00:00", TZ=NEW_YORK).out == ""


class TestTerminal:
    """On a terminal nothing spills over, and no word is broken that could stay whole."""

    @pytest.fixture
    def long(self, desk: Desk) -> World:
        ids = ("T-0001-sessions", "T-0002-passwords")
        titles = ("Store sessions where they outlive a restart of the service", "Hash passwords")
        first = Task(id=ids[0], title=titles[0])
        tasks = (first, Task(id=ids[1], title=titles[1], depends_on=(ids[0],)))
        done = {ids[0]: writes("a", "x"), ids[1]: lambda *_: None}
        plan = replace(plan_of(*tasks), id="auth-hardening")
        world = World(plan, done, settings=Settings(checks=("python -m pytest -q",), max_turns=1))
        world.go()
        desk.record("auth-hardening", world.events)
        return world

    @pytest.mark.parametrize("command", ["history", "status", "log", "doctor"])
    @pytest.mark.parametrize("columns", [80, 100])
    def test_no_line_is_wider_than_the_terminal(
        self, desk: Desk, long: World, command: str, columns: int
    ):
        whole = desk.call(command).out
        shown = desk.on_terminal(command, columns=columns)
        assert max(map(len, shown.splitlines())) <= columns
        for word in ("auth-hardening", "T-0001-sessions", "passwords"):
            assert (word in shown) == (word in whole)
        if command in {"log", "doctor"}:
            assert "".join(shown.split()) == "".join(whole.split()), "nothing is lost"
        if command == "log":
            assert shown.split() == whole.split(), "and no word is broken"

    def test_columns_stand_below_each_other(self, desk: Desk, long: World):
        rows = [line for line in desk.call("status").out.splitlines() if "1 turn" in line]
        assert [row.split()[1] for row in rows] == ["T-0001-sessions", "T-0002-passwords"]
        assert rows[0].index("1 turn") == rows[1].index("1 turn")
        [row] = desk.call("history").out.splitlines()
        assert "1/2 done" in row
        name, figures = desk.on_terminal("history", columns=60).splitlines()
        assert name.split()[2:] == ["auth-hardening", long.state.run, "failed"]
        assert figures.split()[:4] == ["1/2", "done", "2", "turns"]
