"""What a call writes into its workspace is bounded, however it is written."""  # B5

import os
import sys
import time
from functools import partial
from pathlib import Path

import anyio
import pytest

from windlass.adapters.agents.claude.agent import ClaudeAgent
from windlass.adapters.processes import limits as disk_watch
from windlass.adapters.processes.limits import BLOCK, DiskWatch, Limits, walked
from windlass.adapters.sandbox.box import Box, Sandbox
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.commands import Finished, run
from windlass.adapters.sandbox.plain import Plain
from windlass.core.events.model import Failure
from windlass.core.settings import AgentSettings
from windlass.testing.conformance.agent import brief, ignore_activity

PATH = "/usr/local/bin:/usr/bin:/bin"
LIMITS = Limits(disk=10_000_000)
MB = 1_000_000


@pytest.fixture(params=["bwrap", "checkout"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    (tmp_path / "home").mkdir()
    (tmp_path / "checkout").mkdir()
    environment, marker = {"PATH": PATH}, f"disk-{os.getpid()}/{tmp_path.name}"
    if request.param == "checkout":
        home = tmp_path / "home"
        return Plain("checkout", home=home, environment=environment, marker=marker, limits=LIMITS)
    made = Bubblewrap(
        home=tmp_path / "home",
        repository=tmp_path / "repository",
        path=PATH,
        environment=environment,
        marker=marker,
        limits=LIMITS,
    )
    if reason := made.probe():
        pytest.skip(f"bubblewrap does not work here: {reason}")
    return made


def finish(sandbox: Sandbox, tmp_path: Path, script: str) -> Finished:
    box = Box(checkout=tmp_path / "checkout", network=False, read=(Path(sys.base_prefix),))
    job = partial(run, sandbox, box, [f"{sys.base_prefix}/bin/python3", "-c", script])
    return anyio.run(partial(job, timeout=50, tail=1000))


@pytest.mark.parametrize(
    "script",
    [
        "open('big', 'wb').write(bytes(40_000_000))",
        (
            "import os\nfor i in range(40):\n  os.mkdir(f'd{i}')\n"
            "  open(f'd{i}/{i}', 'wb').write(bytes(1_000_000))\n  os.utime(f'd{i}/{i}', (0, 0))"
        ),
        (
            "import os\nf = open('gone', 'wb'); os.unlink('gone')\n"
            "f.write(bytes(40_000_000)); f.flush()"
        ),
    ],
    ids=["one file", "many files with a false date", "a file that is deleted and open"],
)
def test_a_call_that_writes_too_much_is_ended(sandbox: Sandbox, tmp_path: Path, script: str):
    done = finish(sandbox, tmp_path, f"{script}\nimport signal; signal.pause()")
    assert "MB into its workspace, more than the 10 MB it may ([sandbox] disk_mb)" in done.overran
    assert done.output.rstrip().endswith("([sandbox] disk_mb)]"), "the Player is told"
    assert not done.timed_out


def test_one_that_is_over_before_a_look_is_seen_at_its_end(sandbox: Sandbox, tmp_path: Path):
    done = finish(sandbox, tmp_path, "open('big', 'wb').write(bytes(40_000_000))")
    assert "more than the 10 MB" in done.overran
    assert done.exit_code not in {0, None}


def test_it_is_seen_also_where_others_free_as_much(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(disk_watch, "_used", lambda _folder: (0, 0))
    done = finish(sandbox, tmp_path, "open('big', 'wb').write(bytes(40_000_000))")
    assert "more than the 10 MB" in done.overran


def test_what_was_there_before_does_not_count(sandbox: Sandbox, tmp_path: Path):
    (tmp_path / "checkout/old").write_bytes(bytes(40 * MB))
    passed(tmp_path / "checkout/old")
    script = "open('new', 'wb').write(bytes(5_000_000)); print(len(open('old', 'rb').read()))"
    done = finish(sandbox, tmp_path, script)
    assert (done.exit_code, done.overran, done.output) == (0, "", "40000000\n")


def test_an_agent_that_writes_too_much_is_ended_and_says_so(sandbox: Sandbox, tmp_path: Path):
    program = tmp_path / "home/claude"
    program.write_text(
        "#!/bin/sh\nPATH=/usr/bin:/bin\nhead -c 40000000 /dev/zero > big\nexec sleep 600\n"
    )
    program.chmod(0o755)
    agent = ClaudeAgent(AgentSettings(), sandbox, {}, program=program)
    report = anyio.run(agent.work, brief(), tmp_path / "checkout", ignore_activity)
    assert report.failure is Failure.CRASHED
    assert "more than the 10 MB it may ([sandbox] disk_mb)" in report.message


def passed(path: Path) -> None:
    """Return once the clock is well past the time of this file."""
    while time.time() < path.stat().st_ctime + 2 * disk_watch.SLACK:  # noqa: TID251 (a file's)
        os.sched_yield()


def test_a_flood_of_empty_files_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(disk_watch, "PAUSE", 0.0)
    watch = DiskWatch(tmp_path, 100 * BLOCK)
    assert watch.excess() is None
    for number in range(101):
        (tmp_path / str(number)).touch()
    assert "more than the 0 MB" in (watch.excess() or "")


def test_a_folder_that_cannot_be_looked_into_hides_nothing(tmp_path: Path):
    """One that is deeper than a path can be long; whose mode forbids it is the same."""
    inside = os.open(tmp_path, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=inside)
        deeper = os.open("d" * 200, os.O_RDONLY, dir_fd=inside)
        os.close(inside)
        inside = deeper
    watch = DiskWatch(tmp_path, 10 * MB)
    handle = os.open("big", os.O_WRONLY | os.O_CREAT, dir_fd=inside)
    os.write(handle, bytes(40 * MB))
    os.fsync(handle)
    assert not walked(tmp_path, 0, 1 << 60).whole
    assert "more than the 10 MB" in (watch.excess() or "")
    os.close(handle)
    os.unlink("big", dir_fd=inside)
    os.close(inside)


def test_a_walk_stops_once_it_has_seen_enough(tmp_path: Path):
    for number in range(50):
        (tmp_path / f"d{number}").mkdir()
        (tmp_path / f"d{number}/file").write_bytes(bytes(BLOCK))
    assert walked(tmp_path, 0, 10 * BLOCK).written < 80 * BLOCK
    assert walked(tmp_path, 0, 1 << 60).written == 100 * BLOCK


def test_without_a_word_it_is_half_of_what_is_free(tmp_path: Path):
    said = os.statvfs(tmp_path)
    free = said.f_bavail * said.f_frsize
    assert 0.8 * free < 2 * DiskWatch(tmp_path, None).bound < 1.2 * free
    assert DiskWatch(tmp_path / "missing", None).bound > free
