"""Landlock around a command: what it adds to the mounts, and that work goes on behind it."""  # B5

import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest

from windlass.adapters.sandbox import landlock
from windlass.adapters.sandbox.box import Box
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.commands import Finished, run
from windlass.adapters.sandbox.landlock import QUIET, confined
from windlass.adapters.sandbox.seccomp import filter_for

PATH = "/usr/local/bin:/usr/bin:/bin"
SCOPES = 6


@pytest.fixture(autouse=True)
def _present():
    if reason := landlock.why_not():
        pytest.skip(reason)


@pytest.fixture
def sandbox(tmp_path: Path) -> Bubblewrap:
    (tmp_path / "home").mkdir()
    (tmp_path / "checkout").mkdir()
    made = Bubblewrap(
        home=tmp_path / "home",
        repository=tmp_path / "repo",
        path=PATH,
        environment={"LC_ALL": "xx_XX.UTF-8"},
        marker="test",
        open_network=True,
    )
    if reason := made.probe():
        pytest.skip(f"bubblewrap does not work here: {reason}")
    return made


def finish(sandbox: Bubblewrap, tmp_path: Path, *command: str, nests: bool = False) -> Finished:
    box = Box(checkout=tmp_path / "checkout", network=True, runs="sealed" if nests else "itself")
    return anyio.run(partial(run, sandbox, box, command, timeout=50, tail=10_000))


def alone(writable: Path, *command: str, **options: bytes) -> subprocess.CompletedProcess[str]:
    """The command behind Landlock alone, without a box: nothing else could hold it."""
    argv = ["setpriv", "--no-new-privs", *confined(command, [writable], **options)]
    return subprocess.run(
        argv, env={**os.environ, **QUIET}, capture_output=True, text=True, check=False
    )


def test_it_writes_where_it_may_and_nowhere_else_whatever_the_mounts_say(tmp_path: Path):  # B5
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.mkdir()
    other.mkdir()
    (other / "kept").write_text("kept")
    script = f"""
    cd {mine}; mkdir a b && echo hi > a/x && mv a/x b/y && ln b/y b/z && ln -s y b/l && mkfifo f
    rm b/z && rmdir a && echo more >> b/y && echo to-null > /dev/null && cat b/y
    cd {other}; echo x > kept; echo x > new; rm -f kept; mkdir d; ln -s / l; mv kept {mine}/
    true > kept; touch -t 200001010000 kept || :; ln kept {mine}/kept
    echo x > /proc/self/comm; echo 1 > /proc/sys/vm/drop_caches; cat kept
    """
    done = alone(mine, "sh", "-c", script)
    assert done.stdout == "hi\nmore\nkept", done.stderr
    assert [path.name for path in other.iterdir()] == ["kept"]
    assert sorted(path.name for path in mine.iterdir()) == ["b", "f"]


def test_a_single_file_may_be_written_too(tmp_path: Path):
    (tmp_path / "one").touch()
    (tmp_path / "other").touch()
    script = f"echo x > {tmp_path}/one; echo x > {tmp_path}/other; echo x > {tmp_path}/new"
    alone(tmp_path / "one", "sh", "-c", script)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "one": "x\n",
        "other": "",
    }


def test_every_check_is_behind_it(sandbox: Bubblewrap, tmp_path: Path):  # B5
    """Mounts and namespaces are refused by it too; `/proc` is writable but for it."""
    write = "echo x > /proc/self/comm && echo written; echo ok > here; echo ok > /tmp/x; cat here"
    assert "written" not in finish(sandbox, tmp_path, "bash", "-c", write).output
    assert finish(sandbox, tmp_path, "bash", "-c", write).output.endswith("ok\n")
    wide = finish(sandbox, tmp_path, "bash", "-c", write, nests=True)
    assert "written" in wide.output, "a program that starts boxes needs /proc/self/uid_map"


@pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")
def test_no_abstract_socket_of_the_host_is_reached(sandbox: Bubblewrap, tmp_path: Path):  # B5 B20
    """Not even on a network that is the host's; its own ones are."""
    if landlock.version() < SCOPES:
        pytest.skip("this kernel's Landlock does not know abstract sockets")
    name = f"windlass-test-{os.getpid()}"
    script = (
        "import socket\n"
        "def tried(name):\n"
        "  with socket.socket(socket.AF_UNIX) as s:\n"
        "    try: s.connect('\\0' + name); return 'reached'\n"
        "    except OSError as e: return type(e).__name__\n"
        f"own = socket.socket(socket.AF_UNIX); own.bind('\\0{name}-own'); own.listen()\n"
        f"print(tried('{name}'), tried('{name}-own'))\n"
    )
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{name}")
        server.listen()
        done = finish(sandbox, tmp_path, "/usr/bin/python3", "-c", script)
        assert done.output == "PermissionError reached\n"


def test_nothing_outside_is_signalled_or_traced(tmp_path: Path):
    if landlock.version() < SCOPES:
        pytest.skip("this kernel's Landlock does not know signals")
    me = os.getpid()
    script = f"kill -0 {me} && echo signalled; true < /proc/{me}/mem && echo opened"
    assert subprocess.check_output(["sh", "-c", script], text=True) == "signalled\nopened\n"
    assert alone(tmp_path, "sh", "-c", script).stdout == ""


def test_a_command_that_is_not_there_was_never_started(sandbox: Bubblewrap, tmp_path: Path):
    done = finish(sandbox, tmp_path, "no-such-program")
    assert (done.started, done.exit_code) == (False, None)
    assert "no-such-program: No such file or directory" in done.output
    done = finish(sandbox, tmp_path, "sh", "-c", "exit 126")
    assert (done.started, done.exit_code) == (True, 126)


def test_the_command_gets_what_it_would_get_without(sandbox: Bubblewrap, tmp_path: Path):
    """Its arguments and environment, no open files, and no word of the launcher's."""
    script = 'printf \'%s,\' "$0" "$@"; env | grep -c PERL; ls /proc/self/fd | wc -l'
    both = [
        finish(sandbox, tmp_path, "sh", "-c", script, "--", "a b", "", "--", "-e", nests=nests)
        for nests in (False, True)
    ]
    assert both[0].output == both[1].output == "--,a b,,--,-e,0\n4\n"


def test_it_lays_a_filter_for_a_command_that_has_none(tmp_path: Path):
    narrow = filter_for(os.uname().machine, nests=False)
    if not narrow:
        pytest.skip(f"there is no filter for {os.uname().machine}")
    done = alone(tmp_path, "unshare", "--user", "true", seccomp=narrow)
    assert "Operation not permitted" in done.stderr
    assert alone(
        tmp_path, "sh", "-c", "grep Seccomp: /proc/self/status", seccomp=narrow
    ).stdout == ("Seccomp:\t2\n")


def test_an_older_kernel_gets_what_it_knows(monkeypatch: pytest.MonkeyPatch):
    sizes = {}
    for known in range(8):
        monkeypatch.setattr(landlock, "version", lambda known=known: known)
        argv = confined(["true"], ["/x"])
        sizes[known] = len(bytes.fromhex(argv[4])) if len(argv) > 1 else 0
    assert sizes == {0: 0, 1: 0, 2: 8, 3: 8, 4: 16, 5: 16, 6: 24, 7: 24}
    monkeypatch.setattr(landlock, "version", lambda: 2)
    assert int(confined(["true"], ["/x"])[8].partition(":")[0]) == 0x37B2, "no truncate, no ioctl"


def test_without_perl_or_bounds_a_command_is_as_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    assert confined(["true"], []) == ["true"]
    monkeypatch.setattr(landlock, "PERL", tmp_path / "perl")
    assert confined(["true"], ["/x"]) == ["true"]
    assert "is not installed" in (landlock.why_not() or "")
