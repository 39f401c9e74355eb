"""Files for other programs: the newest state, in time, and nobody's edit lost unsaid."""

import hashlib
import json
import os
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from windlass.adapters.projections import Projections, Shown
from windlass.core.plan import Task
from windlass.core.state import RunState
from worlds import World, plan_of, writes

pytestmark = pytest.mark.anyio


@pytest.fixture
def state() -> RunState:
    world = World(plan_of(Task(id="a", title="a")), {"a": writes("a", "1")})
    world.go()
    return world.state


class Desk:
    """A file that holds the position it was made from, and what was said of it."""

    def __init__(self, folder: Path, *, shared: bool = False) -> None:
        self.folder = folder
        self.file = folder / "deep" / "state.json"
        self.memory = folder / "run" / "projected.json"
        self.shared = shared
        self.notices: list[str] = []
        self.texts: list[int] = []
        self.gone = False

    def projections(self) -> Projections:
        return Projections(
            self.render, inside=self.folder, memory=self.memory, notice=self.notices.append
        )

    def render(self, _state: RunState, seq: int) -> dict[Path, Shown]:
        self.texts.append(seq)
        text = None if self.gone else f"{seq}\n"
        return {self.file: Shown(text, shared=self.shared)}

    def write(self, state: RunState, seq: int) -> None:
        """As a process that does this and ends."""
        projections = self.projections()
        projections.show(state, seq)
        projections.flush()


async def test_the_newest_is_written_and_folders_are_made(tmp_path, state):
    desk = Desk(tmp_path)
    projections = desk.projections()
    for seq in range(1, 100):
        projections.show(state, seq)
    projections.flush()
    projections.flush()
    assert desk.file.read_text() == "99\n"
    assert desk.texts == [99]


async def test_what_is_to_be_gone_goes_and_stays_gone(tmp_path, state):
    desk = Desk(tmp_path)
    desk.write(state, 1)
    desk.gone = True
    desk.write(state, 2)
    desk.write(state, 3)
    assert not desk.file.exists()


async def test_an_edit_is_said_put_aside_and_never_lost(tmp_path, state):
    desk = Desk(tmp_path)
    projections = desk.projections()
    projections.show(state, 1)
    projections.flush()
    desk.file.write_text("mine\n")
    for seq in (2, 3):
        projections.show(state, seq)
        projections.flush()
    assert desk.file.read_text() == "3\n"
    [notice] = desk.notices
    [aside] = desk.file.parent.glob("state.json.edited-*")
    assert aside.name in notice
    assert aside.read_text() == "mine\n"


async def test_an_edit_between_two_processes_is_noticed_too(tmp_path, state):
    desk = Desk(tmp_path)
    desk.write(state, 1)
    desk.write(state, 2)
    assert desk.notices == []
    desk.file.write_text("mine\n")
    desk.write(state, 3)
    assert len(desk.notices) == 1


async def test_of_a_file_that_is_the_users_own_nothing_is_put_aside(tmp_path, state):
    desk = Desk(tmp_path, shared=True)
    desk.write(state, 1)
    desk.file.write_text("mine\n")
    desk.write(state, 2)
    assert "only Windlass's own part" in desk.notices[0]
    assert [path.name for path in desk.file.parent.iterdir()] == ["state.json"]


async def test_killed_between_remembering_and_writing_ours_is_no_edit(tmp_path, state):
    desk = Desk(tmp_path)
    desk.write(state, 1)
    desk.write(state, 2)
    desk.file.write_text("1\n")  # as if the second had not come to be written
    desk.write(state, 3)
    assert desk.notices == []
    desk.memory.write_text("no json")
    desk.write(state, 4)
    assert desk.notices == [], "what is not remembered is nobody's edit"
    assert set(json.loads(desk.memory.read_text())) == {"deep/state.json"}


async def test_a_new_status_is_written_at_once_and_the_rest_in_its_time(tmp_path, state):
    desk = Desk(tmp_path)
    projections = desk.projections()
    async with anyio.create_task_group() as group:
        group.start_soon(projections.keep)
        projections.show(state, 1)
        await anyio.wait_all_tasks_blocked()
        projections.show(state, 2)
        await anyio.wait_all_tasks_blocked()
        assert desk.texts == [1], "nothing new but its position"
        projections.show(replace(state, ended=None), 3)
        with anyio.fail_after(30):
            while desk.texts != [1, 3]:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()


async def test_what_cannot_be_written_is_said_once_and_the_run_goes_on(tmp_path, state):
    desk = Desk(tmp_path)
    desk.file.parent.write_text("a file where the folder should be")
    projections = desk.projections()
    for seq in (1, 2):
        projections.show(state, seq)
        projections.flush()
    [notice] = desk.notices
    assert notice.startswith("deep/state.json cannot be written from here on: ")


async def test_an_edit_that_cannot_be_put_aside_is_not_written_over(tmp_path, state):
    desk = Desk(tmp_path)
    desk.write(state, 1)
    desk.file.write_text("mine\n")
    name = f"state.json.edited-{hashlib.sha256(b'mine' + bytes([10])).hexdigest()[:8]}"
    (desk.file.parent / name).mkdir()
    desk.write(state, 2)
    assert desk.file.read_text() == "mine\n"
    assert len(desk.notices) == 1
    projections = desk.projections()
    projections.show(state, 3)
    projections.flush()
    projections.close()
    assert desk.file.read_text() == "mine\n", "nor by the last flush"


async def test_the_last_flush_tries_again_what_could_not_be_written(tmp_path, state):  # B4
    desk = Desk(tmp_path)
    desk.write(state, 1)
    projections = desk.projections()
    text = desk.file.read_text()
    desk.file.unlink()
    desk.file.mkdir()  # a moment in which it cannot be written
    projections.show(state, 2)
    projections.flush()
    assert len(desk.notices) == 1
    desk.file.rmdir()
    desk.file.write_text(text)
    projections.show(state, 3)
    projections.flush()
    assert desk.file.read_text() == text, "it is left alone"
    projections.close()
    assert desk.file.read_text() == "3\n"
    assert len(desk.notices) == 1, "and what failed in between is nobody's edit"


async def test_where_nothing_can_be_remembered_nothing_is_written(tmp_path, state):
    """It would look like somebody's edit to the next process; the run goes on."""
    desk = Desk(tmp_path)
    desk.memory.mkdir(parents=True)
    projections = desk.projections()
    projections.show(state, 1)
    projections.flush()
    [notice] = desk.notices
    assert notice.startswith("run/projected.json cannot be written from here on: ")
    assert not desk.file.exists()
    desk.memory.rmdir()
    projections.close()
    assert desk.file.read_text() == "1\n"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="it tells where a file is made")
async def test_nothing_half_written_lies_among_the_users_files(tmp_path, state):
    """What a kill leaves lies in the run's own folder: there the next process looks."""
    desk = Desk(tmp_path)
    seen: list[str] = []
    projections = desk.projections()
    projections.show(state, 1)
    hook_on = True

    def hear(event, args):
        if hook_on and event == "os.rename" and str(args[0]).endswith(".tmp"):
            seen.append(Path(f"/proc/self/fd/{args[2]}").readlink().name)

    sys.addaudithook(hear)
    projections.flush()
    hook_on = False
    assert set(seen) == {"run"}


async def test_a_pipe_where_a_file_was_holds_nothing_up_and_is_said(tmp_path, state):
    desk = Desk(tmp_path)
    desk.write(state, 1)
    desk.file.unlink()
    os.mkfifo(desk.file)
    desk.write(state, 2)
    assert desk.file.is_fifo()
    [notice] = desk.notices
    assert "deep/state.json is a pipe" in notice
    assert "remove it, or put a plain file in its place" in notice


async def test_a_link_is_said_with_its_cure_and_nothing_is_written_through_it(tmp_path, state):
    desk = Desk(tmp_path / "repository")
    (tmp_path / "outside").write_text("theirs\n")
    for name in ("deep", "run"):
        (desk.folder / name).mkdir(parents=True)
    desk.file.symlink_to(tmp_path / "outside")
    projections = desk.projections()
    for seq in (1, 2):
        projections.show(state, seq)
        projections.flush()
    projections.close()
    assert (tmp_path / "outside").read_text() == "theirs\n"
    assert desk.file.is_symlink()
    [notice] = desk.notices
    assert notice == (
        "deep/state.json cannot be written from here on: deep/state.json is a link, and Windlass"
        " neither reads nor writes through one; remove it, or put a plain file in its place"
    )
    assert sorted(each.name for each in desk.file.parent.iterdir()) == ["state.json"]
