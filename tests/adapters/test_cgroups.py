"""Control groups: where they are made, what they bound, and that none is left behind."""  # B5

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from windlass.adapters.processes import cgroups
from windlass.adapters.processes.cgroups import (
    Group,
    Place,
    find_place,
    grouped,
    remove_leftovers,
    where,
)
from windlass.adapters.processes.limits import Limits
from windlass.adapters.sandbox.box import Box, Sandbox
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.commands import Finished, run
from windlass.adapters.sandbox.plain import Plain

PATH = "/usr/local/bin:/usr/bin:/bin"

BOUNDS = Limits(memory=100_000_000, processes=10)


@pytest.fixture
def place() -> Place:
    found = where()
    if isinstance(found, str):
        pytest.skip(f"without control groups: {found}")
    return found


def ours(place: Place) -> set[str]:
    """The groups that this process has made and not removed."""
    name = f"{cgroups.NAME}{os.getpid()}-*"
    return {str(path) for folder in place.folders for path in folder.glob(name)}


def waited_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline
        os.sched_yield()


def test_a_program_is_in_its_group_from_the_first(place: Place):
    with grouped(BOUNDS) as group:
        assert group is not None
        assert len(ours(place)) == len(group.folders)
        told = subprocess.check_output(group.entered(["cat", "/proc/self/cgroup"]), text=True)
        name = group.folders[0].name
        assert told.count(name) == len(group.folders)
        bound = "pids.max"
        assert (group.folders[-1] / bound).read_text() == "84\n"
    assert ours(place) == set()


def test_the_kernel_keeps_the_bound_of_all_together(place: Place):
    """Eight processes that have 40 MB each, while no one looks at any of them."""
    hog = "import signal; kept = bytes([1]) * 40_000_000; signal.pause()"
    with grouped(BOUNDS) as group:
        assert group is not None
        command = group.entered([f"{sys.base_prefix}/bin/python3", "-c", hog])
        started = [subprocess.Popen(command) for _ in range(8)]
        waited_for(lambda: group.use().killed > 0)
        assert group.use().most <= 100_000_000 * 1.125 + 32_000_000 + 4096
    assert {process.wait(10) for process in started} == {-signal.SIGKILL}
    assert ours(place) == set()


def test_no_more_can_be_forked_than_the_bound_allows(place: Place):
    script = "i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done; echo all of them"
    with grouped(BOUNDS) as group:
        assert group is not None
        process = subprocess.Popen(
            group.entered(["sh", "-c", script]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        process.wait(30)
        assert 10 < group.use().processes <= 84
    assert ours(place) == set(), "all of them are ended, and the group is gone"


def test_what_a_killed_windlass_left_is_ended_and_removed(place: Place):
    group = Group(place, f"{cgroups.NAME}{os.getpid()}-left")
    group.make(BOUNDS)
    living = Group(place, f"{cgroups.NAME}{os.getpid()}-living")
    living.make(BOUNDS)
    processes = [subprocess.Popen(each.entered(["sleep", "600"])) for each in (group, living)]
    waited_for(lambda: all(each.use().processes for each in (group, living)))
    while group._held:  # as the kernel does it for a process that is killed
        os.close(group._held.pop())
    try:
        assert remove_leftovers(place) >= 1
        assert processes[0].wait(10) == -9
        assert processes[1].poll() is None, "who is held is alive"
    finally:
        living.end()
        assert processes[1].wait(10) == -9
    assert ours(place) == set()


def test_a_group_that_cannot_be_made_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(cgroups, "where", lambda: Place(2, tmp_path, tmp_path))
    with grouped(BOUNDS) as group:
        assert group is None, "a plain folder has no bounds to set"
    assert list(tmp_path.iterdir()) == []


def finished(sandbox: Sandbox, checkout: Path, script: str) -> Finished:
    box = Box(checkout=checkout, network=False, read=(Path(sys.base_prefix),))
    return anyio.run(partial(run, sandbox, box, ["sh", "-c", script], timeout=50, tail=1000))


def walled(tmp_path: Path, limits: Limits) -> Bubblewrap:
    (tmp_path / "home").mkdir()
    box = Bubblewrap(
        home=tmp_path / "home",
        repository=tmp_path / "repository",
        path=PATH,
        environment={},
        marker="files",
        limits=limits,
    )
    if reason := box.probe():
        pytest.skip(f"bubblewrap does not work here: {reason}")
    return box


def test_a_box_is_in_its_group_from_the_first_instruction(tmp_path: Path, place: Place):
    """The group is joined while the box is built, and the command waits for that."""
    box = walled(tmp_path, BOUNDS)
    done = finished(box, tmp_path, "cat /proc/self/cgroup")
    assert done.output.count(f"/{cgroups.NAME}{os.getpid()}-") == len(place.folders)
    assert ours(place) == set()


def test_a_command_never_begins_outside_of_its_group(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
):
    box = walled(tmp_path, BOUNDS)

    def refuse(group: Group, process: int) -> None:
        raise OSError("the group is full")

    monkeypatch.setattr(Group, "join", refuse)
    done = finished(box, tmp_path, "touch begun")
    assert (done.started, "the group is full" in done.output) == (False, True)
    assert not (tmp_path / "begun").exists()
    assert ours(place) == set()


@pytest.mark.usefixtures("place")
def test_files_in_memory_count(tmp_path: Path):
    """Each folder in memory has its bound, and so has each process; together they have more."""
    box = walled(tmp_path, Limits(memory=200_000_000))
    fill = "for at in /tmp /var/tmp /dev/shm; do head -c 45000000 /dev/zero > $at/x; done"
    hog = "import signal; kept = bytes([1]) * 130_000_000; signal.pause()"
    done = finished(box, tmp_path, f'{fill}; {sys.base_prefix}/bin/python3 -c "{hog}"')
    assert "more than the 200 MB it may have" in done.overran


@pytest.mark.usefixtures("place")
def test_a_daemon_without_a_mark_is_ended_with_its_group(tmp_path: Path):
    """Without walls, in another session, with another parent: nothing but its group knows it."""
    plain = Plain("checkout", home=tmp_path, environment={"PATH": PATH}, marker="hides")
    done = finished(plain, tmp_path, "env -i setsid sleep 600 & echo $!")
    assert done.exit_code == 0
    try:
        stat = Path(f"/proc/{done.output.strip()}/stat").read_text()
    except FileNotFoundError:
        return
    assert stat.rpartition(")")[2].split()[0] in {"Z", "X"}, "it is dead, and not reaped yet"


class Tree:
    """A tree that looks like the kernel's, with folders that can be delegated."""

    def __init__(self, root: Path, kind: str) -> None:
        self.root = root
        self.kind = kind

    def add(self, path: str, *, busy: bool = False, controllers: str = "cpu memory pids") -> Path:
        folder = self.root / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.procs").write_text("")
        (folder / "cgroup.controllers").write_text(controllers)
        if busy:
            (folder / "cgroup.subtree_control").mkdir()  # so that nothing can be written to it
        else:
            (folder / "cgroup.subtree_control").write_text("")
        return folder

    def mount(self, controller: str = "") -> str:
        options = f"rw,{controller}" if controller else "rw"
        return f"30 20 0:26 / {self.root} rw - {self.kind} {self.kind} {options}\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setattr(cgroups, "_SYSTEMD", tmp_path / "no-systemd")
    return Tree(tmp_path / "cgroup", "cgroup2")


class TestPlace:
    def test_the_nearest_that_may_hold_groups(self, tree: Tree):
        tree.add("")
        above = tree.add("app.slice")
        own = tree.add("app.slice/terminal.scope", busy=True)
        (own / "memory.max").write_text("max\n")
        found = find_place("0::/app.slice/terminal.scope\n", tree.mount())
        assert found == Place(2, above, above)
        assert (above / "cgroup.subtree_control").read_text() == "+memory +pids"

    def test_a_bound_is_not_left_behind(self, tree: Tree):
        tree.add("app.slice")
        own = tree.add("app.slice/bounded.scope", busy=True)
        (own / "memory.max").write_text("1000000\n")
        found = find_place("0::/app.slice/bounded.scope\n", tree.mount())
        assert found == "no control group is delegated to this user"

    def test_controllers_that_are_missing(self, tree: Tree):
        tree.add("own", controllers="cpu")
        tree.add("", controllers="cpu pids")
        assert isinstance(find_place("0::/own\n", tree.mount()), str)

    def test_what_systemd_keeps_is_not_roots_to_change(
        self, tree: Tree, monkeypatch: pytest.MonkeyPatch
    ):
        if os.geteuid() != 0:
            pytest.skip("this is without privileges already")
        own = tree.add("own")
        (tree.root / "systemd").mkdir()
        monkeypatch.setattr(cgroups, "_SYSTEMD", tree.root / "systemd")
        assert isinstance(find_place("0::/own\n", tree.mount()), str)
        monkeypatch.setattr(cgroups, "_is_marked", lambda folder: folder == own)
        assert find_place("0::/own\n", tree.mount()) == Place(2, own, own)

    def test_what_is_another_users_is_not_ours(self, tree: Tree, monkeypatch: pytest.MonkeyPatch):
        tree.add("own")
        monkeypatch.setattr(os, "geteuid", lambda: 4321)
        assert isinstance(find_place("0::/own\n", tree.mount()), str)

    def test_version_1_has_a_tree_for_each(self, tmp_path: Path, tree: Tree):
        memory, pids = (Tree(tmp_path / name, "cgroup") for name in ("memory", "pids"))
        places = memory.add("job/7"), pids.add("")
        own = "8:pids:/\n4:memory:/job/7\n1:name=systemd:/\n0::/\n"
        mounts = memory.mount("memory") + pids.mount("pids") + tree.mount()
        assert find_place(own, mounts) == Place(1, *places)

    def test_a_container_sees_a_part_of_the_tree(self, tree: Tree):
        own = tree.add("inner")
        mount = tree.mount().replace(" / ", " /docker/a\\040b ", 1)
        assert find_place("0::/docker/a b/inner\n", mount) == Place(2, own, own)
        assert isinstance(find_place("0::/elsewhere\n", mount), str)

    def test_no_tree_at_all(self):
        assert find_place("0::/\n", "") == "no control groups are mounted"
