"""Whole runs under faults: killed anywhere, without power, on a disk that takes no more.

A sample in CI; `make sweep` runs `windlass selftest crash` with more than a thousand points.
"""

import errno
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from windlass.app.wiring import Project
from windlass.core.events import model as e
from windlass.selftest import series
from windlass.selftest.command import ALL, tally
from windlass.selftest.judge import INTEGRATION, Judge, call_faults, cost_faults
from windlass.selftest.place import Place, Rehearsals
from windlass.selftest.series import KINDS, RunTester, Share, temporary_folder
from windlass.selftest.sweep import ERRORS, Finding, Sweep, disk_error_faults, doubles, spread
from windlass.testing.faults.shim import Mode
from windlass.testing.faults.story import COST, PLAN_ID, STATE_FILE

SAMPLE = {
    "killed": 24,
    "killed twice": 8,
    "power lost": 12,
    "disk full, failing or read-only": 12,
}
PARTS = 4
"""So that workers of pytest share them."""

pytestmark = [
    pytest.mark.skipif(not shutil.which("cc"), reason="a C compiler is needed"),
    pytest.mark.timeout(900),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    with temporary_folder() as made:
        yield made / "place"


@pytest.fixture
def rehearsals(folder: Path) -> Iterator[Rehearsals]:
    with Rehearsals.at(folder, level="auto") as made:
        yield made


@pytest.mark.parametrize("part", range(PARTS))
def test_no_fault_loses_or_doubles_anything(rehearsals: Rehearsals, part: int):  # B4 X7 K3
    tester = RunTester(rehearsals)
    assert tester.sees_all
    for kind, count in SAMPLE.items():
        found = list(KINDS[kind](tester, Share(count, seed=1, part=part, parts=PARTS)))
        assert [finding for finding in found if finding.faults] == [], kind
        reached = sum(finding.reached for finding in found)
        # Two runs are not call for call the same, and a short resume may miss the second kill.
        assert reached >= len(found) * (0.6 if kind == "killed twice" else 0.9), kind


def test_without_a_compiler_the_points_are_those_that_python_tells_of(folder: Path):
    with Rehearsals.at(folder, level="none", shim=False) as rehearsals:
        assert not rehearsals.sees_all
        sweep = Sweep(rehearsals)
        found = [sweep.kill(at) for at in spread(sweep.calls, 4)]
        found += [sweep.kill(*pair) for pair in doubles(sweep.calls, 2)]
        found += [sweep.fail(at, errno.ENOSPC, Mode.FAIL) for at in spread(sweep.calls, 3)]
    assert [finding for finding in found if finding.faults] == []
    assert all(finding.reached for finding in found[:4])
    # git is started by Windlass, and is one of the points.
    assert sweep.calls > 300


def test_the_calls_of_git_are_counted_and_writes_are_cut_in_half(rehearsals: Rehearsals):
    rehearsals.place.reset()
    rehearsals.control.order(Mode.LOG)
    assert rehearsals.run() == 0
    lines = rehearsals.control.log.read_text().splitlines()
    done = [line.split("\t")[1:3] for line in lines]
    objects = f"{rehearsals.place.repo}/.git/objects/"
    assert sum(path.startswith(objects) for _, path in done) > 100
    assert ["sync", f"{rehearsals.place.repo}/.windlass/plans/plan/journal.db-wal"] in done
    # One point before each write, and one in it.
    writes = sum(what == "write" for what, _ in done)
    assert rehearsals.control.hit().count > len(done) - len(lines) + writes * 1.5


@pytest.mark.parametrize("beside", ["", "-wal"])
def test_a_journal_damaged_in_the_middle_of_a_run_is_refused_or_harmless(
    rehearsals: Rehearsals, beside: str
):  # B4
    """After a kill its last appends lie in the file beside it; any byte of either may be hurt."""
    sweep, place = Sweep(rehearsals), rehearsals.place
    rehearsals.place.reset()
    rehearsals.control.order(Mode.KILL, sweep.calls // 2)
    assert rehearsals.run() < 0
    rehearsals.control.order(Mode.COUNT)
    path = place.repo / f".windlass/plans/{PLAN_ID}/journal.db{beside}"
    if not beside:
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copytree(place.repo, place.folder / "killed", symlinks=True)
    data = path.read_bytes()
    refused = 0
    for at in spread(len(data) - 1, 4):
        for damage in (data[:at], data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]):
            shutil.rmtree(place.repo)
            shutil.copytree(place.folder / "killed", place.repo, symlinks=True)
            path.write_bytes(damage)
            code = rehearsals.run("resume")
            output = place.output.read_text()
            if code == 3:
                refused += 1
                assert "`windlass recover`" in output
                assert output.count("\n") == 1
                assert path.read_bytes() == damage, "it is left as it was found"
            else:
                assert code == 0, output
                assert sweep.judge.faults(breaks=2, ledger=False) == []
    assert refused >= (4 if not beside else 1)


# The judge


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("judged") / "place"
    with Rehearsals.at(folder, level="auto") as rehearsals:
        assert rehearsals.run() == 0
        shutil.copytree(rehearsals.place.repo, folder / "ended", symlinks=True)
        shutil.copy(rehearsals.place.ledger, folder / "ended-ledger")
    return rehearsals.place


@pytest.fixture
def judged(ended: Place) -> tuple[Place, Judge]:
    """A run that is over, and its judge."""
    judge = Judge(ended)
    shutil.rmtree(ended.repo)
    shutil.copytree(ended.folder / "ended", ended.repo, symlinks=True)
    shutil.copy(ended.folder / "ended-ledger", ended.ledger)
    assert judge.faults(breaks=0) == []
    return ended, judge


def _commit_on_top(place: Place, file: str, text: str) -> None:
    blob = place.git("hash-object", "-w", "--stdin", stdin=text)
    env = {"GIT_INDEX_FILE": str(place.folder / "index")}
    place.git("read-tree", INTEGRATION, **env)
    place.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{file}", **env)
    commit = place.git(
        "commit-tree", place.git("write-tree", **env), "-p", INTEGRATION, stdin="more"
    )
    place.git("update-ref", INTEGRATION, commit)


def _edit_journal(place: Place, statement: str) -> None:
    with sqlite3.connect(place.repo / f".windlass/plans/{PLAN_ID}/journal.db") as db:
        db.execute(statement)
    db.close()


def _call_again(place: Place) -> None:
    with place.ledger.open("a") as file:
        file.write("player a 1\n")


SPOILT = {
    "the tree is another": lambda place: _commit_on_top(place, "a.txt", "something else\n"),
    "branch does not show the tip": lambda place: place.git(
        "update-ref", INTEGRATION, f"{INTEGRATION}^"
    ),
    "user's README.md": lambda place: (place.repo / "README.md").write_text("edited\n"),
    "user's .git/HEAD": lambda place: place.git("switch", "--quiet", "--create", "mine"),
    "user's .git/index": lambda place: place.git("rm", "--quiet", "--cached", "README.md"),
    "user's litter.tmp": lambda place: (place.repo / "litter.tmp").touch(),
    "stale locks": lambda place: (place.repo / ".git/refs/heads/x.lock").touch(),
    "left in throwaway": lambda place: (
        place.repo / f".windlass/plans/{PLAN_ID}/throwaway/x"
    ).mkdir(parents=True),
    "was not written": lambda place: (place.repo / STATE_FILE).unlink(),
    "cannot be judged": lambda place: shutil.rmtree(place.repo / ".git/objects"),
    "played twice": _call_again,
}


@pytest.mark.parametrize("fault", SPOILT)
def test_the_judge_sees(judged: tuple[Place, Judge], fault: str):
    place, judge = judged
    SPOILT[fault](place)
    assert fault in " ".join(judge.faults(breaks=0))


def _last(events: list[e.Event], kind: type[e.Event]) -> e.Event:
    return [event for event in events if isinstance(event, kind)][-1]


@pytest.mark.parametrize(
    ("wrong", "spoil"),
    [
        ("USD are in the journal", lambda seen: seen.remove(_last(seen, e.SpendSettled))),
        ("recorded twice", lambda seen: seen.append(_last(seen, e.SpendSettled))),
        ("recorded twice", lambda seen: seen.append(_last(seen, e.SpendReserved))),
        ("recorded twice", lambda seen: seen.append(_last(seen, e.CoachAnswered))),
        ("never reserved", lambda seen: seen.remove(_last(seen, e.SpendReserved))),
        ("requests settled", lambda seen: seen.remove(_last(seen, e.CoachAnswered))),
    ],
)
def test_the_judge_counts(
    judged: tuple[Place, Judge], wrong: str, spoil: Callable[[list[e.Event]], None]
):  # G13
    """Every request is reserved once, settled once, and told at what it came to."""
    place, _ = judged
    project = Project(place.repo, place.environment)
    events = [entry.event for entry in project.journals.entries(PLAN_ID)]
    told = project.journals.state_file(PLAN_ID)
    assert told is not None
    assert told.metrics.cost_usd == round(len(_calls(place)) * COST.cost_usd, 6)
    assert [*cost_faults(events, told), *call_faults(events, _calls(place), 0)] == []
    spoil(events)
    faults = [*cost_faults(events, told), *call_faults(events, _calls(place), 0)]
    assert wrong in " ".join(faults)


def _calls(place: Place) -> list[str]:
    return place.ledger.read_text().split("\n")[:-1]


ON = "then run `windlass resume plan.md`"
FULL, BROKEN = (
    f"the disk is full: 'x'; make room, {ON}",
    f"the disk cannot be read or written; {ON}",
)


@pytest.mark.parametrize(
    ("code", "output", "mode", "wrong"),
    [
        (4, FULL, Mode.FAIL_ON, []),
        (0, "", Mode.FAIL_ON, []),
        (1, FULL, Mode.FAIL, ["a disk that fails gives 1, not 4"]),
        (4, "the disk is full", Mode.FAIL, ["it does not say how to continue"]),
        (4, f"mend that, {ON}", Mode.FAIL, ["it does not say that the disk is full"]),
        (4, BROKEN, Mode.FAIL_ON, ["it does not say that the disk is full"]),
        (4, f"`git add` failed with 128: no; {ON}", Mode.FAIL_ON, ["it does not say that the"]),
        (4, f"`git add` failed with 128: no; {ON}", Mode.FAIL, []),
        (4, BROKEN, Mode.FAIL, []),
    ],
)
def test_the_judge_hears(code: int, output: str, mode: Mode, wrong: list[str]):
    """A disk that fails is called by its own name, and the next command is named."""
    heard = list(disk_error_faults(code, output, errno.ENOSPC, mode))
    assert len(heard) == len(wrong)
    assert all(word in fault for word, fault in zip(wrong, heard, strict=True))


def test_held_and_broken_points_make_up_all_that_count():
    held, missed = Finding(name="a", reached=True), Finding(name="b", reached=False)
    broken = Finding(name="c", reached=True, faults=("x",))
    unreached = Finding(name="d", reached=False, faults=("x",))
    assert tally([held, held, missed, broken, unreached]) == (4, [broken, unreached])


def test_every_call_can_be_asked_for():
    assert spread(3400, ALL) == list(range(1, 3401))
    assert [first for first, _ in doubles(3400, ALL // 2)] == list(range(1, 3401))
    # Six seeds have every error at every call, that call alone and all from it on.
    for i in range(6):
        tried = {series.disk_fault(i + seed) for seed in range(6)}
        assert len(tried) == len(ERRORS) * 2


def test_the_judge_sees_what_is_left_running(judged: tuple[Place, Judge], monkeypatch):
    place, judge = judged
    monkeypatch.setattr("windlass.selftest.judge.PATIENCE", 0.1)
    with subprocess.Popen(["sleep", "60"], cwd=place.repo) as left:
        try:
            assert f"left running: [{left.pid}]" in judge.faults(breaks=0)
        finally:
            left.kill()


def test_a_sweep_that_is_interrupted_ends_after_the_points_it_is_at():
    made: list[int] = []

    def points(share: Share) -> Iterator[Finding]:
        for number in range(share.count):
            made.append(number)
            yield Finding(name=str(number), reached=True)

    found = series.in_parallel([points, points], 1_000_000, 0)
    next(found)
    found.close()
    assert len(made) < 1_000_000
