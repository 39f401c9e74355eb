"""Every command that writes, under faults: broken anywhere and called again, it comes to its end.

A sample in CI; `windlass selftest crash --command all --points all` takes every call.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass.selftest.commands import KINDS, CommandTester
from windlass.selftest.picture import leftovers, picture
from windlass.selftest.place import Rehearsals
from windlass.selftest.scenes import COMMANDS, SCENES, Scene, set_up
from windlass.selftest.series import Share, temporary_folder
from windlass.testing.faults.shim import Mode

SAMPLE = {"killed": 6, "killed twice": 1, "git killed": 3, "power lost": 3, "disk": 3}

pytestmark = [
    pytest.mark.skipif(not shutil.which("cc"), reason="a C compiler is needed"),
    pytest.mark.timeout(900),
]


@pytest.fixture
def rehearsals() -> Iterator[Rehearsals]:
    with temporary_folder() as folder, Rehearsals.at(folder / "place", level="auto") as made:
        yield made


@pytest.mark.parametrize("scene", SCENES, ids=[scene.name for scene in SCENES])
def test_a_command_that_is_broken_anywhere_comes_to_its_end(
    rehearsals: Rehearsals, scene: Scene
):  # B4 K3 X7
    tester = CommandTester(rehearsals, scene)
    for kind, count in SAMPLE.items():
        found = list(KINDS[kind](tester, Share(count, seed=1)))
        assert [finding for finding in found if finding.faults] == [], kind
        # On a busy machine git waits for a lock once more or less, so a point may not come up.
        missed = sum(not finding.reached for finding in found)
        assert kind == "killed twice" or missed <= 1, kind


def test_every_command_that_writes_is_swept():
    wanted = "land pr take give reset retry clean adopt recover abort init"
    assert set(wanted.split()) == set(COMMANDS)


def scene_named(name: str) -> Scene:
    return next(scene for scene in SCENES if scene.name == name)


SPOILT = {
    "stale locks": lambda repo: (repo / ".git/index.lock").touch(),
    "README.md was touched": lambda repo: (repo / "README.md").write_text("gone\n"),
    "git status is": lambda repo: (repo / "a.txt").write_text("half"),
    "the ref refs/heads/main is": lambda repo: git(repo, "update-ref", "refs/heads/main", "HEAD~1"),
    "a landing is left": lambda repo: (repo / ".git/windlass-land").mkdir(),
    "facts, and now has": lambda repo: (repo / ".windlass/plans/plan/journal.db").unlink(),
    "left in repo": lambda repo: (repo / ".windlass-1.tmp").touch(),
}


def git(repo: Path, *args: str) -> None:
    subprocess.run(["git", *args], cwd=repo, check=True)


@pytest.fixture(scope="module")
def landed() -> Iterator[tuple[Rehearsals, CommandTester, Path]]:
    with temporary_folder() as folder, Rehearsals.at(folder / "place", level="auto") as made:
        tester = CommandTester(made, scene_named("land"))
        kept = folder / "landed"
        shutil.copytree(made.place.repo, kept, symlinks=True)
        yield made, tester, kept


@pytest.mark.parametrize("fault", SPOILT)
def test_the_judge_of_commands_sees(landed: tuple[Rehearsals, CommandTester, Path], fault: str):
    rehearsals, tester, kept = landed
    shutil.rmtree(rehearsals.place.repo)
    shutil.copytree(kept, rehearsals.place.repo, symlinks=True)
    assert list(tester.faults()) == []
    SPOILT[fault](rehearsals.place.repo)
    assert fault in " ".join(tester.faults())


def test_a_landing_that_died_is_settled_by_any_command_that_opens_the_run(
    rehearsals: Rehearsals,
):  # B4
    """The user need not land again to have their checkout back."""
    tester = CommandTester(rehearsals, scene_named("land"))
    place = rehearsals.place
    for again in (("abort", "plan", "--yes"), ("clean", "--yes")):
        place.reset()
        before = picture(place)
        died = _killed_where(rehearsals, tester, "index.lock")
        assert died, "no landing died with the index locked"
        assert rehearsals.call(*again) in {0, 2}, place.output.read_text()
        assert list(leftovers(place)) == []
        after = picture(place)
        for name in ("the ref refs/heads/main", "git status", "the index"):
            assert after[name] == before[name]


def _killed_where(rehearsals: Rehearsals, tester: CommandTester, lock: str) -> bool:
    """Kill the landing while git writes a file: half of it is there, and the lock is."""
    done = [(line.what, line.path) for line in tester._lines]
    number = next(n for n, (_, path) in enumerate(done) if path.endswith("/shared.txt"))
    # A write has two points, before it and in it. Two calls are not the same to a point or two.
    near = number + sum(what == "write" for what, _ in done[:number])
    for at in range(max(1, near - 20), tester.calls):
        rehearsals.place.reset()
        rehearsals.control.order(Mode.KILL, at)
        rehearsals.call(*tester.scene.argv)
        hit = rehearsals.control.hit()
        if hit.what == "write in half" and hit.where.endswith("/shared.txt"):
            rehearsals.control.order(Mode.COUNT)
            return (rehearsals.place.repo / ".git" / lock).exists()
    return False


def test_selftest_tells_of_commands_for_programs():
    argv = [sys.executable, "-m", "windlass", "selftest", "crash"]
    done = subprocess.run(
        [*argv, "--command", "init", "--points", "2", "--json"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["commands"]
    assert [each["command"] for each in told] == ["init"]
    faults = told[0]["faults"]
    assert not any(row["broken"] for row in faults)
    assert all(row["points"] for row in faults if row["fault"] != "killed twice")


def test_a_scene_is_the_same_each_time(rehearsals: Rehearsals):
    set_up(rehearsals, scene_named("land"))
    before = picture(rehearsals.place)
    rehearsals.place.reset()
    assert picture(rehearsals.place) == before
