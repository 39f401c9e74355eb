"""A box that takes too much is ended as a whole, with a word; one that does not is left alone."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest

from windlass.adapters.agents.claude.agent import ClaudeAgent
from windlass.adapters.checks.runner import _judged
from windlass.adapters.processes import cgroups, limits
from windlass.adapters.processes.leftovers import MARKER, end_leftovers
from windlass.adapters.processes.limits import Limits
from windlass.adapters.sandbox.box import Box, Sandbox
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.commands import Finished, run
from windlass.adapters.sandbox.plain import Plain
from windlass.core.events.model import Failure, Outcome
from windlass.core.excerpts import READ
from windlass.core.settings import AgentSettings
from windlass.testing.conformance.agent import brief, ignore_activity

PATH = "/usr/local/bin:/usr/bin:/bin"
SMALL = Limits(memory=200_000_000, processes=40)
HOG = (
    "import time; kept = [bytes([1]) * 1_000_000 for _ in range({mb})];"
    "print('has it', flush=True); time.sleep(60)"
)


@pytest.fixture(params=["groups", "looks"], autouse=True)
def kept_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By the kernel, where there are control groups; and as it is where there are none."""
    if request.param == "looks":
        monkeypatch.setattr(cgroups, "where", lambda: "not here")
    elif isinstance(place := cgroups.where(), str):
        pytest.skip(f"without control groups: {place}")
    return request.param


@pytest.fixture(params=["bwrap", "checkout"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    marker = f"limits-{os.getpid()}/{tmp_path.name}"
    (tmp_path / "home").mkdir()
    if request.param == "checkout":
        environment = {"PATH": PATH}
        return Plain(
            "checkout",
            home=tmp_path / "home",
            environment=environment,
            marker=marker,
            limits=SMALL,
        )
    made = Bubblewrap(
        home=tmp_path / "home",
        repository=tmp_path / "repository",
        path=PATH,
        environment={},
        marker=marker,
        limits=SMALL,
    )
    if reason := made.probe():
        pytest.skip(f"bubblewrap does not work here: {reason}")
    return made


def finish(sandbox: Sandbox, tmp_path: Path, *command: str) -> Finished:
    (tmp_path / "checkout").mkdir(exist_ok=True)
    box = Box(checkout=tmp_path / "checkout", network=False, read=(Path(sys.base_prefix),))
    return anyio.run(partial(run, sandbox, box, command, timeout=50, tail=READ))


def python(script: str) -> tuple[str, ...]:
    return (f"{sys.base_prefix}/bin/python3", "-c", script)


def remains(sandbox: Sandbox) -> list[str]:
    mark = sandbox.environment(Box(checkout=Path("/"), network=False))[MARKER].partition(":")[0]
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARKER}={mark}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().decode())
        except OSError:
            continue
    return found


def test_too_much_memory_in_many_processes_ends_the_box(sandbox: Sandbox, tmp_path: Path):  # B5
    """Each alone has little enough; together they have too much."""
    script = (
        f'for i in 1 2 3 4; do {sys.base_prefix}/bin/python3 -c "{HOG.format(mb=80)}" & done; wait'
    )
    done = finish(sandbox, tmp_path, "sh", "-c", script)
    assert "MB of memory, more than the 200 MB it may have" in done.overran
    assert done.output.rstrip().endswith("([sandbox] memory_mb)]")
    assert not done.timed_out
    assert remains(sandbox) == []
    judged = _judged("pytest", done, ())
    assert (judged.outcome, judged.absence) == (Outcome.FAIL, None), "it is told to the Player"
    assert "more than the 200 MB" in judged.output


def test_one_process_cannot_have_more_than_the_box(sandbox: Sandbox, tmp_path: Path):  # B5
    done = finish(sandbox, tmp_path, *python(HOG.format(mb=400)))
    assert done.exit_code not in {0, None}
    assert "has it" not in done.output or done.overran
    if sandbox.level == "bwrap":
        assert "MemoryError" in done.output, "the kernel said no before anyone had to look"
    else:
        assert "more than the 200 MB" in done.overran


def test_a_fork_bomb_ends_with_its_box(sandbox: Sandbox, tmp_path: Path):  # B5
    # It grows by the hundred, not by the power: should it not be ended, nobody is harmed.
    bomb = "while :; do sleep 60 & sleep 0.005; done"
    done = finish(sandbox, tmp_path, "sh", "-c", bomb)
    assert " it may have ([sandbox] " in done.overran, "whichever is seen first"
    assert done.seconds < 40
    assert remains(sandbox) == []


def test_what_forked_processes_share_counts_once(sandbox: Sandbox, tmp_path: Path):
    script = (
        "import os, time\nkept = bytes([1]) * 70_000_000\n"
        "for _ in range(8):\n  if not os.fork(): time.sleep(1); os._exit(0)\n"
        "while True:\n  try: os.wait()\n  except OSError: break\nprint('done')"
    )
    done = finish(sandbox, tmp_path, *python(script))
    assert (done.exit_code, done.overran, done.output) == (0, "", "done\n")


def test_what_is_within_its_limits_is_left_alone(sandbox: Sandbox, tmp_path: Path):
    some = f'{sys.base_prefix}/bin/python3 -c "x = bytes(60_000_000)"'
    script = f"for i in 1 2 3; do sleep 0.4 & done; {some}; wait; echo done"
    done = finish(sandbox, tmp_path, "sh", "-c", script)
    assert (done.exit_code, done.overran) == (0, ""), done.output
    assert done.output.endswith("done\n")


def test_whoever_left_home_is_counted_too(tmp_path: Path):  # B5
    """Below the walls a daemon has another parent and another session, but still its mark."""
    environment = {**os.environ, MARKER: f"lost/{tmp_path.name}:1"}
    script = "import subprocess as s; s.Popen(['setsid', 'sleep', '60'])"
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    said = limits.excess(Limits(memory=1 << 40, processes=0), 1 << 30, f"lost/{tmp_path.name}:1")
    assert end_leftovers(f"lost/{tmp_path.name}") == 1
    assert said is not None
    assert said.startswith("it had 1 processes")


def test_where_there_is_no_proc_the_list_of_processes_tells_as_much():
    """As on a Mac; the same words are understood here."""
    told = {process.pid: process for process in limits._from_ps()}
    known = {process.pid: process for process in limits._from_proc()}
    me = os.getpid()
    assert (told[me].parent, told[me].group) == (known[me].parent, known[me].group)
    assert told[me].memory > 1_000_000


def test_whoever_is_not_root_has_no_more_processes_by_the_kernels_word(monkeypatch):  # B5
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    argv = limits.bounded("bwrap", SMALL, ["bwrap"])
    asked = dict(part.split("=") for part in argv[1:-1])
    assert int(asked["--nproc"]) > SMALL.processes
    assert asked["--data"] == "200000000"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert len(limits.bounded("bwrap", SMALL, ["bwrap"])) == 3
    assert limits.bounded("checkout", SMALL, ["x"]) == ["x"]


def test_what_was_beyond_its_limits_does_not_pass(tmp_path: Path):
    """Not even where it ends well, or before anyone has looked."""
    plain = Plain(
        "checkout",
        home=tmp_path,
        environment={"PATH": PATH},
        marker="passes",
        limits=Limits(memory=200_000_000, processes=40, disk=10_000_000),
    )
    done = finish(plain, tmp_path, "sh", "-c", "head -c 40000000 /dev/zero > big; exit 0")
    assert "more than the 10 MB it may ([sandbox] disk_mb)" in done.overran
    assert _judged("make test", done, ()).outcome is Outcome.FAIL


def test_an_agent_that_takes_too_much_is_ended_and_says_so(sandbox: Sandbox, tmp_path: Path):  # B5
    program = tmp_path / "home/claude"
    program.write_text("#!/bin/sh\nPATH=/usr/bin:/bin\nwhile :; do sleep 60 & sleep 0.005; done\n")
    program.chmod(0o755)
    agent = ClaudeAgent(AgentSettings(), sandbox, {}, program=program)
    (tmp_path / "checkout").mkdir()
    report = anyio.run(agent.work, brief(), tmp_path / "checkout", ignore_activity)
    assert report.failure is Failure.CRASHED
    assert "more than the 40 it may have ([sandbox] processes)" in report.message
    assert remains(sandbox) == []
