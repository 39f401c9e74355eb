"""Running one command: its end, its output, and that nothing of it stays, at every level."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from waiting import eventually
from windlass.adapters.processes.guardian import guarded
from windlass.adapters.processes.leftovers import MARKER, end_leftovers, is_gone, mark
from windlass.adapters.sandbox.box import Box, Sandbox
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.commands import Finished, run
from windlass.adapters.sandbox.plain import Plain

PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
def marker(tmp_path: Path) -> str:
    """A run of this test alone, for others may run beside it."""
    return f"test-{os.getpid()}/{tmp_path.name}"


@pytest.fixture
def plain(tmp_path: Path, marker: str) -> Plain:
    (tmp_path / "home").mkdir()
    return Plain("checkout", home=tmp_path / "home", environment={"PATH": PATH}, marker=marker)


@pytest.fixture(params=["bwrap", "checkout"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path, plain: Plain, marker: str) -> Sandbox:
    if request.param == "checkout":
        return plain
    bubblewrap = Bubblewrap(
        home=tmp_path / "home",
        repository=tmp_path / "repository",
        path=PATH,
        environment={},
        marker=marker,
    )
    if reason := bubblewrap.probe():
        pytest.skip(f"bubblewrap does not work here: {reason}")
    return bubblewrap


@pytest.fixture
def box(tmp_path: Path) -> Box:
    (tmp_path / "checkout").mkdir()
    return Box(checkout=tmp_path / "checkout", network=False)


def finish(sandbox: Sandbox, box: Box, *command: str, **limits: object) -> Finished:
    given: dict[str, object] = {"timeout": 20.0, "tail": 1000, **limits}
    return anyio.run(partial(run, sandbox, box, command, **given))


def living(marker: str) -> list[str]:
    """The command lines of all processes that carry the mark, looked up apart from the code."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARKER}={marker}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().decode())
        except OSError:
            continue
    return found


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_the_exit_code_is_handed_on(sandbox: Sandbox, box: Box, script: str, code: int):
    done = finish(sandbox, box, "sh", "-c", script)

    assert (done.exit_code, done.started, done.timed_out) == (code, True, False)


def test_both_outputs_come_in_order_and_stdin_is_empty(sandbox: Sandbox, box: Box):
    done = finish(sandbox, box, "sh", "-c", "echo one; echo two >&2; cat; echo three")

    assert done.output == "one\ntwo\nthree\n"


def test_it_works_in_the_checkout(sandbox: Sandbox, box: Box):
    done = finish(sandbox, box, "sh", "-c", "pwd; echo made > here")

    assert done.output == f"{sandbox.inside(box)}\n"
    assert (box.checkout / "here").read_text() == "made\n"


def test_only_the_end_of_the_output_is_given(sandbox: Sandbox, box: Box):
    done = finish(sandbox, box, "sh", "-c", "printf 'ää\\377öü'", tail=3)

    assert done.output == "\N{REPLACEMENT CHARACTER}öü"


def test_a_flood_is_cut_in_the_log_and_holds_nothing_up(sandbox: Sandbox, box: Box, tmp_path: Path):
    log = tmp_path / "log"
    flood = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo the end"

    done = finish(sandbox, box, "sh", "-c", flood, output_limit=1000, log=log)

    assert done.exit_code == 0
    assert done.output.endswith("x\nthe end\n")
    assert log.read_text() == "x" * 1000 + "\n[windlass: output beyond 1000 bytes dropped]\n"


def test_output_of_exactly_the_limit_is_whole(plain: Plain, box: Box, tmp_path: Path):
    log = tmp_path / "log"

    finish(plain, box, "printf", "12345", output_limit=5, log=log)

    assert log.read_text() == "12345"


def test_logs_of_several_commands_follow_each_other(plain: Plain, box: Box, tmp_path: Path):
    log = tmp_path / "log"

    finish(plain, box, "echo", "one", log=log)
    finish(plain, box, "echo", "two", log=log)

    assert log.read_text() == "one\ntwo\n"


def test_a_missing_program_was_not_started(sandbox: Sandbox, box: Box):
    done = finish(sandbox, box, "no-such-program")

    assert (done.started, done.exit_code, done.timed_out) == (False, None, False)
    assert "no-such-program" in done.output


def test_a_file_that_is_no_program_was_not_started(sandbox: Sandbox, box: Box):
    (box.checkout / "notes").write_text("not executable")

    assert not finish(sandbox, box, f"{sandbox.inside(box)}/notes").started


def test_a_missing_checkout_was_not_started(sandbox: Sandbox, tmp_path: Path):
    box = Box(checkout=tmp_path / "gone", network=False)

    assert not finish(sandbox, box, "true").started


def test_a_program_that_fails_like_bubblewrap_was_started(sandbox: Sandbox, box: Box):
    done = finish(sandbox, box, "sh", "-c", "echo 'bwrap: execvp x: No such file' >&2; exit 1")

    assert (done.started, done.exit_code) == (True, 1)


# A tree: a child in the session, one that left it, and one that will not be asked to go.
TREE = """
sleep 600 &
setsid sleep 601 &
sh -c 'trap "" TERM; while :; do sleep 602; done' &
echo up > ready
wait
"""


def test_the_clock_ends_a_whole_tree(sandbox: Sandbox, box: Box, marker: str):
    done = finish(sandbox, box, "sh", "-c", TREE, timeout=3)

    assert (done.timed_out, done.exit_code, done.started) == (True, None, True)
    assert (box.checkout / "ready").exists()
    assert done.seconds < 60
    assert living(marker) == []


def test_cancellation_ends_a_whole_tree(sandbox: Sandbox, box: Box, marker: str):
    async def cancelled() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(run, sandbox, box, ["sh", "-c", TREE], timeout=60, tail=10))
            with anyio.fail_after(20):
                while not (box.checkout / "ready").exists():  # noqa: ASYNC110 (a file says it)
                    await anyio.sleep(0.01)
            assert living(marker)
            tasks.cancel_scope.cancel()

    anyio.run(cancelled)

    assert living(marker) == []


def test_cancellation_before_the_start_leaves_nothing(sandbox: Sandbox, box: Box, marker: str):
    async def cancelled() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await run(sandbox, box, ["sh", "-c", TREE], timeout=60, tail=10)

    anyio.run(cancelled)

    assert living(marker) == []


DAEMON = "(setsid sh -c 'echo up > ready; sleep 600' &) ; while ! [ -e ready ]; do :; done"


def test_a_daemon_left_behind_is_ended_and_not_waited_for(  # B5
    sandbox: Sandbox, box: Box, marker: str
):
    """It holds the output open, too."""
    done = finish(sandbox, box, "sh", "-c", DAEMON)

    assert (done.exit_code, done.timed_out) == (0, False)
    assert done.seconds < 60
    assert living(marker) == []


def test_asked_to_go_a_process_may_tidy_up(plain: Plain, box: Box):
    script = "trap 'echo tidy; exit 0' TERM; echo up; while :; do sleep 0.02; done"

    done = finish(plain, box, "sh", "-c", script, timeout=2)

    assert done.timed_out
    assert done.output.endswith("tidy\n")


ORPHANS = """
import sys, anyio
from pathlib import Path
from windlass.adapters.processes import cgroups
from windlass.adapters.sandbox.commands import run
from windlass.adapters.sandbox.box import Box
from windlass.adapters.sandbox.plain import Plain

# As on a machine without control groups: else any Windlass that starts meanwhile ends them first.
cgroups.where = lambda: "not here"
checkout, marker, script = sys.argv[1:]
plain = Plain("checkout", home=Path(checkout), environment={"PATH": "/usr/bin:/bin"}, marker=marker)
box = Box(checkout=Path(checkout), network=False)
anyio.run(lambda: run(plain, box, ["sh", "-c", script], timeout=60, tail=10))
"""


@pytest.fixture
def orphans(box: Box, marker: str) -> Callable[[], None]:
    """What a killed run leaves at level checkout."""

    def leave() -> None:
        dead = subprocess.Popen([sys.executable, "-c", ORPHANS, str(box.checkout), marker, TREE])
        eventually(lambda: len(living(marker)) >= 4)
        dead.kill()
        dead.wait()
        assert living(marker)

    return leave


@pytest.mark.parametrize("name", ["{plan}", "{plan}/", "{plan}/{run}", "{plan}/{run}:"])
def test_a_resume_ends_what_a_dead_run_left(  # B5
    orphans: Callable[[], None], marker: str, name: str
):
    orphans()
    plan, _, run_id = marker.partition("/")

    assert end_leftovers(name.format(plan=plan, run=run_id)) >= 4
    assert living(marker) == []
    assert end_leftovers(marker) == 0


def test_only_the_named_run_is_ended(orphans: Callable[[], None], marker: str):
    orphans()

    others = (f"{marker}0", marker[:-1], f"{marker[:-1]}/", f"{marker}/other", f"x{marker}")
    assert [end_leftovers(other) for other in others] == [0] * len(others)
    assert living(marker)
    end_leftovers(marker)


def test_the_process_that_asks_is_never_ended(marker: str):
    leftovers = "windlass.adapters.processes.leftovers"
    script = f"from {leftovers} import end_leftovers as e; print(e({marker!r}))"
    environment = {**os.environ, MARKER: mark(marker)}

    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True)  # noqa: PLW1510

    assert (done.returncode, done.stdout) == (0, b"0\n")


def test_a_process_is_gone_when_it_has_ended_and_not_before():
    assert not is_gone(os.getpid(), 0.0)
    with subprocess.Popen(["sleep", "60"]) as process:
        assert not is_gone(process.pid, 0.0)
        process.kill()
        assert is_gone(process.pid, 5.0), "though nobody has asked for its end yet"
    assert is_gone(process.pid, 0.0)


@pytest.mark.parametrize("name", ["", "/", ":"])
def test_an_empty_mark_is_refused(name: str):
    with pytest.raises(ValueError, match="every run"):
        end_leftovers(name)


def test_every_box_has_a_mark_of_its_own(sandbox: Sandbox, box: Box, marker: str):
    first, second = (sandbox.environment(box)[MARKER] for _ in range(2))

    assert first != second
    assert first.startswith(f"{marker}:")


DIES = """
import os, subprocess, sys
from windlass.adapters.processes.guardian import guarded
from windlass.adapters.processes.leftovers import MARKER, mark

with guarded(sys.argv[1]):
    subprocess.Popen(
        ["sleep", "600"],
        stdout=subprocess.DEVNULL,
        env={MARKER: mark(sys.argv[1])},
        start_new_session=True,
    )
    print("started", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("killed", [True, False])
def test_what_a_killed_process_started_is_ended_by_its_guardian(marker: str, *, killed: bool):  # B5
    """A process that nothing binds to the one that started it; only a kill has it ended."""
    with subprocess.Popen(
        [sys.executable, "-c", DIES, marker],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        eventually(lambda: len(living(marker)) == 2)  # one that just starts has no mark yet
        if killed:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(b"")
    if killed:
        eventually(lambda: not living(marker))
    else:
        assert len(living(marker)) == 1, "the guardian is gone, and has ended nothing"
        assert end_leftovers(marker) == 1


def test_a_guardian_is_ended_with_the_leftovers_of_its_run(marker: str):
    with guarded(f"{marker}/first"):
        # A process that is just being started has no mark yet.
        eventually(lambda: end_leftovers(marker) == 1)


def test_a_guardian_leaves_the_next_process_of_its_run_alone(marker: str):
    """A killed run is resumed at once, while its guardian is still at work."""
    with subprocess.Popen(
        [sys.executable, "-c", DIES, f"{marker}/first"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        with subprocess.Popen(["sleep", "600"], env={MARKER: mark(f"{marker}/second")}) as other:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(b"")
            eventually(lambda: not living(f"{marker}/first"))
            assert other.poll() is None
            other.kill()
