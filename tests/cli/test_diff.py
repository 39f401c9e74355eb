"""What a task or a whole run changed: `windlass diff`, and the diffs of the report."""

import json
import re
from pathlib import Path

import pytest

from desk import Desk
from finished_run import finished
from windlass.adapters.git import inspect
from windlass.core.events.model import MergeStarted
from windlass.core.plan import Task
from windlass.views.report.page import environment
from worlds import World, plan_of, writes


@pytest.fixture
def done(tmp_path: Path) -> Desk:
    return finished(tmp_path)


def test_without_a_task_it_is_the_whole_run(done: Desk) -> None:
    whole = done.call("diff")
    assert whole.code == 0, whole.err
    base, tip = "refs/windlass/plan/r1/base", "refs/windlass/plan/r1/tip"
    assert whole.out == done.git("diff", "--patch", "--stat", base, tip)
    assert "health.py" in whole.out
    assert "docs.md" in whole.out
    assert done.call("diff", "plan").out == whole.out
    assert done.call("diff", "--stat").out == done.git("diff", "--stat", base, tip)
    read = json.loads(done.call("diff", "--json").out)
    assert (read["task"], read["text"]) == ("", whole.out)


def test_of_a_task_it_is_what_its_merge_brought(done: Desk) -> None:
    shown = done.call("diff", "1.2").out
    assert "docs.md" in shown
    assert "health.py" not in shown
    assert done.call("diff", "plan:1.2").out == shown


def test_of_a_landed_and_squashed_run_it_is_the_same(done: Desk) -> None:
    before = done.call("diff").out
    done.call("land", "plan", "--squash")
    assert done.call("diff").out == before


def test_a_run_without_a_merge_has_none(desk: Desk) -> None:
    world = World(plan_of(Task(id="1.1", title="a")), {"1.1": writes("a", "1")})
    events = []
    world.go()
    for event in world.events:
        if isinstance(event, MergeStarted):
            break
        events.append(event)
    desk.record("p", events)
    answer = desk.call("diff")
    assert answer.code == 2
    assert "nothing of 'p' is merged yet" in answer.err
    assert "windlass diff TASK" in answer.err


def test_the_report_has_each_task_s_diff_folded(done: Desk) -> None:
    page = done.call("report", "plan", "-o", "-").out
    [first] = re.findall(r'<details id="1\.1/diff" class="diff">(.*?)</details>', page, re.DOTALL)
    assert "<summary><b>Diff</b>" in first
    assert '<span class="plus">+ok</span>' in first
    assert '<span class="head">diff --git a/health.py b/health.py</span>' in first
    assert 'class="diff" open' not in page


def test_a_large_diff_is_cut_with_the_command_that_shows_it(tmp_path: Path) -> None:
    desk = finished(tmp_path)
    git = inspect.UserGit(desk.repo, desk.environment)
    base = desk.git("rev-parse", "main").strip()
    many = {f"many/{n:02}": "x\n" * 900 for n in range(30)}
    for path, text in {**many, "huge": "y\n" * 30_000}.items():
        desk.write(path, text)
    desk.git("add", "--all")
    desk.git("commit", "--quiet", "--message", "large")
    large = desk.git("rev-parse", "main").strip()
    changes = inspect.changes(git, [(base, large)])
    [found] = inspect.patch_texts(git, changes).values()
    assert found.files_left == 31 - 20
    assert "huge" not in found.text
    assert found.text.count("diff --git") == 20


def test_no_text_of_an_agent_is_markup(tmp_path: Path) -> None:
    """A file can have any content and any name."""
    desk = finished(tmp_path)
    git = inspect.UserGit(desk.repo, desk.environment)
    base = desk.git("rev-parse", "main").strip()
    desk.commit("</span><script>alert(1)", "</pre><script>alert(2)</script>\n\x1b[31m\u202e")
    [found] = inspect.patch_texts(
        git, inspect.changes(git, [(base, desk.git("rev-parse", "main").strip())])
    ).values()
    shown = environment().filters["diff"](found.text)
    assert "<script>" not in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.count("<span") == shown.count("</span>") == len(found.text.split("\n"))
