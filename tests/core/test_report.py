"""What a report says of a run, as a value, as a page and as Markdown."""  # K7 K8 G12

import base64
import hashlib
import itertools
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError

from crash_worlds import worlds
from recorded_run import MINUTE, RecordedRun, tasks
from reports import TASKS, hostile, report_for, story
from windlass.core.events import model as e
from windlass.core.exchange import Message
from windlass.core.plan import Plan, Stage, Task
from windlass.core.settings import Settings
from windlass.core.state import Phase
from windlass.core.state.model import STATUS
from windlass.ports import PatchText
from windlass.testing.memory import MemoryInbox
from windlass.views import board
from windlass.views.bills import whole
from windlass.views.closing import _WORST
from windlass.views.cost import run_cost
from windlass.views.outcome import _RUN_STATUS
from windlass.views.report import diffed, markdown, report_of, timeline
from windlass.views.report import model as m
from windlass.views.report.charts import TALL, WIDE, Scale, layout
from windlass.views.report.page import _NEEDS, TONES, environment, page
from windlass.views.steps import Ground
from windlass.views.words import duration, harmless
from worlds import NOON, World, plan_of, writes


class Page(HTMLParser):
    """What is in a page: ids, references, texts; raises where elements do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.handlers: list[str] = []
        self.style = self.script = self.policy = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)
        given = dict(attrs)
        assert not {"src", "style", "srcset", "action"} & given.keys()
        self.handlers += [name for name in given if name.startswith("on")]
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given["href"] or ""] if "href" in given else []
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.style += data if self.open[-1:] == ["style"] else ""
        self.script += data if self.open[-1:] == ["script"] else ""


@pytest.fixture(scope="module")
def world() -> World:
    return story()


def by_id(report: m.Report) -> dict[str, m.TaskReport]:
    return {task.id: task for task in report.tasks}


class TestReport:
    def test_every_task_with_what_came_of_it(self, world: World):
        tasks = by_id(report_for(world))
        assert {id_: task.status for id_, task in tasks.items()} == {
            **dict.fromkeys(("T-01", "T-02", "T-03", "T-04"), "completed"),
            "T-05": "abandoned",
            "T-06": "blocked",
            "T-07": "needs_human",
            "T-08": "needs_human",
        }
        fates = {id_: [(r.anchor, r.fate) for r in task.rounds] for id_, task in tasks.items()}
        assert fates["T-02"] == [
            ("T-02/turn-1", "returned: checks"),
            ("T-02/turn-2", "interrupted"),
            ("T-02/turn-2.2", "merged"),
        ]
        assert fates["T-03"][0] == ("T-03/turn-1", "returned: review")
        assert fates["T-04"] == [("T-04/turn-1", "usage limit"), ("T-04/turn-1.2", "merged")]
        assert fates["T-05"][-1][1] == "returned: unchanged"
        assert tasks["T-06"].needs == "T-05"
        assert tasks["T-07"].asks == "Which sender address should the mails have?"
        assert [each.met for each in tasks["T-03"].evidence] == [True, True, True]
        assert tasks["T-08"].evidence == ()

    def test_retries_and_waits_are_bars_of_their_own(self, world: World):
        report = report_for(world)
        bars = by_id(report)["T-04"].bars
        kinds = [(bar.kind, bar.bad) for bar in bars if bar.kind != "queue"]
        assert kinds[:3] == [("player", True), ("wait", False), ("player", False)]
        assert [kind for kind, bad in kinds if kind == "coach"] == ["coach", "coach"]
        assert bars[1].what == "waits: usage limit" or bars[2].what == "waits: usage limit"
        assert report.waited == pytest.approx(next(b.seconds for b in bars if b.kind == "wait"))
        assert report.asked > 0
        assert {bar.kind for bar in by_id(report)["T-08"].bars} == {"person"}

    def test_a_limit_that_one_task_ran_into_is_waited_for_by_all(self):
        until = NOON + 20 * MINUTE
        run = RecordedRun(*tasks(2)).opened().play("T-01").finish("T-01").checked("T-01")
        run.at += MINUTE
        run.play("T-02").limited("T-02", until)
        run.record(e.TimerFired(at=NOON, task="T-02"), after=19 * MINUTE)
        run.coach("T-01")
        entries = [e.Entry(seq=n, event=event) for n, event in enumerate(run.events, 1)]
        report = report_of(entries, plan="p", workspaces="w")
        assert report is not None
        bars = [(bar.kind, bar.what, bar.seconds) for bar in by_id(report)["T-01"].bars]
        assert ("queue", "waits for an agent", 60.0) in bars
        assert ("wait", "waits for the limit", 19 * 60.0) in bars
        assert report.waited == 19 * 60.0, "the same time counts once"

    def test_the_time_in_which_nobody_ran_it_is_a_gap(self, world: World):
        report = report_for(world)
        assert len(report.gaps) == 1
        assert timedelta(hours=9) <= report.gaps[0].end - report.gaps[0].start
        assert report.unattended > 9 * 3600
        assert all(task.seconds < 9 * 3600 for task in report.tasks)
        # Whoever worked when the process died came to nothing, and its bar ends before the gap.
        lost = [b for t in report.tasks for b in t.bars if b.end == report.gaps[0].start]
        assert any(bar.bad for bar in lost if bar.kind != "person")

    def test_a_run_that_goes_on_at_once_has_no_gap(self):
        world = World(plan_of(Task(id="a", title="A")), {"a": writes("a", "x")})
        world.go(crash_at=20)
        world.go()
        assert world.state.resumes == 1
        assert report_for(world).gaps == ()

    def test_who_died_with_the_process_did_not_work_until_the_next(self, world: World):
        report = report_for(world)
        task = by_id(report)["T-02"]
        (lost,) = [each for each in task.rounds if each.fate == "interrupted"]
        (bar,) = [each for each in task.bars if each.anchor == lost.anchor]
        assert bar.end == report.gaps[0].start
        assert 0 < task.seconds_of(lost) == bar.seconds < 60
        assert "Player 9h" not in page(report)
        assert f"Player {duration(bar.seconds)}" in page(report)

    def test_the_rounds_come_to_what_the_run_has_cost(self, world: World):
        report = report_for(world)
        spent = sum(r.usage.cost_usd for task in report.tasks for r in task.rounds)
        assert spent == pytest.approx(run_cost(world.state).cost_usd)
        assert report.cost.cost_usd == pytest.approx(spent)
        assert set(report.costs) == {"task", "role", "model"}

    def test_metered_requests_belong_to_the_round_they_were_sent_in(self):
        world = World(plan_of(Task(id="a", title="A")), {"a": writes("a", "x")})
        world.go()
        at = next(i for i, ev in enumerate(world.events) if isinstance(ev, e.PlayerStarted))
        usage = e.Usage(cost_usd=0.5, input_tokens=7)
        paid = [
            e.SpendReserved(at=NOON, id="1", task="a", role="player", model="m", usd=1.0),
            e.SpendSettled(at=NOON, id="1", task="a", usage=usage),
            e.SpendSettled(at=NOON, id="gone", task="a", usage=usage),
        ]
        events = [*world.events[: at + 1], *paid, *world.events[at + 1 :]]
        entries = [e.Entry(seq=n, event=each) for n, each in enumerate(events, 1)]
        early = [e.Entry(seq=1, event=events[0]), e.Entry(seq=2, event=paid[0])]
        report = report_of(entries, plan="p", workspaces="w")
        assert report is not None
        assert report.tasks[0].rounds[0].usage.cost_usd == pytest.approx(1.015)
        assert report_of(early, plan="p", workspaces="w") is not None

    def test_nothing_is_told_where_nothing_was_run(self):
        assert report_of([], plan="p", workspaces="w") is None

    def test_a_run_that_goes_on_is_told_up_to_now(self, world: World):
        until = list(world.journal.read())[:40]
        now = until[-1].event.at + timedelta(minutes=5)
        live = report_of(until, plan="p", workspaces="w", live=True, now=now)
        dead = report_of(until, plan="p", workspaces="w", now=now)
        assert live is not None
        assert dead is not None
        assert (live.status, live.at, live.next) == ("in_progress", now, ())
        assert "The run is live" in page(live)
        assert (dead.status, dead.at) == ("interrupted", until[-1].event.at)
        assert dead.next == ("windlass approve p:T-08", "windlass resume p")
        assert max(bar.end for task in live.tasks for bar in task.bars) == now

    def test_only_the_last_run_is_told(self, world: World):
        again = World(world.plan, world.agent.plays)
        again.clock.time = world.clock.time
        again.go()
        both = [*world.events, *again.events]
        entries = [e.Entry(seq=n, event=each) for n, each in enumerate(both, 1)]
        report = report_of(entries, plan="p", workspaces="w")
        assert report is not None
        assert report.started_at == again.state.started_at
        assert report.cost.cost_usd == pytest.approx(whole_cost(again))

    def test_without_times_the_longest_chain_is_critical(self, world: World):
        first = list(world.journal.read())[:1]
        report = report_of(first, plan="p", workspaces="w")
        assert report is not None
        assert report.critical == ("T-01", "T-02", "T-05", "T-06")
        assert "Nothing was paid" in page(report)

    def test_what_stages_and_the_base_looked_like(self):
        plan = plan_of(
            Task(id="a", title="A", stage="1", checks=("own",)),
            Task(id="b", title="B", stage="2"),
            dialect="spec",
        )
        stages = (Stage(name="1", checks=("gate",)), Stage(name="2"))
        plan = msgspec.structs.replace(plan, stages=stages)
        world = World(plan, {id_: writes(id_, "x") for id_ in ("a", "b")})
        world.go()
        report = report_for(world)
        assert [look[0].split()[0] for look in report.looks] == ["base", "stage", "stage"]
        assert report.critical == ("a", "b")
        text = page(report)
        assert "then 2" in text
        assert "Checks of the" in text
        assert report.whole[0].what == "the base is checked"

    def test_what_the_tip_looked_like(self):
        tasks = (
            Task(id="a", title="A", checks=("own",)),
            Task(id="b", title="B", depends_on=("a",)),
        )
        world = World(plan_of(*tasks), {id_: writes(id_, "x") for id_ in ("a", "b")})
        world.go()
        report = report_for(world)
        assert [look[0].split()[0] for look in report.looks] == ["base", "tip"]
        assert report.whole[-1].what == "the tip is verified"

    def test_a_look_that_a_crash_cut_short_is_no_look(self):
        world = World(plan_of(Task(id="a", title="A")), {"a": writes("a", "x")})
        world.go()
        events = world.events
        at = next(i for i, ev in enumerate(events) if isinstance(ev, e.BaselineStarted))
        broken = [e.Entry(seq=n, event=ev) for n, ev in enumerate(events[: at + 1], 1)]
        report = report_of(broken, plan="p", workspaces="w")
        assert report is not None
        assert report.looks == ()
        assert [bar.kind for bar in report.whole] == ["checks"]

    def test_a_person_in_a_players_place(self):
        inbox = MemoryInbox(Message(command="stop"))
        world = World(plan_of(Task(id="a", title="A")), {"a": writes("a", "x")}, inbox=inbox)
        world.go()
        start = world.state.base
        facts = [
            e.TaskTaken(at=NOON, task="a", n=9, turn=1, start=start, onto=None, by="Ada <b>"),
            e.TaskGiven(at=NOON + timedelta(minutes=3), task="a", n=9, summary="by hand", by="Ada"),
        ]
        begun = [ev for ev in world.events if isinstance(ev, e.RunStarted)]
        entries = [e.Entry(seq=n, event=ev) for n, ev in enumerate([*begun, *facts], 1)]
        report = report_of(entries, plan="p", workspaces="w")
        assert report is not None
        assert report.tasks[0].bars[0].what == "Ada <b> works on it"
        assert "Ada &lt;b&gt;" in page(report)
        assert "person 3m00s" in page(report)

    def test_what_the_plan_has_no_more_is_told(self, world: World):
        kept = plan_of(task_without_deps(TASKS[1]), dialect="feature")
        events = [*world.events, e.RunResumed(at=world.clock.now(), settings=world.settings,
                  sandbox="none"), e.PlanRevised(at=world.clock.now(), plan=kept)]  # fmt: skip
        entries = [e.Entry(seq=n, event=each) for n, each in enumerate(events, 1)]
        report = report_of(entries, plan="p", workspaces="w")
        assert report is not None
        tasks = by_id(report)
        assert (tasks["T-05"].status, tasks["T-03"].status) == ("withdrawn", "completed")
        assert tasks["T-02"].status == "stale"
        assert "T-08" not in tasks  # it was never begun
        assert "no longer in the plan" in page(report)
        assert "stale: merged for an older text of the plan" in page(report)
        assert all(bar.end <= report.at for bar in tasks["T-07"].bars)


def task_without_deps(task: Task) -> Task:
    return msgspec.structs.replace(task, depends_on=(), title="Something else")


def whole_cost(world: World) -> float:
    return run_cost(world.state).cost_usd


@settings(max_examples=20)
@given(worlds(), st.integers(0, 200))
def test_any_run_killed_anywhere_can_be_told(make, crash_at: int):
    world = make()
    world.go(crash_at=crash_at)
    if world.events:
        world.go()
    entries = list(world.journal.read())
    report = report_of(entries, plan="p", workspaces="w")
    if report is None:
        return
    for task in report.tasks:
        for before, after in zip(task.bars, task.bars[1:], strict=False):
            assert before.end <= after.start
        assert all(report.started_at <= b.start <= b.end <= report.at for b in task.bars)
        assert all(bar.anchor in {r.anchor for r in task.rounds} | {""} for bar in task.bars)
    spent = sum(r.usage.cost_usd for task in report.tasks for r in task.rounds)
    assert spent == pytest.approx(run_cost(world.state).cost_usd)
    assert set(report.critical) <= set(world.state.tasks)
    seen = Page(page(report))
    assert len(seen.ids) == len(set(seen.ids))
    assert {link[1:] for link in seen.links} <= set(seen.ids)
    markdown(report)


class TestPage:
    def test_is_one_file_whose_references_all_lead_somewhere(self, world: World):
        seen = Page(page(report_for(world)))
        assert len(seen.ids) == len(set(seen.ids))
        assert all(link.startswith("#") for link in seen.links)
        assert {link[1:] for link in seen.links} <= set(seen.ids)
        assert {"T-07", "T-03/turn-2", "/timeline", "/graph", "/cost", "/tasks"} <= set(seen.ids)
        assert seen.tags.count("script") == seen.tags.count("style") == 1

    def test_a_browser_may_run_only_its_own_script(self, world: World):
        seen = Page(page(report_for(world)))
        for text, what in ((seen.style, "style-src"), (seen.script, "script-src")):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"{what} 'sha256-{digest}'" in seen.policy
        assert seen.policy.startswith("default-src 'none'")
        assert "unsafe" not in seen.policy
        assert seen.handlers == []

    def test_what_waits_for_a_person_stands_first(self, world: World):
        text = page(report_for(world))
        strip = text[text.index("Needs you") : text.index("<nav")]
        for word in ("windlass retry p:T-05", "windlass approve p:T-08", "Which sender address"):
            assert word in strip
        assert "T-06" not in strip

    def test_failures_are_there_as_prompts(self, world: World):
        text = page(report_for(world))
        prompt = text[text.index('id="T-03/turn-1/prompt"') :].partition("</pre>")[0]
        for word in (
            "Fix task T-03: Rate-limit login",
            "2. the window resets",
            "Mend the window.",
        ):
            assert word in prompt
        ours, _, theirs = prompt.partition("«begin feedback ")
        assert "data that others wrote" in ours
        assert "Mend the window." not in ours
        assert theirs.rstrip().endswith(f"«end feedback {theirs[:32]}»")
        assert 'data-copy="T-03/turn-1/prompt"' in text

    def test_evidence_of_an_earlier_review_stands_with_it(self, world: World):
        text = page(report_for(world))
        turn = text[text.index('id="T-03/turn-1"') : text.index('id="T-03/turn-2"')]
        assert "src/limit.py:41" in turn
        assert "not met" in turn
        assert "its tests failed" in turn

    def test_all_words_are_there_without_git(self, world: World):
        report = report_for(world, changes={})
        assert "+12" in page(report_for(world))
        assert "+12" not in page(report)
        assert "src/limit.py" in page(report)  # the journal knows the names

    def test_where_the_base_stands(self, world: World):
        ground = Ground(commit="f" * 40, holds_tip=False)
        assert "main has moved to ffffffffff" in page(report_for(world, ground=ground))

    def test_each_diff_is_folded_and_a_large_one_names_the_command(self, world: World):
        text = "diff --git a/x b/x\n@@ -1 +1 @@\n-old\n+<b>new</b>\n same\n"
        pairs = list(diffed(world.state))
        assert len(pairs) == len(set(pairs)) > 3
        patches = dict.fromkeys(pairs, PatchText(text=text))
        patches[pairs[0]] = PatchText(text=f"{text}{'+x' * 300}\n" + "+y\n" * 500)
        patches[pairs[1]] = PatchText(text="", files_left=1)
        report = report_for(world, changes={}, patches=patches)
        large, left, small, *_ = (task.diff for task in report.tasks if task.diff is not None)
        assert (large.left, small.left) == ("106 more lines", "")
        assert left.left == "1 file too large to show"
        assert small.text == text.rstrip("\n")
        shown = page(report)
        Page(shown)
        assert '<span class="plus">+&lt;b&gt;new&lt;/b&gt;</span>' in shown
        for kind in ("head", "hunk", "minus", "same"):
            assert f'<span class="{kind}">' in shown
        assert f"106 more lines; all of it: <code>{large.command}</code>" in shown
        assert shown.count('class="diff">') == len(pairs)

    def test_all_diffs_together_are_bounded(self):
        many = [Task(id=f"t{n}", title="t") for n in range(60)]
        world = World(plan_of(*many), {task.id: writes(task.id, "1") for task in many})
        world.go()
        patches = {pair: PatchText(text="+y\n" * 400) for pair in diffed(world.state)}
        report = report_for(world, changes={}, patches=patches)
        shown = [task.diff.text.count("+y") for task in report.tasks if task.diff is not None]
        assert (len(shown), shown[0], shown[-1]) == (60, 400, 0)
        assert 20_000 <= sum(shown) <= 20_400

    def test_nothing_anybody_says_is_markup(self, world: World):
        entries = [hostile(entry) for entry in world.journal.read()]
        report = report_of(entries, plan="p", workspaces="w")
        assert report is not None
        plain, text = Page(page(report_for(world, changes={}))), page(report)
        seen = Page(text)
        assert seen.tags.count("script") == seen.tags.count("style") == 1
        assert not {"img"} & set(seen.tags)
        assert seen.handlers == []
        assert seen.style == plain.style
        assert seen.script == plain.script
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", text)
        assert "alert(1)" in text  # it is there to be read
        text.encode()

    def test_ten_megabytes_are_cut(self, world: World):
        entries = [hostile(entry, "x" * 10_000_000) for entry in world.journal.read()]
        report = report_of(entries, plan="p", workspaces="w")
        assert report is not None
        assert len(page(report)) < 2_000_000
        assert len(markdown(report)) < 500_000
        assert "characters are left out here" in page(report)


class TestMarkdown:
    def test_tasks_criteria_checks_and_cost(self, world: World):
        text = markdown(report_for(world))
        assert "| ✓ | **T-03** Rate-limit login | completed | 2/2 | +12 " in text
        assert "- [x] the window resets" in text
        assert "  - pass: pytest -q" in text
        assert "  - must fix: src/limit.py:41: window never resets" in text
        assert "## Cost" in text
        assert "Blocked: it needs T-05." in text

    def test_nobody_is_called_and_nothing_is_closed(self, world: World):
        entries = [hostile(entry) for entry in world.journal.read()]
        report = report_of(entries, plan="p", workspaces="w")
        assert report is not None
        text = markdown(report)
        assert not re.search(r"@\w|(?<!&)#\d|GH-\d|://\w|(?<!\\)<|(?<!\\)!\[", text)
        plain = markdown(report_for(world, changes={}))
        headings = r"(?m)^#+ "
        assert len(re.findall(headings, text)) == len(re.findall(headings, plain))
        assert text.count("\n|") == plain.count("\n|")

    def test_no_more_than_allowed(self, world: World):
        report = report_for(world)
        whole = markdown(report)
        for most in range(100, len(whole) + 200, 25):
            text = markdown(report, most=most)
            assert len(text) <= most
            assert text == whole or "`windlass report`" in text


def chain(count: int) -> Plan:
    tasks = [
        Task(id=f"t{i}", title="x", depends_on=(f"t{i - 1}",) if i else ()) for i in range(count)
    ]
    return plan_of(*tasks)


def wide(count: int) -> Plan:
    return plan_of(*(Task(id=f"t{i}", title="x") for i in range(count)))


def dense(layers: int, each: int) -> Plan:
    tasks: list[Task] = []
    for layer in range(layers):
        deps = tuple(f"t{layer - 1}.{i}" for i in range(each)) if layer else ()
        tasks += [Task(id=f"t{layer}.{i}", title="x", depends_on=deps) for i in range(each)]
    return plan_of(*tasks)


class TestGraph:
    @pytest.mark.parametrize(
        "plan", [chain(200), wide(200), dense(8, 25), chain(1)], ids=["chain", "wide", "dense", "1"]
    )
    def test_two_hundred_tasks_can_be_read(self, plan: Plan):
        drawn = layout(plan)
        boxes = {id_: p for id_, p in drawn.places.items() if not p.meeting}
        assert boxes.keys() == {task.id for task in plan.tasks}
        assert drawn.width <= 6 * (WIDE + 14)
        seen = {(place.x, place.y) for place in boxes.values()}
        assert len(seen) == len(boxes)  # nobody stands on another, for all stand on a grid
        assert all(0 <= p.x <= drawn.width - WIDE for p in boxes.values())
        assert all(p.y + TALL <= drawn.height for p in boxes.values())
        for task in plan.tasks:
            assert all(boxes[dep].y < boxes[task.id].y for dep in task.depends_on)
        assert len(drawn.lines) <= 2 * len(plan.tasks)

    def test_an_arrow_that_others_imply_is_left_out(self):
        tasks = (
            Task(id="a", title="A"),
            Task(id="b", title="B", depends_on=("a",)),
            Task(id="c", title="C", depends_on=("a", "b")),
        )
        assert layout(plan_of(*tasks)).lines == (("a", "b"), ("b", "c"))

    def test_the_critical_path_goes_through_where_lines_meet(self):
        world = World(dense(2, 3), {t.id: writes(t.id, "x") for t in dense(2, 3).tasks})
        world.go()
        assert page(report_for(world)).count('class="wire main"') == 2

    def test_the_critical_path_finds_its_way_among_several_meetings(self):
        world = World(dense(3, 3), {t.id: writes(t.id, "x") for t in dense(3, 3).tasks})
        world.go()
        assert page(report_for(world)).count('class="wire main"') == 4

    def test_very_many_are_drawn_as_they_are(self):
        assert len(layout(chain(2_001)).lines) == 2_000


class TestScale:
    def test_a_night_takes_little_room(self):
        start = datetime(2026, 1, 1, 22, tzinfo=UTC)
        gap = m.Gap(start + timedelta(hours=1), start + timedelta(hours=10))
        scale = Scale(start, start + timedelta(hours=11), (gap,))
        places = [scale.at(start + timedelta(hours=h)) for h in (0, 1, 10, 11, 12)]
        assert places[0] == 0
        assert places[1] == pytest.approx(48.1, abs=0.1)
        assert places[2] == pytest.approx(51.9, abs=0.1)
        assert places[3] == places[4] == pytest.approx(100)
        assert [text for _, text in scale.ticks()] == ["22:00", "22:30", "23:00", "08:30"]

    def test_a_run_of_days_names_them(self):
        scale = Scale(NOON, NOON + timedelta(days=2), ())
        assert next(text for _, text in scale.ticks()) == "01 Jan 12:00"
        scale = Scale(NOON, NOON + timedelta(days=5), ())
        assert next(text for _, text in scale.ticks()) == "02 Jan"

    @given(
        st.integers(0, 10_000_000),
        st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**8)), max_size=4),
    )
    def test_places_rise_with_time_and_ticks_never_touch(self, seconds: int, breaks):
        at, gaps = NOON, list[m.Gap]()
        for work, away in breaks:
            begin = at + timedelta(seconds=work)
            at = begin + timedelta(seconds=away)
            gaps.append(m.Gap(begin, at))
        end = at + timedelta(seconds=seconds)
        scale = Scale(NOON, end, gaps)
        moments = sorted([NOON, end, *(g.start for g in gaps), *(g.end for g in gaps)])
        places = [scale.at(moment) for moment in moments]
        assert places == sorted(places)
        assert all(0 <= place <= 100.001 for place in places)
        told = list(scale.ticks())
        ticks = [place for place, _ in told]
        assert all(place + 2 * len(words) <= 100 for place, words in told)
        assert all(b - a >= 2 * 5 + 3 - 0.001 for a, b in itertools.pairwise(ticks))
        assert len(ticks) <= 7


def test_every_status_word_has_a_colour():
    words = {*STATUS.values(), *_RUN_STATUS.values(), "interrupted", "blocked", "withdrawn"}
    assert TONES.keys() == words
    assert _NEEDS.keys() == set(_WORST) - {"BLOCKED"}


def test_every_phase_has_its_word_and_its_bar():
    assert board._WORDS.keys() == timeline._KINDS.keys() == set(Phase)


class TestMarkup:
    @given(st.text())
    def test_whatever_is_shown_is_no_markup(self, text: str):
        parts = "{{ t }}{{ t|line }}{{ t|prose }}{{ t|code }}{{ t|bounded(9) }}{{ t|one_line(9) }}"
        template = environment().from_string(f'<p title="{{{{ t }}}}">{parts}</p>')
        shown = template.render(t=text)
        assert set(Page(shown).tags) <= {"p", "bdi", "div", "code"}
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", shown)
        shown.encode()

    def test_a_template_that_names_what_is_not_there_fails(self):
        with pytest.raises(UndefinedError):
            environment().from_string("{{ nothing }}").render()

    def test_no_template_turns_escaping_off(self):
        names = environment().list_templates(extensions=["html"])
        assert len(names) == 4
        for name in names:
            source = (
                environment()
                .get_template(name)
                .environment.loader.get_source(environment(), name)[0]
            )
            assert not re.search(r"\|\s*safe|autoescape|<script>(?!{{ script }})", source)

    def test_the_middle_of_a_long_text_is_left_out(self):
        text = harmless("a" * 50 + "b" * 50, 30)
        assert text.startswith("a" * 20 + "\n… 70 characters")
        assert text.endswith("b" * 10)


def test_a_task_with_many_files_names_some(world: World):
    from windlass.ports import Change

    many = tuple(Change(path=f"f{i}", added=i, deleted=0) for i in range(40))
    report = report_for(world)
    pairs = {}
    for task in world.state.all_tasks:
        for attempt in task.attempts:
            pairs[attempt.onto or attempt.start, attempt.commit] = many
    report = report_for(world, changes=pairs)
    assert "and 28 more" in page(report)


def test_more_tasks_than_are_worth_a_line_each_are_summed_up():
    tasks = [Task(id=f"t{i}", title="x") for i in range(70)]
    world = World(plan_of(*tasks), {t.id: writes(t.id, "x") for t in tasks})
    world.go()
    text = page(report_for(world))
    assert "55 more" in text
    assert 'class="lanes small"' in text
    assert all(task.phase is Phase.MERGED for task in world.state.tasks.values())
    assert whole([]).cost_usd == 0


def test_at_every_moment_of_a_run_it_can_be_told(world: World):
    entries = list(world.journal.read())
    for end in range(1, len(entries), 2):
        report = report_of(entries[:end], plan="p", workspaces="w")
        assert report is not None
        assert page(report).count("<section") >= 4
        assert markdown(report).startswith("# P\n")
    fates = {r.fate for r in report_for(world).tasks[0].rounds}
    assert fates == {"merged"}


def test_what_could_not_be_committed_is_told():
    world = World(plan_of(Task(id="a", title="A")), {"a": writes("a", "x")}, settings=Settings())
    world.go()
    at = next(i for i, ev in enumerate(world.events) if isinstance(ev, e.SnapshotStarted))
    refused = [
        e.SnapshotRefused(at=world.clock.now(), task="a", n=1, reason="a repository inside"),
        e.TurnReturned(at=world.clock.now(), task="a", cause="refused", feedback="mend it"),
    ]
    events = [*world.events[: at + 1], *refused]
    entries = [e.Entry(seq=n, event=each) for n, each in enumerate(events, 1)]
    report = report_of(entries, plan="p", workspaces="w")
    assert report is not None
    text = page(report)
    assert "a repository inside" in text
    assert "unchecked: there are no checks" in text
    assert "returned: refused" in markdown(report)


def test_what_nobody_knows_of_the_cost_is_said(world: World):
    report = report_for(world)
    assert not report.cost.known
    assert "some is not known" in page(report)
    lost = [r for task in report.tasks for r in task.rounds if not r.usage.known]
    assert lost
    assert "+ spent of $20.00" in markdown(report)
