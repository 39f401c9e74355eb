"""One run of a plan at a time, whatever becomes of its processes."""

import fcntl
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

import pytest

from waiting import eventually
from windlass.adapters.locks import UNKNOWN, PlanLock, holder
from windlass.errors import Busy
from windlass.views.outcome import error_code

HOLDER = """
import sys
from pathlib import Path
from windlass.adapters.locks import PlanLock
from windlass.errors import Busy

try:
    with PlanLock(Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.read()
except Busy as busy:
    print(busy, flush=True)
"""

PARENT = """
import subprocess, sys
from pathlib import Path
from windlass.adapters.locks import PlanLock

with PlanLock(Path(sys.argv[1])):
    # Everything that can be inherited is: the child waits for the same input.
    waiting = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    child = subprocess.Popen(waiting, close_fds=False)
    print(child.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "plans" / "health_check" / "lock"


@contextmanager
def process(script: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def said(started: subprocess.Popen[str]) -> str:
    assert started.stdout
    return started.stdout.readline().strip()


def refusal(path: Path) -> str:
    with pytest.raises(Busy) as caught, PlanLock(path):
        pass
    assert error_code(type(caught.value)) == 5
    return str(caught.value)


def test_a_second_run_is_refused_by_the_pid_of_the_first(path: Path):  # K4
    with process(HOLDER, path) as first:
        assert said(first) == "held"
        expected = f"plan 'health_check' is already running (PID {first.pid}); `windlass status`"
        assert refusal(path).startswith(expected)
        assert holder(path) == first.pid
        with process(HOLDER, path) as second:
            assert said(second).startswith(expected)


def test_the_lock_is_free_once_its_holder_ends(path: Path):
    with PlanLock(path):
        assert holder(path) == os.getpid()
        inode = path.stat().st_ino
    assert holder(path) is None
    with PlanLock(path):
        assert path.stat().st_ino == inode  # never unlinked


def test_one_process_cannot_hold_it_twice(path: Path):
    with PlanLock(path):
        assert f"PID {os.getpid()}" in refusal(path)
        assert holder(path) == os.getpid()


def test_a_killed_holder_leaves_no_lock(path: Path):  # K4
    with process(HOLDER, path) as first:
        assert said(first) == "held"
        first.kill()
        first.wait()
        assert str(first.pid) in path.read_text()
        assert holder(path) is None
        with PlanLock(path):
            assert holder(path) == os.getpid()


def test_a_child_of_the_holder_does_not_keep_it(path: Path):  # K4
    with process(PARENT, path) as parent:
        child = int(said(parent))
        assert holder(path) == parent.pid
        parent.kill()
        eventually(lambda: holder(path) is None)
        os.kill(child, 0)  # it lives on
        with PlanLock(path):
            pass
        assert parent.stdin
        parent.stdin.close()  # and ends with its input


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\x00\xff", b"[]", b'{"pid":"1"}', b"9" * 9999]
)
def test_garbage_in_the_file_is_harmless(path: Path, content: bytes):
    with process(HOLDER, path) as first:
        assert said(first) == "held"
        path.write_bytes(content)
        assert "already running (PID unknown)" in refusal(path)
        assert holder(path) == UNKNOWN
    path.write_bytes(content)
    with PlanLock(path):
        assert holder(path) == os.getpid()


def test_a_dead_process_is_not_named_as_the_holder(path: Path):
    """A run that was killed left its pid, and the next one has not come to write its own."""
    with process(HOLDER, path) as first:
        assert said(first) == "held"
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "already running (PID unknown)" in refusal(path)


def test_of_many_at_once_one_gets_it(path: Path):
    def begin(_: int) -> str:
        with process(HOLDER, path) as started:
            answer = said(started)
            if answer == "held":
                done.wait(20)
            else:
                refused.append(answer)
                if len(refused) == 7:
                    done.set()
            return answer

    done, refused = Event(), list[str]()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(begin, range(8)))
    assert answers.count("held") == 1
    assert len(refused) == 7


def test_asking_makes_no_file(path: Path):
    assert holder(path) is None
    assert not path.parent.exists()


def test_asking_keeps_no_run_from_beginning(path: Path):
    def ask() -> None:
        while not done.is_set():
            holder(path)

    done = Event()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        try:
            for _ in range(200):
                with PlanLock(path):
                    pass
        finally:
            done.set()
        asking.result()


RACER = """
import sys
from pathlib import Path
from windlass.adapters import locks as lock
from windlass.errors import Busy

lock.PATIENCE = 0.0  # who comes second is told at once, or no two would ever meet
path = Path(sys.argv[1])
for line in sys.stdin:
    try:
        with lock.PlanLock(path):
            print("held", flush=True)
            sys.stdin.readline()
        print("free", flush=True)
    except Busy:
        print("busy", flush=True)
"""


@contextmanager
def racers(path: Path, count: int = 4) -> Iterator[list[subprocess.Popen[str]]]:
    with ExitStack() as stack:
        yield [stack.enter_context(process(RACER, path)) for _ in range(count)]


def race(runners: list[subprocess.Popen[str]]) -> list[str]:
    """All at once: each is told to go before the first is listened to."""
    for runner in runners:
        assert runner.stdin
        runner.stdin.write("go\n")
        runner.stdin.flush()
    answers = [said(runner) for runner in runners]
    for runner, answer in zip(runners, answers, strict=True):
        if answer == "held":
            assert runner.stdin
            runner.stdin.write("let go\n")
            runner.stdin.flush()
            assert said(runner) == "free"
    return answers


@pytest.mark.parametrize(
    "count", [pytest.param(100, id="100"), pytest.param(1000, id="1000", marks=pytest.mark.sweep)]
)
def test_of_four_that_race_one_holds_it(path: Path, count: int):  # K4
    with racers(path) as runners:
        for _ in range(count):
            assert sorted(race(runners)) == ["busy", "busy", "busy", "held"]


def test_it_is_free_a_tenth_of_a_second_after_a_kill(path: Path):  # K4
    """The kernel frees it with the process: never later, whatever the time.

    The time is taken at the median, for a busy machine may hold anybody up.
    """
    waits: list[float] = []
    for _ in range(21):
        with process(HOLDER, path) as first:
            assert said(first) == "held"
            first.kill()
            killed = time.monotonic()
            first.wait()
            assert holder(path) is None
            waits.append(time.monotonic() - killed)
            with PlanLock(path):
                assert holder(path) == os.getpid()
    assert statistics.median(waits) < 0.1


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({"pid": 1, "boot": "another boot", "started": "0"}, id="before a reboot"),
        pytest.param({"pid": os.getpid(), "boot": None, "started": "1"}, id="a pid used again"),
        pytest.param({"pid": 1, "boot": None, "started": None}, id="somebody else, alive"),
        pytest.param({"pid": 2**40, "boot": None, "started": "1"}, id="no pid there is"),
        pytest.param({"pid": -1, "boot": None, "started": "1"}, id="a group"),
    ],
)
def test_what_stands_in_the_file_keeps_nobody_out(path: Path, content: dict[str, object]):  # K4
    boot = Path("/proc/sys/kernel/random/boot_id")
    known = {
        "boot": boot.read_text().strip() if boot.exists() else "",
        "started": Path(f"/proc/{content['pid']}/stat").read_text().rpartition(")")[2].split()[19]
        if content["started"] is None and boot.exists()
        else "",
    }
    told = {k: known[k] if v is None else v for k, v in content.items()}
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**told, "plan": "health_check"}))
    assert holder(path) is None
    with PlanLock(path):
        assert holder(path) == os.getpid()


def test_a_disk_that_takes_nothing_more_does_not_keep_a_run_from_ending(path: Path):
    with PlanLock(path) as held:
        assert held._fd is not None
        os.close(held._fd)
        held._fd = os.open(path, os.O_RDONLY)  # it cannot be emptied any more
    assert holder(path) is None
