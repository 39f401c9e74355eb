"""A file is the old one or the new one, at every instant and after every failure."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from windlass.adapters.files import (
    fsync_dir,
    make_folder,
    remove_unfinished,
    sync_all,
    write_durably,
)

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


def test_a_link_stays_a_link(path: Path, tmp_path: Path):
    real = tmp_path / "elsewhere" / "real.json"
    real.parent.mkdir()
    real.write_text("old")
    path.symlink_to("elsewhere/real.json")
    write_durably(path, "new")
    assert path.is_symlink()
    assert real.read_text() == "new"
    assert list(real.parent.iterdir()) == [real]


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
