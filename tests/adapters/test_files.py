"""A file is the old one or the new one, at every instant and after every failure."""

import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from windlass.adapters.files import (
    fsync_dir,
    make_folder,
    open_plain,
    open_to_append,
    open_to_read,
    read_plainly,
    refuse_unsafe,
    remove_durably,
    remove_unfinished,
    sync_all,
    write_durably,
)
from windlass.errors import UnsafePath

WRITER = """
import itertools, sys
from pathlib import Path
from windlass.adapters.files import write_durably

for letter in itertools.cycle("ab"):
    write_durably(Path(sys.argv[1]), letter * 1_000_000)
    print(flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def test_text_and_bytes_are_written_as_they_are(path: Path):
    write_durably(path, "ü\r\n✓\n")
    assert path.read_bytes() == "ü\r\n✓\n".encode()
    write_durably(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert list(path.parent.iterdir()) == [path]


def test_a_killed_writer_leaves_a_whole_file(path: Path):  # X7
    for writes in range(1, 11):
        command = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout
            for _ in range(writes):
                process.stdout.readline()
            process.kill()
        assert path.read_text() in {"a" * 1_000_000, "b" * 1_000_000}


def test_a_reader_never_sees_a_part(path: Path):  # X7
    texts = [letter * 200_000 for letter in "abcd"]
    write_durably(path, texts[0])
    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write_durably, path, text) for text in texts * 5]
        while not all(each.done() for each in writing):
            assert path.read_text() in texts
        for each in writing:
            each.result()
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(not shutil.which("strace"), reason="strace shows the order of the calls")
def test_the_order_survives_a_power_loss(path: Path):  # B4
    """The content before the name, and the name before anyone is told."""
    path.write_text("old")
    script = (
        "import sys; from pathlib import Path; from windlass.adapters.files import write_durably;"
        "write_durably(Path(sys.argv[1]), 'new')"
    )
    trace = path.with_name("trace")
    calls = "trace=fsync,rename,renameat,renameat2"
    subprocess.run(
        ["strace", "-f", "-y", "-e", calls, "-o", trace, sys.executable, "-c", script, path],
        check=True,
    )
    folder = str(path.parent)
    seen = [line.split(maxsplit=1)[1] for line in trace.read_text().splitlines() if folder in line]
    content, name, entry = seen
    assert content.startswith("fsync(")
    assert ".windlass-" in content
    assert name.startswith("rename")
    assert entry.startswith("fsync(")
    assert f"<{folder}>" in entry


def test_a_failure_leaves_the_old_file_and_nothing_else(path: Path):
    path.mkdir()
    (path / "inside").touch()
    with pytest.raises(OSError, match="irectory"):
        write_durably(path, "new")
    path.joinpath("inside").unlink()
    path.rmdir()
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_durably(path, "\ud800")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_the_mode_of_a_file_stays(path: Path):
    path.write_text("old")
    path.chmod(0o640)
    write_durably(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_new_file_follows_the_umask(path: Path):
    before = os.umask(0o027)
    try:
        write_durably(path, "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_the_longest_name_can_be_written(tmp_path: Path):
    path = tmp_path / ("n" * 255)
    write_durably(path, "new")
    assert path.read_text() == "new"


def test_folders_are_made_as_deep_as_needed(tmp_path: Path):
    folder = tmp_path / "a" / "b" / "c"
    make_folder(folder)
    make_folder(folder)
    assert folder.is_dir()
    fsync_dir(folder)
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "file")


def test_another_folder_to_write_in_on_the_way(path: Path, tmp_path: Path):
    way = tmp_path / "way"
    way.mkdir()
    path.write_text("old")
    path.chmod(0o640)
    write_durably(path, "new", by_way_of=way)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(way.iterdir()) == []


MEMORY = Path("/dev/shm")  # noqa: S108  a folder of its own is made there


@pytest.mark.skipif(not MEMORY.is_dir(), reason="a second file system is needed")
def test_a_folder_on_another_disk_is_no_way(path: Path):
    with tempfile.TemporaryDirectory(dir=MEMORY) as way:
        if Path(way).stat().st_dev == path.parent.stat().st_dev:
            pytest.skip("already on one file system")
        write_durably(path, "new", by_way_of=Path(way))
        assert path.read_text() == "new"
        assert list(Path(way).iterdir()) == []


def test_what_a_killed_writer_left_is_taken_away(tmp_path: Path):
    (tmp_path / ".windlass-0123456789abcdef.tmp").write_text("half")
    (tmp_path / "mine.tmp").write_text("whole")
    remove_unfinished(tmp_path)
    assert [left.name for left in tmp_path.iterdir()] == ["mine.tmp"]
    remove_unfinished(tmp_path / "no such folder")


def test_a_disk_that_cannot_be_synced_is_said(tmp_path: Path):
    sync_all(tmp_path, tmp_path / "..")
    with pytest.raises(OSError, match="No such file"):
        sync_all(tmp_path / "gone")


class Trap:
    """A repository beside a home with a file that no write may reach."""

    def __init__(self, root: Path) -> None:
        self.repo = root / "repository"
        self.home = root / "home"
        for folder in (self.repo / "state", self.home):
            folder.mkdir(parents=True)
        self.profile = self.home / ".profile"
        self.profile.write_text("theirs\n")
        self.target = self.repo / "state" / "other_state.json"

    def write(self, text: str = "ours\n") -> None:
        write_durably(self.target, text, inside=self.repo)

    def held(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.home.iterdir()}


THEIRS = {".profile": "theirs\n"}


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


def plant_link(trap: Trap) -> None:
    trap.target.symlink_to(trap.profile)


def plant_relative_link(trap: Trap) -> None:
    trap.target.symlink_to("../../home/.profile")


def plant_link_inside(trap: Trap) -> None:
    (trap.repo / "src.py").write_text("code")
    trap.target.symlink_to(trap.repo / "src.py")


def plant_dangling_link(trap: Trap) -> None:
    trap.target.symlink_to(trap.home / "made-by-windlass")


def plant_loop(trap: Trap) -> None:
    trap.target.symlink_to(trap.target.name)


def plant_folder_link(trap: Trap) -> None:
    (trap.home / trap.target.name).symlink_to(trap.profile)
    trap.target.parent.rmdir()
    trap.target.parent.symlink_to(trap.home)
    (trap.home / trap.target.name).unlink()


def plant_dangling_folder_link(trap: Trap) -> None:
    trap.target.parent.rmdir()
    trap.target.parent.symlink_to(trap.home / "folder")


def plant_pipe(trap: Trap) -> None:
    os.mkfifo(trap.target)


def plant_pipe_for_a_folder(trap: Trap) -> None:
    trap.target.parent.rmdir()
    os.mkfifo(trap.target.parent)


def plant_socket(trap: Trap) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(trap.target.parent, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{here}/{trap.target.name}")
        os.close(here)


PLANTED = [
    plant_link,
    plant_relative_link,
    plant_link_inside,
    plant_dangling_link,
    plant_loop,
    plant_folder_link,
    plant_dangling_folder_link,
    plant_pipe,
    plant_pipe_for_a_folder,
    plant_socket,
]


@pytest.mark.parametrize("plant", PLANTED)
def test_no_link_and_no_special_file_is_written_or_read_through(trap: Trap, plant):
    plant(trap)
    folder = trap.target.parent
    before = folder.lstat().st_mode, sorted(os.listdir(folder)) if folder.is_dir() else None  # noqa: PTH208
    doors = {
        "write": trap.write,
        "append": lambda: open_to_append(trap.target, inside=trap.repo),
        "hold": lambda: open_plain(trap.target, os.O_RDWR | os.O_CREAT, inside=trap.repo),
        "read": lambda: open_to_read(trap.target, inside=trap.repo).__enter__(),
        "look": lambda: refuse_unsafe(trap.target, inside=trap.repo),
        "folder": lambda: make_folder(trap.target / "deeper", inside=trap.repo),
    }
    for door in doors.values():
        with pytest.raises(UnsafePath, match=r"state(/other_state\.json)? is a (link|pipe|socket)"):
            door()
    assert read_plainly(trap.target, inside=trap.repo) is None
    after = folder.lstat().st_mode, sorted(os.listdir(folder)) if folder.is_dir() else None  # noqa: PTH208
    assert after == before
    assert trap.held() == THEIRS
    assert not (trap.repo / "src.py").exists() or (trap.repo / "src.py").read_text() == "code"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_is_refused(trap: Trap):
    try:
        os.mknod(trap.target, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("no device can be made here")
    with pytest.raises(UnsafePath, match="is a device"):
        trap.write()


def test_a_hard_link_is_replaced_and_its_other_name_is_as_it_was(trap: Trap):
    trap.target.hardlink_to(trap.profile)
    trap.write()
    assert trap.target.read_text() == "ours\n"
    assert trap.held() == THEIRS


def test_a_hard_link_is_parted_before_it_is_appended_to(trap: Trap):
    trap.target.hardlink_to(trap.profile)
    with open_to_append(trap.target, inside=trap.repo) as file:
        file.write(b"ours\n")
    assert trap.target.read_text() == "theirs\nours\n"
    assert trap.held() == THEIRS


def test_a_hard_link_is_not_written_in_place(trap: Trap):
    trap.target.hardlink_to(trap.profile)
    for flags in (os.O_WRONLY | os.O_APPEND, os.O_RDWR):
        with pytest.raises(UnsafePath, match="another name"):
            open_plain(trap.target, flags, inside=trap.repo)
    assert trap.held() == THEIRS


@pytest.mark.parametrize("name", ["..", "../home/.profile", "state/../../home/.profile"])
def test_a_path_that_leaves_the_repository_is_refused(trap: Trap, name: str):
    for path in (trap.repo / name, trap.profile):
        with pytest.raises((UnsafePath, ValueError)):
            write_durably(path, "ours", inside=trap.repo)
    assert trap.held() == THEIRS


def test_below_windlass_own_folder_no_link_is_followed_whoever_asks(trap: Trap):
    own = trap.repo / ".windlass"
    own.symlink_to(trap.home)
    path = own / "plans" / "p" / "state.json"
    for door in (
        lambda: make_folder(path.parent),
        lambda: write_durably(own / ".gitignore", "*"),
        lambda: open_to_append(path),
    ):
        with pytest.raises(UnsafePath, match="is a link"):
            door()
    assert trap.held() == THEIRS


def test_links_above_the_repository_are_the_users_own(trap: Trap, tmp_path: Path):
    (tmp_path / "short").symlink_to(trap.repo)
    write_durably(tmp_path / "short/state/a.json", "ours", inside=tmp_path / "short")
    assert (trap.repo / "state/a.json").read_text() == "ours"


def test_what_goes_is_the_link_and_not_what_it_names(trap: Trap):
    plant_link(trap)
    remove_durably(trap.target, inside=trap.repo)
    remove_durably(trap.target, inside=trap.repo)
    assert not os.path.lexists(trap.target)
    assert trap.held() == THEIRS


@pytest.mark.parametrize("where", ["file", "folder"])
def test_a_link_that_is_swapped_in_while_windlass_writes_leads_nowhere(trap: Trap, where: str):
    """A second thread puts the link there and takes it away for as long as there are writes."""
    folder, over = trap.target.parent, threading.Event()
    spare = trap.repo / "spare"

    def swap() -> None:
        while not over.is_set():
            link = trap.repo / "link"
            if where == "file":
                link.symlink_to(trap.profile)
                link.rename(trap.target)
                trap.target.unlink(missing_ok=True)
            else:
                folder.rename(spare)
                folder.symlink_to(trap.home)
                folder.unlink()
                spare.rename(folder)
                os.sched_yield()  # else a busy machine may let the writer see the link alone

    swapping = threading.Thread(target=swap)
    swapping.start()
    refused = written = 0
    try:
        for tries in range(60_000):
            if tries >= 600 and written:
                break
            try:
                trap.write()
                written += 1
            except FileNotFoundError:  # in the instant between two renames
                continue
            except UnsafePath:
                refused += 1
    finally:
        over.set()
        swapping.join()
    assert trap.held() == THEIRS
    assert written, "it was a race, and not one side only"
