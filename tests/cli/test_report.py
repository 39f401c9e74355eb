"""`windlass report` as people call it."""  # K7 G12

import os
import stat
from pathlib import Path

import pytest

from desk import Desk
from quick import quick_run
from reports import story
from windlass.testing.agents import ScriptedAgent
from worlds import World


@pytest.fixture(scope="module")
def world() -> World:
    return story()


@pytest.fixture
def told(desk: Desk, world: World) -> Desk:
    desk.record("p", world.events)
    return desk


def test_one_file_beside_the_runs_state(told: Desk):
    answer = told.call("report", "p")
    path = Path(answer.out.strip())
    assert (answer.code, answer.err) == (0, "")
    assert path == told.repo / ".windlass/plans/p/runs/r1/report.html"
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "Rate-limit login" in text
    assert told.call("report").out == answer.out  # the only unfinished run


def test_markdown_and_standard_output(told: Desk):
    answer = told.call("report", "p", "--format", "markdown", "--output", "-")
    assert answer.out.startswith("# P\n")
    assert "- [x] the window resets" in answer.out
    told.call("report", "p", "--format", "markdown")
    written = told.repo / ".windlass/plans/p/runs/r1/report.md"
    assert written.read_text(encoding="utf-8") == answer.out


def test_where_it_is_told_to_write(told: Desk):
    answer = told.call("report", "p", "--output", "out.html")
    assert answer.out.strip() == str(told.repo / "out.html")
    assert (told.repo / "out.html").exists()
    missing = told.call("report", "p", "--output", "nowhere/out.html")
    assert (missing.code, missing.out) == (2, "")
    assert "there is no folder" in missing.err
    folder = told.call("report", "p", "--output", ".")
    assert folder.code == 2
    assert "is a folder" in folder.err


def test_a_device_is_written_to_and_not_replaced(told: Desk):
    answer = told.call("report", "p", "--output", "/dev/null")
    assert answer.code == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)  # noqa: PTH116


def test_the_browser_is_asked_to_show_it(told: Desk):
    browser = told.root / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {told.root}/shown\n')
    browser.chmod(0o755)
    answer = told.call("report", "p", "--open", BROWSER=f"{browser} %s")
    assert answer.code == 0
    assert (told.root / "shown").read_text() == Path(answer.out.strip()).as_uri()
    nobody = told.call(
        "report",
        "p",
        "--open",
        BROWSER="/nonexistent/browser %s",
        PATH="/nonexistent:/usr/bin:/bin",
    )
    assert nobody.code == 0
    assert told.call("report", "p", "--open", "--output", "-").code == 2


def test_what_was_never_run_is_no_report(desk: Desk):
    never = desk.call("report", "plan.md")
    assert (never.code, never.out) == (2, "")
    assert "was never run here; start it: windlass run" in never.err
    assert desk.call("report").code == 2
    assert "no plan was run here yet" in desk.call("report").err
    unknown = desk.call("report", "nothing")
    assert (unknown.code, "no such file or plan" in unknown.err) == (2, True)


def test_without_a_name_the_run_that_began_last(desk: Desk, world: World):
    desk.record("p", world.events)
    desk.record("q", world.events[:30])
    assert "/plans/" in desk.call("report").out
    assert desk.call("report", "q").out.strip().endswith("/plans/q/runs/r1/report.html")


def test_a_real_run_is_told_with_what_it_changed(desk: Desk):
    agent = ScriptedAgent({"1.1": {"src/health.py": "a\nb\n"}, "1.2": {"README.md": "hello\nx\n"}})
    plan = desk.repo / "plan.md"
    desk.commit("plan.md", plan.read_text().replace("**Checks:** `python3 -m pytest -q`\n", ""))
    quick_run(desk.repo, agent)
    text = desk.call("report", "plan", "-o", "-").out
    assert "src/health.py" in text
    assert '<span class="plus">+2</span>' in text
    assert '<span class="plus">+1</span>' in text
