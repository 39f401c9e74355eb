"""The footer of a live screen, as a function of a state: its rows, how wide, how many."""  # K6 G12

import unicodedata
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec.structs import replace

from recorded_run import MINUTE, RecordedRun, tasks
from windlass.core.events import model as e
from windlass.core.events.review import Issue
from windlass.core.plan import Task
from windlass.core.state import apply
from windlass.core.state.transitions import HELPLESS, Phase
from windlass.views.activity import WHOLE, after_event
from windlass.views.board import Screen, board, bracketed, heartbeat
from windlass.views.columns import ascii_only, columns, cut, folded, hanging, padded
from windlass.views.words import clock
from worlds import NOON, World, plan_of, writes

HOSTILE = "\x1b[2J\x1b]0;x\x07[bold]日本語[/bold]\r\n\u202e\x9b1A" + "é̂" * 40


def busy() -> RecordedRun:
    """A run with a task in every kind of trouble."""
    run = RecordedRun(*tasks(14), agents=9).opened()
    run.approve("T-01").merged("T-01", 1)
    run.approve("T-02").approve("T-03").merge("T-02", 2).record(
        e.MergeBuilt(at=NOON, task="T-02", candidate=2, commit="m2", tree="m2"),
        e.ChecksStarted(at=NOON, task="T-02", commit="m2", tree="m2", checks=("pytest -q",)),
    )
    run.play("T-05").add_activity("T-05", "Editing src/auth/token.py")
    run.play("T-06").finish("T-06", usd=0.92).check("T-06", "pytest -q", "ruff check")
    run.play("T-08").finish("T-08", usd=0.37).checked("T-08").coach("T-08")
    run.play("T-07").finish("T-07").checked("T-07").coach("T-07")
    issue = Issue(severity="must_fix", category="tests", description="none")
    run.answer("T-07", issue, issue).record(
        e.TurnReturned(at=NOON, task="T-07", cause="review", feedback="\nMend it.")
    )
    run.play("T-09").record(
        e.PlayerFailed(
            at=NOON,
            task="T-09",
            n=1,
            failure=e.Failure.USAGE_LIMIT,
            message="",
            usage=e.Usage(known=False),
        ),
        e.SnapshotStarted(at=NOON, task="T-09", n=1, kind="partial"),
        e.SnapshotTaken(
            at=NOON, task="T-09", n=1, kind="partial", commit="c", tree="c", changed=False
        ),
        e.WaitStarted(
            at=NOON,
            task="T-09",
            until=NOON + timedelta(hours=2, minutes=20),
            failure=e.Failure.USAGE_LIMIT,
        ),
    )
    run.play("T-10").finish("T-10").record(
        e.TurnReturned(at=NOON, task="T-10", cause="checks", feedback="The tests are red."),
        e.HelpNeeded(at=NOON, task="T-10", question="Which database?"),
    )
    run.at += timedelta(minutes=12, seconds=4)
    return run


class TestBoard:
    def test_a_busy_run_in_80_columns(self):
        assert busy().shown() == snapshot("""\
─ p ─ 7f3a ─ 1/14 done ─ 12m04s ─ $1.29+ spent of $20.00 ─ 8.4k tokens ────────
 ? T-10 Part 10 of the w…  2/5 asks you 12m04s   $0.00  Which database?
 ● T-05 Part 5 of the wh…  1/5 Player   12m04s   $0.00  Editing src/auth/token…
 ● T-06 Part 6 of the wh…  1/5 checks   12m04s   $0.92  pytest -q +1
 ● T-08 Part 8 of the wh…  1/5 Coach    12m04s   $0.37  starting
 ◷ T-07 Part 7 of the wh…  2/5 limit    12m04s   $0.00  until 14:20Z · 2 must_…
 ◷ T-09 Part 9 of the wh…  1/5 limit    12m04s  $0.00+  until 14:20Z, in 2h07m…
 ⇡ T-02 Part 2 of the wh…  1/5 merging  12m04s   $0.00  checks on the merged t…
 ⇡ T-03 Part 3 of the wh…  1/5 approved 12m04s   $0.00  queued behind T-02
   5 waiting for the limit · 1 done (T-01)
 Ctrl-C stops it; `windlass resume` continues it
""")

    def test_a_busy_run_in_140_columns(self):
        assert busy().shown(140) == snapshot("""\
─ p ─ 7f3a ─ 1/14 done ─ 12m04s ─ $1.29+ spent of $20.00 ─ 8.4k tokens ────────────────────────────────────────────────────────────────────
 ? T-10 Part 10 of the whole  2/5 asks you 12m04s     1.2k   $0.00  Which database?
 ● T-05 Part 5 of the whole   1/5 Player   12m04s        0   $0.00  Editing src/auth/token.py
 ● T-06 Part 6 of the whole   1/5 checks   12m04s     1.2k   $0.92  pytest -q +1
 ● T-08 Part 8 of the whole   1/5 Coach    12m04s     1.2k   $0.37  starting
 ◷ T-07 Part 7 of the whole   2/5 limit    12m04s     1.2k   $0.00  until 14:20Z · 2 must_fix to answer
 ◷ T-09 Part 9 of the whole   1/5 limit    12m04s        0  $0.00+  until 14:20Z, in 2h07m (usage limit)
 ⇡ T-02 Part 2 of the whole   1/5 merging  12m04s     1.2k   $0.00  checks on the merged tree
 ⇡ T-03 Part 3 of the whole   1/5 approved 12m04s     1.2k   $0.00  queued behind T-02
   5 waiting for the limit · 1 done (T-01)
 Ctrl-C stops it; `windlass resume` continues it
""")  # noqa: E501

    def test_a_busy_run_in_ascii(self):
        shown = busy().shown(plain=True)
        assert shown.isascii()
        assert shown == snapshot("""\
- p - 7f3a - 1/14 done - 12m04s - $1.29+ spent of $20.00 - 8.4k tokens --------
 ? T-10 Part 10 of the w~  2/5 asks you 12m04s   $0.00  Which database?
 * T-05 Part 5 of the wh~  1/5 Player   12m04s   $0.00  Editing src/auth/token~
 * T-06 Part 6 of the wh~  1/5 checks   12m04s   $0.92  pytest -q +1
 * T-08 Part 8 of the wh~  1/5 Coach    12m04s   $0.37  starting
 o T-07 Part 7 of the wh~  2/5 limit    12m04s   $0.00  until 14:20Z - 2 must_~
 o T-09 Part 9 of the wh~  1/5 limit    12m04s  $0.00+  until 14:20Z, in 2h07m~
 ^ T-02 Part 2 of the wh~  1/5 merging  12m04s   $0.00  checks on the merged t~
 ^ T-03 Part 3 of the wh~  1/5 approved 12m04s   $0.00  queued behind T-02
   5 waiting for the limit - 1 done (T-01)
 Ctrl-C stops it; `windlass resume` continues it
""")

    def test_what_does_not_fit_is_counted(self):
        assert busy().shown(80, 12) == snapshot("""\
─ p ─ 7f3a ─ 1/14 done ─ 12m04s ─ $1.29+ spent of $20.00 ─ 8.4k tokens ────────
 ? T-10 Part 10 of the w…  2/5 asks you 12m04s   $0.00  Which database?
 ● T-05 Part 5 of the wh…  1/5 Player   12m04s   $0.00  Editing src/auth/token…
 ● T-06 Part 6 of the wh…  1/5 checks   12m04s   $0.92  pytest -q +1
 ● T-08 Part 8 of the wh…  1/5 Coach    12m04s   $0.37  starting
   +4 more
   5 waiting for the limit · 1 done (T-01)
 Ctrl-C stops it; `windlass resume` continues it
""")
        assert busy().shown(80, 7) == snapshot("""\
─ p ─ 7f3a ─ 1/14 done ─ 12m04s ─ $1.29+ spent of $20.00 ─ 8.4k tokens ────────
 ? T-10 Part 10 of the whole  2/5 asks you 12m04s   $0.00  Which database?
   +7 more
""")
        assert len(busy().rows(80, 5)) == 1
        assert busy().rows(80, 4) == []
        assert busy().rows(20, 24) == []

    def test_a_narrow_terminal_leaves_out_what_matters_least(self):
        assert busy().shown(50) == snapshot("""\
─ p ─ 1/14 done ─ 12m04s ─ $1.29+ of $20.00 ─────
 ? T-10 Part…   2/5 asks you 12m04s  Which datab…
 ● T-05 Part…   1/5 Player   12m04s  Editing src…
 ● T-06 Part…   1/5 checks   12m04s  pytest -q +1
 ● T-08 Part…   1/5 Coach    12m04s  starting
 ◷ T-07 Part…   2/5 limit    12m04s  until 14:20…
 ◷ T-09 Part…   1/5 limit    12m04s  until 14:20…
 ⇡ T-02 Part…   1/5 merging  12m04s  checks on t…
 ⇡ T-03 Part…   1/5 approved 12m04s  queued behi…
   5 waiting for the limit · 1 done (T-01)
 Ctrl-C stops it; `windlass resume` continues it
""")
        assert busy().shown(30) == snapshot("""\
─ p ─ 1/14 done ─ $1.29+ ────
 ? T-10 Pa…  2/5 asks you  W…
 ● T-05 Pa…  1/5 Player    E…
 ● T-06 Pa…  1/5 checks    p…
 ● T-08 Pa…  1/5 Coach     s…
 ◷ T-07 Pa…  2/5 limit     u…
 ◷ T-09 Pa…  1/5 limit     u…
 ⇡ T-02 Pa…  1/5 merging   c…
 ⇡ T-03 Pa…  1/5 approved  q…
   5 waiting for the limit ·…
 Ctrl-C stops it; `windlass…
""")

    def test_stages_and_how_far_they_are(self):
        first = Task(id="a", title="First", stage="One")
        second, third = (Task(id=id_, title=id_, stage="Two") for id_ in ("b", "c"))
        run = RecordedRun(first, second, third, stages=("One", "Two")).opened()
        assert "   Stage One: 0/1 · 0 of 2 stages done" in run.shown()
        run.approve("a").merged("a", 1).play("b")
        assert "   Stage Two: 0/2 · 1 of 2 stages done" in run.shown()

    def test_the_base_and_the_tip_are_looked_at(self):
        run = RecordedRun(*tasks(1)).record(
            e.BaselineStarted(at=NOON, commit="b", checks=("pytest -q",)),
            after=MINUTE,
        )
        assert " ● base" in run.shown()
        assert "pytest -q" in run.shown()
        assert "base 0m00s" in heartbeat(run.now, run.views, run.at)
        run.record(e.StopRequested(at=NOON, by="you"))
        assert WHOLE in run.views
        run.record(e.BaselineFinished(at=NOON, commit="b", results=()))
        assert WHOLE not in run.views
        again = RecordedRun(*tasks(1)).opened().approve("T-01").merged("T-01", 1)
        again.record(e.VerificationStarted(at=NOON, commit="m1", tree="m1", checks=()))
        assert " ● the tip" in again.shown()

    def test_it_says_that_it_comes_to_rest(self):
        run = RecordedRun(*tasks(1)).opened().play("T-01")
        assert "Ctrl-C stops it" in run.shown()
        watching = Screen(columns=80, rows=24, watching=True)
        assert "Ctrl-C leaves" in board(run.now, run.views, run.at, watching)[-1].text
        run.record(e.StopRequested(at=NOON, by="you", how="pause"))
        assert "pausing" in run.shown()
        run.record(e.StopRequested(at=NOON, by="you", how="stop"))
        assert "stopping" in run.shown()

    def test_abandoned_and_blocked_tasks_are_counted(self):
        first = Task(id="a", title="First", max_turns=1)
        after = Task(id="b", title="Second", depends_on=("a",))
        run = RecordedRun(first, after).opened().play("a").finish("a")
        run.record(
            e.TurnReturned(at=NOON, task="a", cause="checks", feedback="red"),
            e.TaskAbandoned(at=NOON, task="a", reason="its turns are used up"),
        )
        assert "   1 abandoned (a) · 1 blocked" in run.shown()

    def test_a_provider_that_cannot_be_reached_is_named_first(self):
        why = "cannot reach api.example: name not found"
        run = RecordedRun(*tasks(1)).opened().play("T-01")
        run.record(
            e.PlayerFailed(
                at=NOON,
                task="T-01",
                n=1,
                failure=e.Failure.TRANSIENT,
                message=why,
                usage=e.Usage(),
                unreached=True,
            ),
            e.SnapshotStarted(at=NOON, task="T-01", n=1, kind="partial"),
            e.SnapshotTaken(
                at=NOON, task="T-01", n=1, kind="partial", commit="c", tree="c", changed=False
            ),
            e.WaitStarted(
                at=NOON,
                task="T-01",
                until=NOON + timedelta(seconds=9),
                failure=e.Failure.TRANSIENT,
            ),
        )
        assert f"{why} · until 12:00Z, in 0m09s" in run.shown(140)

    def test_returned_without_words_and_waiting_until_another_day(self):
        run = RecordedRun(*tasks(3)).opened().play("T-01").finish("T-01")
        run.record(e.TurnReturned(at=NOON, task="T-01", cause="checks", feedback=""))
        run.play("T-02").record(
            e.PlayerFailed(
                at=NOON,
                task="T-02",
                n=1,
                failure=e.Failure.TRANSIENT,
                message="the provider did not answer",
                usage=e.Usage(),
            ),
            e.SnapshotStarted(at=NOON, task="T-02", n=1, kind="partial"),
        )
        assert "saving" in run.shown()
        assert "the provider did not answer" in run.shown(140)
        run.record(
            e.SnapshotTaken(
                at=NOON, task="T-02", n=1, kind="partial", commit="c", tree="c", changed=False
            ),
            e.WaitStarted(
                at=NOON,
                task="T-02",
                until=NOON + timedelta(days=2),
                failure=e.Failure.TRANSIENT,
            ),
        )
        assert "until 2026-01-03 12:00Z, in 2d00h (transient)" in run.shown(140)

    def test_the_merge_queue_is_shown_in_its_order(self):
        run = RecordedRun(*tasks(3)).opened().approve("T-03").approve("T-01").approve("T-02")
        merging = [row.text.split()[1] for row in run.rows() if "⇡" in row.text]
        assert merging == ["T-03", "T-01", "T-02"]
        assert "T-03 Part 3 of the whole" in run.shown()
        assert "to be merged" in run.shown()
        assert "queued behind T-01" in run.shown()
        run.merge("T-03", 1)
        assert run.shown().count("queued behind T-03") == 2
        assert "onto the tip" in run.shown()

    def test_a_person_at_work_is_named(self):
        run = RecordedRun(*tasks(1)).opened().play("T-01").finish("T-01")
        run.record(
            e.TurnReturned(at=NOON, task="T-01", cause="checks", feedback="red"),
            e.TaskTaken(at=NOON, task="T-01", n=2, turn=1, start="c", onto=None, by="Ada"),
        )
        assert "taken" in run.shown()
        assert "by Ada" in run.shown()

    def test_what_an_agent_says_is_forgotten_when_the_next_begins(self):
        run = RecordedRun(*tasks(1)).opened().play("T-01").add_activity("T-01", "Reading a.py")
        assert "Reading a.py" in run.shown()
        run.record(
            e.SpendReserved(at=NOON, id="1", task="T-01", role="player", model="m", usd=0.5),
            after=MINUTE,
        )
        assert "0m00s" not in run.shown().splitlines()[1]
        run.add_activity("T-01", "", "text").add_activity("T-01", "over", "end").add_activity(
            "nobody", "x"
        )
        assert "Reading a.py" in run.shown()
        run.finish("T-01").checked("T-01").coach("T-01")
        assert "Reading a.py" not in run.shown()
        assert "starting" in run.shown()

    def test_a_heartbeat_says_all_of_it_in_a_line(self):
        run = busy()
        said = heartbeat(run.now, run.views, run.at)
        assert said.split(" · ") == snapshot(
            [
                "1/14 done",
                "12m04s",
                "$1.29+ spent of $20.00",
                "T-10 asks you 12m04s",
                "T-05 Player 12m04s",
                "T-06 checks 12m04s",
                "T-08 Coach 12m04s",
                "T-07 limit 12m04s",
                "T-09 limit 12m04s",
                "+2 more",
            ]
        )

    def test_a_narrow_title_shortens_the_cost_and_never_hides_an_estimate(self):  # B6
        run = RecordedRun(*tasks(1)).opened()
        spent, lost = e.Usage(cost_usd=4.5), e.Usage(cost_usd=0.5, known=False)
        for id_, usage in (("1", spent), ("2", lost), ("3", None)):
            asked = {"id": id_, "task": "T-01", "role": "player", "model": "m"}
            run.record(e.SpendReserved(at=NOON, usd=6.0, **asked))
            if usage is not None:
                run.record(e.SpendSettled(at=NOON, id=id_, task="T-01", usage=usage))
        full = "$4.50 spent · $0.50 estimated · $4.50 reserved of $20.00"
        titles = {width: run.rows(width, 24)[0].text.rstrip("─ ") for width in range(25, 121)}
        assert titles[120].endswith(f"─ 0/1 done ─ 0m00s ─ {full}")
        assert titles[80].endswith("─ ~$5.00 · $4.50 reserved of $20.00")
        assert titles[60].endswith("─ ~$5.00 · $4.50 reserved of $20.00")
        assert titles[50].endswith("─ ~$5.00 of $20.00")
        assert titles[25].endswith("─ ~$5.00")
        assert all(full in title or "~$5.00" in title for title in titles.values())

    def test_a_long_name_of_a_plan_leaves_room_for_the_cost(self):  # B6
        run = busy()
        run.state = replace(run.now, plan=replace(run.now.plan, id="a-plan-with-a-long-name-" * 2))
        for width in range(25, 121):
            assert "$1.29+" in run.rows(width, 24)[0].text

    def test_every_phase_has_a_word(self):
        # A phase without one would break the screen of the run that gets there.
        run = busy()
        task = run.now.tasks["T-05"]
        coached = replace(task.last, coachings=run.now.tasks["T-08"].last.coachings)
        for phase in set(Phase) - {Phase.PENDING, Phase.MERGED, Phase.ABANDONED}:
            changed = replace(task, phase=phase, attempts=(coached,))
            queue = ("T-05",) if phase is Phase.APPROVED else ()
            state = replace(run.now, tasks={**run.now.tasks, "T-05": changed}, queue=queue)
            rows = board(state, run.views, run.at, Screen(columns=80, rows=24))
            assert any(" T-05 " in row.text for row in rows)
            assert phase not in HELPLESS or " ? T-05" in "".join(row.text for row in rows)


@given(
    width=st.integers(0, 200),
    height=st.integers(0, 60),
    text=st.one_of(st.just(HOSTILE), st.text(max_size=60)),
    plain=st.booleans(),
)
def test_no_row_is_too_wide_no_footer_too_high_and_no_text_does_anything(
    width: int,
    height: int,
    text: str,
    plain: bool,  # noqa: FBT001
):
    run = RecordedRun(
        Task(id="a", title=text or "-"), Task(id="b", title=text or "-"), *tasks(18), agents=20
    ).opened()
    for id_ in ("a", "b", *(f"T-{n:02d}" for n in range(1, 19))):
        run.play(id_).add_activity(id_, text, "text")
    rows = run.rows(width, height, plain=plain)
    assert len(rows) <= max(0, min(16, height - 4))
    for row in rows:
        assert columns(row.text) <= max(0, width - 1)
        assert not any(unicodedata.category(char) in {"Cc", "Zl", "Zp"} for char in row.text)
        assert not set(row.text) & {"\u202e", "\u2066", "\u200b"}
        assert row.text.isascii() or not plain


@given(st.text(), st.integers(1, 60))
def test_folding_and_cutting_lose_nothing_and_spill_nothing(text: str, width: int):
    line = " ".join(text.split())
    parts = folded(line, width)
    assert "".join("".join(parts).split()) == "".join(line.split())
    assert all(columns(part) <= width or len(part) == 1 for part in parts)
    assert columns(cut(line, width)) <= width
    assert columns(padded(cut(line, width), width)) == width
    assert cut(line, 0) == ""
    assert columns(ascii_only(line)) == columns(line)


def test_words_stay_together_where_they_fit():
    assert folded("aa bb cccccc d", 5) == ["aa bb", "ccccc", "c d"]
    assert folded("  aa bb " + "c" * 24, 30) == ["  aa bb", "  " + "c" * 24]


def test_clocks():
    said = [clock(seconds) for seconds in (0, 44.9, 724, 3600, 7651, 86400 * 3 + 4 * 3600)]
    assert said == ["0m00s", "0m44s", "12m04s", "1h00m", "2h07m", "3d04h"]
    assert bracketed(372) == "[   6m12s]"
    assert bracketed(None) == " " * 10


def test_a_whole_run_can_be_watched_at_every_moment():
    # Whatever a run comes through, its footer can be drawn.
    world = World(plan_of(*tasks(4)), {f"T-{n:02d}": writes(f"{n}", "x") for n in range(1, 5)})
    world.go()
    state, views = None, {}
    for event in world.events:
        state = apply(state, event)
        views = after_event(views, event, state)
        assert board(state, views, datetime(2026, 1, 2, tzinfo=UTC), Screen(columns=80, rows=24))
    assert WHOLE not in views


class TestIdle:
    """A task that nobody works on does not look as if somebody did."""

    UNTIL = NOON + timedelta(hours=2, minutes=20)

    def test_a_limit_freezes_all_that_use_the_model_and_every_row_says_so(self):
        run = RecordedRun(*tasks(5)).opened()
        run.play("T-01").finish("T-01").checked("T-01")
        run.play("T-02").finish("T-02").back("T-02")
        run.play("T-03").add_activity("T-03", "Reading a.py")
        run.play("T-04").limited("T-04", self.UNTIL)
        assert run.shown() == snapshot("""\
─ p ─ 7f3a ─ 0/5 done ─ 0m00s ─ $0.00+ spent of $20.00 ─ 2.4k tokens ──────────
 ● T-03 Part 3 of the wh…  1/5 Player    0m00s   $0.00  Reading a.py
 ◷ T-01 Part 1 of the wh…  1/5 limit     0m00s   $0.00  until 14:20Z
 ◷ T-02 Part 2 of the wh…  2/5 limit     0m00s   $0.00  until 14:20Z · The tes…
 ◷ T-04 Part 4 of the wh…  1/5 limit     0m00s  $0.00+  until 14:20Z, in 2h20m…
   1 waiting for the limit
 Ctrl-C stops it; `windlass resume` continues it
""")

    def test_where_nobody_says_until_when(self):
        run = RecordedRun(*tasks(2)).opened().play("T-01").finish("T-01").checked("T-01")
        run.play("T-02").left("T-02", failure=e.Failure.USAGE_LIMIT)
        assert " ◷ T-01" in run.shown()
        assert "limit     0m00s   $0.00  for the limit" in run.shown()

    def test_the_latest_end_counts_and_another_model_is_free(self):
        run = RecordedRun(*tasks(4), coach_model="other").opened()
        run.play("T-01").finish("T-01").back("T-01")
        run.play("T-02").limited("T-02", self.UNTIL)
        run.play("T-03").limited("T-03", self.UNTIL - MINUTE)
        run.play("T-04").finish("T-04").checked("T-04")
        assert run.shown(140) == snapshot("""\
─ p ─ 7f3a ─ 0/4 done ─ 0m00s ─ $0.00+ spent of $20.00 ─ 2.4k tokens ──────────────────────────────────────────────────────────────────────
 ◷ T-01 Part 1 of the whole  2/5 limit     0m00s     1.2k   $0.00  until 14:20Z · The tests are red.
 ◷ T-02 Part 2 of the whole  1/5 limit     0m00s        0  $0.00+  until 14:20Z, in 2h20m (usage limit)
 ◷ T-03 Part 3 of the whole  1/5 limit     0m00s        0  $0.00+  until 14:19Z, in 2h19m (usage limit)
 ◷ T-04 Part 4 of the whole  1/5 waits     0m00s     1.2k   $0.00  for an agent
 Ctrl-C stops it; `windlass resume` continues it
""")  # noqa: E501

    def test_whoever_waits_for_an_agent_or_a_test_slot_comes_after_those_at_work(self):
        run = RecordedRun(*tasks(5), agents=1, test_slots=1).opened()
        run.play("T-01").finish("T-01").checked("T-01")
        run.play("T-02").finish("T-02")
        run.play("T-03").finish("T-03").check("T-03", "pytest -q")
        run.play("T-04").finish("T-04").back("T-04")
        run.play("T-05")
        assert run.shown(100) == snapshot("""\
─ p ─ 7f3a ─ 0/5 done ─ 0m00s ─ $0.00 spent of $20.00 ─ 4.8k tokens ───────────────────────────────
 ● T-03 Part 3 of the whole  1/5 checks    0m00s   $0.00  pytest -q
 ● T-05 Part 5 of the whole  1/5 Player    0m00s   $0.00  starting
 ◷ T-01 Part 1 of the whole  1/5 waits     0m00s   $0.00  for an agent
 ◷ T-02 Part 2 of the whole  1/5 waits     0m00s   $0.00  for a test slot
 ◷ T-04 Part 4 of the whole  2/5 waits     0m00s   $0.00  for an agent · The tests are red.
 Ctrl-C stops it; `windlass resume` continues it
""")

    def test_a_check_that_is_to_be_run_once_more_waits_for_a_slot_again(self):
        run = RecordedRun(*tasks(2), agents=1, test_slots=1).opened()
        late = e.CheckResult(
            command="pytest -q", outcome=e.Outcome.ABSENT, absence=e.Absence.TIMED_OUT
        )
        run.play("T-01").finish("T-01").check("T-01", "pytest -q").record(
            e.ChecksFinished(at=NOON, task="T-01", commit="T-011", tree="T-011", results=(late,))
        )
        run.play("T-02").finish("T-02").check("T-02", "pytest -q")
        assert "for a test slot" in run.shown()

    def test_a_run_that_pauses_starts_no_more_turns(self):
        run = RecordedRun(*tasks(1)).opened().play("T-01").finish("T-01").back("T-01", "Mend it.")
        run.record(e.StopRequested(at=NOON, by="you", how="pause"))
        assert "for `windlass resume`" in run.shown(120)

    def test_a_scenario_that_was_answered_waits_for_what_is_not_merged(self):
        run = RecordedRun(*tasks(1)).opened()
        spec = replace(run.now.specs["T-01"], scenario=True)
        task = replace(run.play("T-01").now.tasks["T-01"], phase=Phase.RETURNED, turn=0)
        run.state = replace(run.now, specs={"T-01": spec}, tasks={"T-01": task})
        assert "for the other tasks" in run.shown()

    def test_a_failure_that_stops_all_is_told_in_its_own_words(self):
        run = RecordedRun(*tasks(2)).opened().play("T-01")
        run.left("T-01", failure=e.Failure.AUTH, why="the provider refused the credentials")
        run.play("T-02").finish("T-02").checked("T-02").coach("T-02")
        run.record(
            e.CoachFailed(
                at=NOON,
                task="T-02",
                n=1,
                k=1,
                failure=e.Failure.AUTH,
                message="the same here",
                usage=e.Usage(),
            )
        )
        assert "failed    0m00s  $0.00+  the provider refused the" in run.shown(100)
        assert "the same here" in run.shown(100)


class TestHeard:
    def test_what_an_agent_said_before_it_ended_is_not_the_next_ones(self):
        # Whoever looks on reads facts first, and then what was said before them.
        run = RecordedRun(*tasks(1)).opened().play("T-01").finish("T-01").check("T-01", "pytest -q")
        run.add_activity("T-01", "Writing a.py", role="player", n=1)
        assert "Writing a.py" not in run.shown()
        assert "pytest -q" in run.shown()
        run.record(
            e.ChecksFinished(at=NOON, task="T-01", commit="T-011", tree="T-011", results=())
        ).coach("T-01")
        run.add_activity("T-01", "Writing b.py", role="player", n=1)
        assert "Writing b.py" not in run.shown()
        run.add_activity("T-01", "Reading the diff", role="coach", n=1)
        assert "Reading the diff" in run.shown()
        run.answer("T-01", Issue(severity="must_fix", category="c", description="d"))
        run.record(e.TurnReturned(at=NOON, task="T-01", cause="review", feedback="Mend it."))
        run.play("T-01", n=2).add_activity("T-01", "Writing c.py", role="player", n=1)
        assert "starting" in run.shown()
        run.add_activity("T-01", "Writing d.py", role="player", n=2)
        assert "Writing d.py" in run.shown()


def test_what_does_not_fit_beside_its_beginning_goes_on_below_it():
    assert hanging("12:00  ", "aa bb", None) == ["12:00  aa bb"]
    assert hanging("12:00  ", "aa bb", 12) == ["12:00  aa bb"]
    below = ["12:00  a text of some", "       words"]
    assert hanging("12:00  ", "a text of some words", 24) == below
    assert hanging("12:00  ", "a text of some words", 9) == below, "no narrower than is legible"
    assert hanging("12:00  ", "", 80) == ["12:00"]
