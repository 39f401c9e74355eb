"""The walls of level bwrap, tried from the inside with real processes.

Whatever would harm the host if a wall were missing is asked about (`test -w`, the list of mounts),
never tried: a test that fails must not be the break-out it looks for.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import anyio
import pytest

from waiting import eventually
from windlass.adapters.processes.leftovers import MARKER, end_leftovers
from windlass.adapters.processes.limits import Limits
from windlass.adapters.sandbox import landlock
from windlass.adapters.sandbox.box import Box
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.commands import run
from windlass.adapters.sandbox.host import private_paths
from windlass.adapters.sandbox.plain import Plain
from windlass.errors import ConfigError

PATH = "/usr/local/bin:/usr/bin:/bin"
LOGINS = (".ssh/id", ".aws/credentials", ".netrc", ".claude/.credentials.json", ".config/gh/hosts")
SECRETS = {
    "ANTHROPIC_API_KEY": "sk-ant-secret",
    "GITHUB_TOKEN": "ghp-secret",
    "DB_PASSWORD": "hunter2-secret",
    "LC_SECRET": "lc-secret",
    "PYENV_TOKEN": "pyenv-secret",
    "PIP_INDEX_URL": "https://me:pip-secret@example.org",
    "SSH_AUTH_SOCK": "/tmp/agent-secret",  # noqa: S108
}


def write(path: Path, text: str = "", mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


class World:
    """A user with keys and tools, a repository, and a checkout of it elsewhere."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home" / "ann"
        self.repository = root / "srv" / "project"
        self.checkout = self.repository / ".windlass/plans/p/workspaces/t"
        self.marker = f"test-{os.getpid()}-{root.name}"
        for login in LOGINS:
            write(self.home / login, "private")
        write(self.repository / "uncommitted.py", "private")
        write(self.repository / ".git/config", "private")
        write(self.repository / ".git/objects/ab/cdef", "an object")
        write(self.repository / ".windlass/plans/p/journal.db", "private")
        self.checkout.mkdir(parents=True)

    def sandbox(self, *path: Path, **more: object) -> Bubblewrap:
        given: dict[str, object] = {
            "home": self.home,
            "repository": self.repository,
            "path": os.pathsep.join((*(str(entry) for entry in path), PATH)),
            "environment": {**SECRETS, "LANG": "C.UTF-8", "HOME": str(self.home)},
            "marker": self.marker,
            **more,
            "read": (self.repository / ".git/objects", *more.get("read", ())),
        }
        return Bubblewrap(**given)  # pyright: ignore[reportArgumentType]

    def box(self, *, network: bool = False, **more: object) -> Box:
        return Box(checkout=self.checkout, network=network, **more)  # pyright: ignore[reportArgumentType]

    def sh(self, script: str, sandbox: Bubblewrap | None = None, box: Box | None = None) -> str:
        """What the script prints inside; it must succeed."""
        job = partial(run, sandbox or self.sandbox(), box or self.box(), ["sh", "-c", script])
        done = anyio.run(partial(job, timeout=20, tail=100_000))
        assert (done.started, done.exit_code) == (True, 0), done.output
        return done.output


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    if reason := made.sandbox().probe():
        pytest.skip(f"bubblewrap does not work here: {reason}")
    return made


def living(marker: str) -> list[str]:
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARKER}={marker}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().decode())
        except OSError:
            continue
    return found


def test_only_the_checkout_and_folders_in_memory_can_be_written(world: World):  # B5, G4
    mounts = [line.split() for line in world.sh("cat /proc/self/mounts").splitlines()]
    writable = {
        where: kind
        for _, where, kind, options, *_ in mounts
        if "rw" in options.split(",") and not where.startswith("/dev/")
    }

    checkout = world.sandbox().inside(world.box())
    assert writable.pop(checkout)
    assert writable.pop("/proc") == "proc"
    assert writable == dict.fromkeys(["/tmp", "/var/tmp", str(world.home)], "tmpfs")  # noqa: S108
    agent = world.sandbox().environment(world.box(runs="apart"))
    assert agent["HOME"].startswith("/windlass-agent/")


def test_nobody_not_even_root_can_change_the_hosts_kernel(world: World):  # B5
    """Settings of the box's own namespaces (net, ipc) are its own affair."""
    hosts = (
        "/proc/sys/kernel/core_pattern /proc/sys/kernel/panic /proc/sys/vm /proc/sys/fs/file-max"
    )

    assert world.sh(f"find {hosts} /sys -type f -writable 2>/dev/null | head -n 1") == ""


def test_no_capability_is_left(world: World):  # B5
    assert set(world.sh("grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status | cut -f2").split()) == {
        "0000000000000000"
    }


def test_nothing_remains_but_what_is_in_the_checkout(world: World):  # G4
    before = set(world.root.rglob("*"))
    told = world.sh(
        f"echo x > /tmp/left; echo x > ~/left; echo x > kept; ls /tmp ~;"
        f"touch {world.repository}/new 2>&1; touch {world.root}/new; true"
    )

    assert told.count("left") == 2
    assert "Read-only file system" in told
    assert set(world.root.rglob("*")) - before == {world.checkout / "kept"}
    assert not Path("/tmp/left").exists()  # noqa: S108


def test_keys_and_logins_are_not_there(world: World):  # B5
    assert world.sh("find ~ -mindepth 1") == ""
    assert world.sh(f"find {world.root} -type f") == f"{world.repository}/.git/objects/ab/cdef\n"


def test_a_wide_folder_to_read_still_hides_the_logins_in_it(world: World):  # B5
    write(world.home / ".config/tool/settings", "harmless")
    wide = world.sandbox(read=(Path("~/.config"),))

    assert world.sh("cat ~/.config/tool/settings; ls -A ~/.config/gh", wide) == "harmless"
    box = world.box(read=(world.home / ".config",))
    assert world.sh("cat ~/.config/tool/settings; ls -A ~/.config/gh", box=box) == "harmless"


def test_a_folder_around_the_repository_does_not_uncover_it(world: World):  # B5
    write(world.repository.parent / "other/file", "neighbour")
    wide = world.sandbox(read=(world.repository.parent, world.repository))

    told = world.sh(f"cd {world.repository}; cat ../other/file; ls -A", wide)

    assert told == "neighbour.git\n"


@pytest.mark.parametrize("name", ["~/.ssh", "~/.config/gh/hosts", "~", "link"])
def test_logins_cannot_be_asked_for(world: World, name: str):  # B5
    (world.root / "link").symlink_to(world.home / ".aws")
    folder = world.root / name if name == "link" else Path(name)

    with pytest.raises(ConfigError, match=r"\[sandbox\] read"):
        world.sandbox(read=(folder,))


def test_of_the_repository_only_objects_show(world: World):  # B5
    told = world.sh(f"cd {world.repository}; cat .git/objects/ab/cdef; find . -type f; ls -A")

    assert told == "an object./.git/objects/ab/cdef\n.git\n"


def test_a_repository_in_the_home_is_covered_the_same(tmp_path: Path, world: World):
    world.repository = world.home / "src/project"
    write(world.repository / "uncommitted.py", "private")
    write(world.repository / ".git/objects/ab/cdef", "an object")
    outside = tmp_path / "elsewhere.git"
    write(outside / "config", "private")
    sandbox = world.sandbox(masked=(outside,))

    told = world.sh(
        f"cat {world.repository}/.git/objects/ab/cdef; find ~ {outside} -type f", sandbox
    )

    assert told == f"an object{world.repository}/.git/objects/ab/cdef\n"


def test_a_file_named_for_one_box_can_be_read_there_alone(world: World):
    program = write(world.home / "opt/site-packages/agent/cli", "#!/bin/sh\necho agent\n", 0o755)

    assert world.sh(str(program), box=world.box(read=(program,))) == "agent\n"
    assert world.sh(f"ls {program} 2>&1 || true").startswith("ls: ")


def test_tools_below_the_home_can_be_used(world: World):
    write(world.home / ".pyenv/versions/3/bin/tool", "#!/bin/sh\necho the tool\n", 0o755)
    shim = f'#!/bin/sh\nexec "{world.home}/.pyenv/versions/3/bin/tool"\n'
    write(world.home / ".pyenv/shims/tool", shim, 0o755)

    told = world.sh("tool; ls -A ~", world.sandbox(world.home / ".pyenv/shims"))

    assert told == "the tool\n.pyenv\n"


def test_a_home_and_tools_behind_links_can_be_used(world: World):
    write(world.root / "data/pyenv/shims/tool", "#!/bin/sh\necho the tool\n", 0o755)
    (world.home / ".pyenv").symlink_to(world.root / "data/pyenv")
    link = world.root / "ann"
    link.symlink_to(world.home)
    sandbox = world.sandbox(link / ".pyenv/shims", home=link, read=(world.root / "data",))

    assert world.sh("echo $HOME; tool", sandbox) == f"{link}\nthe tool\n"


def test_a_virtualenv_in_the_repository_can_be_used(world: World):
    venv = world.repository / ".venv"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--symlinks", venv], check=True, timeout=60
    )
    sandbox = world.sandbox(venv / "bin", read=(Path(sys.base_prefix),))

    told = world.sh("python -c 'import sys, json; print(sys.prefix)'", sandbox)

    assert told == f"{venv}\n"


@pytest.fixture
def server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.parametrize("open_network", [False, True])
def test_the_hosts_loopback_is_reached_only_where_the_network_is_open(  # B20
    world: World,
    server: int,
    open_network: bool,  # noqa: FBT001
):
    code = f"import socket; print(socket.socket().connect_ex(('127.0.0.1', {server})) == 0)"
    box = world.box(network=True, read=(Path(sys.base_prefix),))
    sandbox = world.sandbox(open_network=open_network)

    told = world.sh(f'{sys.base_prefix}/bin/python3 -c "{code}"', sandbox, box)

    assert told == f"{open_network}\n"


def test_without_network_there_is_only_an_empty_loopback(world: World):  # B5
    assert world.sh("tail -n +3 /proc/net/dev | cut -d: -f1").split() == ["lo"]


def test_no_secret_of_the_environment_is_anywhere(world: World):  # B5
    told = world.sh("env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'")

    assert "LANG=C.UTF-8" in told
    assert [name for name in SECRETS if name in told] == []
    assert [value for value in SECRETS.values() if value in told] == []


def test_the_environment_is_exactly_the_one_given(world: World):  # B5
    box = world.box(env={"ANTHROPIC_API_KEY": "proxy-token"})
    sandbox = world.sandbox(pass_env=("DB_PASSWORD",))
    expected = {*sandbox.environment(box), "PWD"}

    told = world.sh("cat /proc/self/environ | tr '\\0' '\\n'", sandbox, box)
    # Behind Landlock the first process cannot be looked into; a box that nests is without it.
    wide = world.box(env=box.env, runs="sealed")
    first = world.sh("cat /proc/1/environ | tr '\\0' '\\n'", sandbox, wide)

    names = {line.partition("=")[0] for line in told.splitlines()}
    assert names - {"_", "SHLVL", "OLDPWD"} == expected
    assert {line.partition("=")[0] for line in first.splitlines()} <= expected
    assert "ANTHROPIC_API_KEY=proxy-token\n" in told  # what Windlass named for this box
    assert "DB_PASSWORD=hunter2-secret\n" in told  # what the user named for all


def test_not_even_root_reads_what_is_closed_to_others(world: World):  # B5
    """Of /etc and /var a box shows what any user of the machine may read."""
    files = "-type f -size +0 -readable ! -perm -o=r"
    folders = "-type d -executable ! -perm -o=x ! -empty"
    look = f"find /etc /var -maxdepth 3 ! -fstype tmpfs '(' {files} -o {folders} ')'"
    found = world.sh(f"{look} 2> /dev/null || true")
    beyond = [Path(line) for line in found.splitlines()]

    assert [path for path in beyond if path.exists() and path.owner() == "root"] == []
    for name in ("shadow", "shadow-", "gshadow", "gshadow-"):
        assert world.sh(f"cat /etc/{name} 2> /dev/null || true") == ""


def test_what_is_closed_to_others_is_found_but_for_what_is_named(tmp_path: Path):  # B5
    if os.geteuid() != 0:
        pytest.skip("who is not root has nothing to look for")
    tmp_path.chmod(0o755)
    for name in ("key", "open/key", "closed/any", "objects/ab/cd", "deep/er/than/key"):
        write(tmp_path / name, "x", mode=0o600)
    write(tmp_path / "open/empty", mode=0o600)
    write(tmp_path / "open/read", "x")
    (tmp_path / "open/link").symlink_to(tmp_path / "key")
    (tmp_path / "closed").chmod(0o700)
    (tmp_path / "objects/ab").chmod(0o700)

    found = private_paths({tmp_path / "objects"}, [tmp_path, tmp_path / "open/read"])

    told = {str(path.relative_to(tmp_path)) for path in found}
    assert told == {"key", "open/key", "closed", "deep/er/than/key"}


def test_no_socket_of_the_host_is_there(world: World):  # B5
    with socket.socket(socket.AF_UNIX) as listening, tempfile.TemporaryDirectory() as folder:
        listening.bind(f"{folder}/socket")
        told = world.sh(f"find /run /var/run/ /tmp -type s; ls -A /run; ls {folder} 2>&1 || true")

    assert told.startswith("ls: ")
    assert len(told.splitlines()) == 1


def test_a_socket_in_a_folder_that_shows_cannot_be_called(world: World):  # B5
    folder = world.root / "opt/with spaces"
    folder.mkdir(parents=True)
    asks = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    if shutil.which("python3", path=PATH) is None:
        pytest.skip("python3, which calls, is not installed")
    sandbox = world.sandbox(read=[world.root / "opt"])
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/socket")
        listening.listen()
        subprocess.run(["python3", "-c", asks, f"{folder}/socket"], check=True)  # so it can be
        told = world.sh(f"python3 -c '{asks}' '{folder}/socket' 2>&1 || ls '{folder}'", sandbox)

    assert "ConnectionRefusedError" in told
    assert told.endswith("socket\n")


def test_a_socket_named_by_a_person_is_theirs_to_show(world: World):
    place = world.root / "socket"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        assert world.sh(f"test -S {place} && echo there", world.sandbox(read=[place])) == "there\n"


def test_processes_of_the_host_are_not_seen(world: World):  # B5
    seen = world.sh("ls /proc | grep -E '^[0-9]+$'").split()

    assert seen[0] == "1"
    assert len(seen) <= 5
    assert str(os.getpid()) not in seen or os.getpid() < 10


PARENT = """
import os, sys, anyio
from pathlib import Path
from windlass.adapters.processes.limits import Limits
from windlass.adapters.sandbox.commands import run
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.box import Box

home, repository, checkout, marker, script = sys.argv[1:]
sandbox = Bubblewrap(home=Path(home), repository=Path(repository), marker=marker,
                     path="/usr/bin:/bin", environment={})
box = Box(checkout=Path(checkout), network=False)
anyio.run(lambda: run(sandbox, box, ["sh", "-c", script], timeout=60, tail=10))
"""
DAEMON = "(setsid sh -c '(sleep 600 & echo up > ready; sleep 601)' &); sleep 602"


def test_everything_ends_when_windlass_is_killed(world: World):  # B5
    folders = (str(world.home), str(world.repository), str(world.checkout))
    parent = subprocess.Popen([sys.executable, "-c", PARENT, *folders, world.marker, DAEMON])
    eventually((world.checkout / "ready").exists)
    inside = living(world.marker)

    parent.send_signal(signal.SIGKILL)
    parent.wait()

    assert len(inside) >= 5
    eventually(lambda: not living(world.marker))
    assert end_leftovers(world.marker) == 0


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(prefix="windlass-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def as_nobody() -> list[str]:
    """What starts a command for a user without privileges."""
    if os.geteuid() != 0:
        pytest.skip("every other test here runs without privileges already")
    if not (setpriv := shutil.which("setpriv")):
        pytest.skip("setpriv is not installed")
    nobody = [setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if subprocess.run([*nobody, "bwrap", "--ro-bind", "/", "/", "true"], check=False).returncode:
        pytest.skip("users without privileges may not make namespaces here")
    return nobody


BOXED = """
import sys, anyio
from pathlib import Path
from windlass.adapters.sandbox.commands import run
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.box import Box

home, repository, checkout, marker, runs, script = sys.argv[1:]
sandbox = Bubblewrap(home=Path(home), repository=Path(repository), marker=marker,
                     path="/usr/bin:/bin", environment={})
box = Box(checkout=Path(checkout), network=runs != "itself", runs=runs)
script = script.replace("LAUNCH", " ".join(sandbox.launcher))
done = anyio.run(lambda: run(sandbox, box, ["sh", "-c", script], timeout=60, tail=9999))
print(done.output, end="")
sys.exit(done.exit_code if done.started else 99)
"""


def python_for(before: Sequence[str], env: dict[str, str]) -> str:
    """A Python that this user can start, and can start again: this one may lie in root's home."""
    again = "import subprocess, sys, msgspec, anyio; subprocess.run([sys.executable, '-c', ''])"
    for python in (sys.executable, "/usr/bin/python3"):
        tried = subprocess.run([*before, python, "-c", again], env=env, check=False)
        if tried.returncode == 0:
            return python
    pytest.skip("without privileges no Python can be started")


def boxed(world: World, script: str, *before: str, runs: str = "itself") -> str:
    """What a script says in a box that a process of its own builds, started by these words."""
    places = (str(world.home), str(world.repository), str(world.checkout))
    env = {"PYTHONPATH": os.pathsep.join(sys.path), "HOME": "/nonexistent", "PATH": PATH}
    done = subprocess.run(
        [*before, python_for(before, env), "-c", BOXED, *places, world.marker, runs, script],
        env=env,
        capture_output=True,
        check=False,
        timeout=120,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def unprivileged(shared: Path) -> tuple[World, list[str]]:
    world, nobody = World(shared), as_nobody()
    os.chown(world.checkout, 65534, 65534)
    os.chown(world.home, 65534, 65534)
    return world, nobody


def test_it_works_for_a_user_without_privileges(shared: Path):  # B5
    world, nobody = unprivileged(shared)
    script = "id -u; grep CapEff /proc/self/status; find ~ -type f; echo x > made"

    told = boxed(world, script, *nobody)

    assert told.split() == ["65534", "CapEff:", "0000000000000000"]
    assert (world.checkout / "made").stat().st_uid == 65534


REACHING = """
SECRET_OF_PARENT=1 sleep 60 & victim=$!
mkdir -p .git; echo mine > $HOME/.secret; echo mine > $TMPDIR/.secret
LAUNCH '
  kill -9 '$victim' 2>&1; cat /proc/'$victim'/environ 2>&1; echo x 2>&1 > /proc/'$victim'/fd/1
  grep -c SECRET_OF_PARENT /proc/[0-9]*/environ 2>/dev/null | grep -v :0
  find '$HOME' '$TMPDIR' /windlass-agent -name .secret 2>/dev/null
  env | cut -d= -f1 | sort | tr "\\n" " "
  (echo x > .git/config) 2>&1 | grep -o "Read-only file system"
  cat /proc/net/dev | tail -n +3 | cut -d: -f1
  echo made > made; echo x > /tmp/shared'
kill -0 $victim && echo it lives
cat /tmp/shared
"""


def assert_nothing_was_reached(told: str) -> None:
    assert "it lives\nx\n" in told
    assert "SECRET_OF_PARENT" not in told
    assert "/environ:1" not in told
    assert ".secret" not in told
    assert "GIT_EDITOR HOME PATH PWD SHLVL TMPDIR WINDLASS_BOX _" in " ".join(told.split())
    assert "Read-only file system" in told


@pytest.mark.parametrize("privileges", ["kept", "dropped"])
def test_what_a_coach_runs_reaches_nothing_of_the_coach(
    world: World, shared: Path, privileges: str
):
    """It is the Player's code, in the Coach's own box."""  # B5 G4
    before: list[str] = []
    if privileges == "dropped":
        world, before = unprivileged(shared)

    assert_nothing_was_reached(boxed(world, REACHING, *before, runs="sealed"))
    assert (world.checkout / "made").read_text() == "made\n"


def test_what_a_coach_runs_has_the_narrower_filter_and_landlock(world: World):  # B5
    """It starts no box of its own, so it needs neither namespaces nor a write to /proc."""
    if landlock.why_not() is not None:
        pytest.skip("no Landlock here")
    tries = "unshare -r true 2>&1; echo x > /proc/self/comm; echo x > /tmp/y && echo may write"

    told = boxed(world, f"LAUNCH '{tries}'", runs="sealed")

    assert "unshare failed: Operation not permitted" in told
    assert "Permission denied" in told
    assert told.endswith("may write\n")


def test_what_a_player_runs_does_not_see_the_program_and_stays(world: World):  # B5
    """Its commands share processes and network, so that a server it starts can be asked later."""
    script = """
    echo mine > $HOME/.secret
    LAUNCH 'ls -A /windlass-agent/home /windlass-agent/tmp 2>&1; (sleep 50 & echo $! > pid)'
    LAUNCH 'kill -0 $(cat pid) && echo still there; echo x > .git-like; echo $HTTPS_PROXY'
    """

    told = boxed(world, script, runs="apart")

    assert ".secret" not in told
    assert "still there\nhttp://127.0.0.1:" in told


def test_a_clone_that_borrows_objects_works_and_leaves_the_repository_alone(world: World):  # G4
    shutil.rmtree(world.repository)
    world.repository.mkdir()
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")

    def git(*arguments: str | Path) -> str:
        nothing = {"PATH": PATH, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", *who, "-C", world.repository, *arguments]
        return subprocess.run(
            command, env=nothing, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    git("init", "-q")
    write(world.repository / "file", "one")
    git("add", "file")
    git("commit", "-qm", "first")
    git("clone", "-qs", ".", world.checkout)
    before = git("for-each-ref")

    told = world.sh(
        "git log --format=%s; git status --short; echo two > file;"
        f"git {' '.join(who)} commit -qam second; git log --format=%s;"
        f"git -C {world.repository} log 2>&1 || true"
    )

    assert told.startswith("first\nsecond\nfirst\nfatal: not a git repository")
    assert git("for-each-ref") == before


def test_folders_in_memory_hold_a_share_of_the_memory_each(world: World):  # B5
    """Else a box could fill the machine's memory with files, which belong to no process."""
    small = world.sandbox(limits=Limits(memory=64_000_000))
    fill = "head -c 20000000 /dev/zero 2>&1 > {}/big; echo $?"

    told = world.sh(f"for f in /tmp /var/tmp ~ /dev/shm; do {fill.format('$f')}; done", small)

    assert [line for line in told.splitlines() if line.isdigit()] == ["1"] * 4
    assert told.count("No space left on device") == 4


def test_a_probe_tells_why_bubblewrap_fails(world: World):
    assert world.sandbox(program="/bin/false").probe() == "it ended with 1"


def test_the_root_as_repository_is_refused(world: World):
    with pytest.raises(ConfigError, match="cannot be covered"):
        world.sandbox(repository=Path("/"))


def test_plain_has_the_same_bare_environment_and_an_empty_home(world: World, tmp_path: Path):  # B5
    (world.home / ".rustup").mkdir()
    user = {**SECRETS, "HOME": str(world.home), "PATH": f".:{PATH}:bin", "TERM": "xterm"}
    plain = Plain("checkout", home=tmp_path / "empty", environment=user, marker="run")

    found = plain.environment(world.box(env={"X_KEY": "given"}))

    assert found.pop(MARKER).startswith("run:")
    assert found == {
        "HOME": str(tmp_path / "empty"),
        "PATH": PATH,
        "RUSTUP_HOME": str(world.home / ".rustup"),
        "TERM": "xterm",
        "TMPDIR": "/tmp",  # noqa: S108
        "X_KEY": "given",
    }
