"""The filters of calls into the kernel: what they answer, and that every box has one."""  # B5

import errno
import os
import platform
import re
import shlex
import shutil
import struct
from functools import partial
from pathlib import Path

import anyio
import pytest

from windlass.adapters.sandbox import seccomp
from windlass.adapters.sandbox.box import Box
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.commands import Finished, run
from windlass.adapters.sandbox.mounts import InheritedFiles
from windlass.adapters.sandbox.seccomp import AUDIT, MACHINES, Abi, filter_for, refused

ALLOWED = "allowed"
PATH = "/usr/local/bin:/usr/bin:/bin"
HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "i386": "/usr/include/x86_64-linux-gnu/asm/unistd_32.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}
NEW_USER, NEW_MOUNTS, NEW_TIME = 0x10000000, 0x20000, 0x80
THREAD = 0x3D0F00  # the flags with which a C library starts one


def answer(program: bytes, audit: int, number: int, *arguments: int) -> str:
    """What the kernel would answer, by the few instructions that there are."""
    steps = list(struct.iter_unpack("=HBBI", program))
    words = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    seen = struct.pack("=IIQ6Q", number, audit, 0, *words)
    value = at = 0
    while True:
        code, then, otherwise, operand = steps[at]
        at += 1
        match code:
            case 0x20:
                [value] = struct.unpack_from("=I", seen, operand)
            case 0x05:
                at += operand
            case 0x15:
                at += then if value == operand else otherwise
            case 0x35:
                at += then if value >= operand else otherwise
            case 0x45:
                at += then if value & operand else otherwise
            case _:
                assert code == 0x06
                return ALLOWED if operand == 0x7FFF0000 else errno.errorcode[operand & 0xFFFF]


@pytest.mark.parametrize("nests", [False, True])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_listed_calls_are_refused_and_no_other(machine: str, *, nests: bool):
    program = filter_for(machine, nests=nests)
    for abi in MACHINES[machine]:
        listed = {
            number: errno.errorcode[said] for number, said in refused(abi, nests=nests).items()
        }
        looked_into = {
            call.number(abi) for call in (seccomp._SOCKET, seccomp._SOCKETCALL, seccomp._CLONE)
        }
        for number in set(range(600)) - looked_into:
            assert answer(program, AUDIT[abi], number) == listed.get(number, ALLOWED), number
    assert answer(program, 0x12345678, 0) == "ENOSYS", "no such machine makes that call"


@pytest.mark.parametrize("machine", MACHINES)
def test_the_two_filters_differ_in_namespaces_and_mounts_alone(machine: str):
    for abi in MACHINES[machine]:
        only = {*refused(abi, nests=False)} - {*refused(abi, nests=True)}
        inner = {*seccomp._INNER.values(), seccomp._CLONE3}
        assert only == {call.number(abi) for call in inner} - {-1}
        assert not {*refused(abi, nests=True)} - {*refused(abi, nests=False)}


SOCKET, IOCTL, PERSONALITY = seccomp._SOCKET, seccomp._IOCTL, seccomp._PERSONALITY
CLONE, UNSHARE = seccomp._CLONE, seccomp._UNSHARE
BY_ARGUMENT = [
    *((SOCKET, (family,), ALLOWED) for family in (1, 2, 10, 16)),
    # AF_PACKET, AF_ALG, AF_VSOCK, AF_XDP, and one of which the kernel sees the low half alone.
    *((SOCKET, (family,), "EAFNOSUPPORT") for family in (17, 38, 40, 44, (1 << 32) | 40)),
    *((IOCTL, (0, word), "EPERM") for word in (0x5412, 0x541C, (7 << 32) | 0x5412)),
    (IOCTL, (0, 0x5413), ALLOWED),
    *((PERSONALITY, (kind,), ALLOWED) for kind in (0, 8, 0x40000, 0xFFFFFFFF)),
    *((PERSONALITY, (kind,), "EPERM") for kind in (0x0400000, 0x0100000, 0x0400008)),
    (CLONE, (THREAD,), ALLOWED),
    (UNSHARE, (0x400,), ALLOWED),
]
NAMESPACES = (NEW_USER, NEW_MOUNTS, 0x2000000, 0x4000000, 0x8000000, 0x20000000, 0x40000000)


@pytest.mark.parametrize("nests", [False, True])
@pytest.mark.parametrize("machine", MACHINES)
def test_arguments_decide_where_a_call_is_harmless_in_one_form(machine: str, *, nests: bool):
    program = filter_for(machine, nests=nests)
    of_namespaces = ALLOWED if nests else "EPERM"
    cases = [
        *BY_ARGUMENT,
        *((call, (flag | 17,), of_namespaces) for call in (CLONE, UNSHARE) for flag in NAMESPACES),
        (UNSHARE, (NEW_TIME,), of_namespaces),
    ]
    for abi in MACHINES[machine]:
        for call, arguments, wanted in cases:
            assert answer(program, AUDIT[abi], call.number(abi), *arguments) == wanted, call


@pytest.mark.parametrize("nests", [False, True])
def test_no_other_numbers_lead_around_the_filter(*, nests: bool):
    """On i386 the kind of a socket may stand in memory; x32 has the numbers of x86_64 and more."""
    program = filter_for("x86_64", nests=nests)
    call = seccomp._SOCKETCALL.i386
    assert answer(program, AUDIT["i386"], call, 1) == "EAFNOSUPPORT"
    assert answer(program, AUDIT["i386"], call, 3) == ALLOWED
    for number in (0, 39, seccomp._ANYWHERE["keyctl"].x86_64, 515):
        assert answer(program, AUDIT["x86_64"], seccomp.X32 | number) == "ENOSYS"


@pytest.mark.parametrize("abi", HEADERS)
def test_the_numbers_are_those_of_the_kernels_headers(abi: Abi):
    path = Path(HEADERS[abi])
    if not path.is_file():
        pytest.skip(f"{path} is not installed")
    known = {
        name: int(number)
        for name, number in re.findall(r"#define __NR_(\w+)\s+(\d+)", path.read_text())
    }
    calls = seccomp._ANYWHERE | seccomp._AS_IF_MISSING | seccomp._INNER
    calls |= {"clone": seccomp._CLONE, "clone3": seccomp._CLONE3, "unshare": seccomp._UNSHARE}
    calls |= {"socket": seccomp._SOCKET, "ioctl": seccomp._IOCTL}
    calls |= {"personality": seccomp._PERSONALITY, "socketcall": seccomp._SOCKETCALL}
    ours = {name: call.number(abi) for name, call in calls.items()}
    newer = {"open_tree_attr", "clock_settime64"}  # than some headers; the second is of 32 bits
    assert {name: number for name, number in ours.items() if name not in newer} == {
        name: known.get(name, -1) for name in ours if name not in newer
    }


def test_a_machine_that_is_not_listed_has_no_filter():
    assert filter_for("vax", nests=False) == b""
    with InheritedFiles() as handed:
        assert (handed.filter(b""), handed.numbers) == ((), ())


def test_every_start_has_a_filter_of_its_own_and_leaves_nothing_open():
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    with InheritedFiles() as one, InheritedFiles() as other:
        one.filter(b"one")
        other.filter(b"two")
        [first], [second] = one.numbers, other.numbers
        assert os.read(first, 9) + os.read(second, 9) == b"onetwo"
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208


@pytest.fixture
def sandbox(tmp_path: Path) -> Bubblewrap:
    if platform.machine() not in MACHINES:
        pytest.skip(f"there is no filter for {platform.machine()}")
    if shutil.which("perl", path=PATH) is None:
        pytest.skip("perl, which makes the calls, is not installed")
    (tmp_path / "home").mkdir()
    made = Bubblewrap(
        home=tmp_path / "home",
        repository=tmp_path / "repo",
        path=PATH,
        environment={},
        marker="test",
    )
    if reason := made.probe():
        pytest.skip(f"bubblewrap does not work here: {reason}")
    return made


def finish(sandbox: Bubblewrap, tmp_path: Path, *command: str, nests: bool = False) -> Finished:
    box = Box(checkout=tmp_path, network=True, runs="sealed" if nests else "itself")
    return anyio.run(partial(run, sandbox, box, command, timeout=50, tail=10_000))


def called(*calls: tuple[int, ...]) -> tuple[str, ...]:
    """The command that makes these calls, and prints what the kernel answers to each."""
    lines = (
        f"$! = 0; $r = syscall({', '.join(map(str, call))}); print $r, ' ', $! + 0, qq(\\n);"
        for call in calls
    )
    return ("perl", "-e", "".join(lines))


@pytest.mark.parametrize("nests", [False, True])
def test_every_listed_call_is_refused_in_a_real_box(  # B5
    sandbox: Bubblewrap, tmp_path: Path, *, nests: bool
):
    """Each with arguments of zero, by which none could do harm if it got through."""
    [native, _] = MACHINES[platform.machine()]
    listed = refused(native, nests=nests)
    done = finish(
        sandbox, tmp_path, *called(*((number, 0, 0, 0) for number in listed)), nests=nests
    )
    said = [tuple(map(int, line.split())) for line in done.output.splitlines()]
    assert dict(zip(listed, said, strict=True)) == {
        number: (-1, error) for number, error in listed.items()
    }


@pytest.mark.parametrize("nests", [False, True])
def test_no_box_makes_a_socket_that_namespaces_do_not_hold(  # B5 B20
    sandbox: Bubblewrap, tmp_path: Path, *, nests: bool
):
    [native, _] = MACHINES[platform.machine()]
    socket = seccomp._SOCKET.number(native)
    stream, raw = 1, 3
    kinds = ((40, stream), (38, stream), (44, raw), (16, raw), (2, stream), (1, stream))
    calls = [(socket, *kind, 0) for kind in kinds]
    done = finish(sandbox, tmp_path, *called(*calls), nests=nests)
    said = [line.split() for line in done.output.splitlines()]
    assert [code for code, _ in said[:3]] == ["-1"] * 3, "AF_VSOCK, AF_ALG, AF_XDP"
    assert [int(error) for _, error in said[:3]] == [errno.EAFNOSUPPORT] * 3
    assert all(int(code) > 0 for code, _ in said[3:]), "AF_NETLINK, AF_INET, AF_UNIX"


def test_x86_64_refuses_by_its_older_numbers_too(sandbox: Bubblewrap, tmp_path: Path):  # B5
    """A 64-bit program can make calls by i386's numbers and by x32's."""
    cc = shutil.which("cc")
    if platform.machine() != "x86_64" or cc is None:
        pytest.skip("this needs x86_64 and a C compiler")
    (tmp_path / "old.c").write_text(
        """
        #include <stdio.h>
        static long old(long n, long a) { long r;
          __asm__ volatile("int $0x80" : "=a"(r) : "a"(n), "b"(a), "c"(0L), "d"(0L) : "memory");
          return (int)r; }
        static long x32(long n) { long r;
          __asm__ volatile("syscall" : "=a"(r) : "a"(n | 0x40000000), "D"(0L), "S"(0L), "d"(0L)
            : "rcx", "r11", "memory"); return r; }
        int main(void) { printf("%ld %ld %ld %ld %ld %ld\\n", old(20, 0) > 0 ? 0L : 1L,
          old(288, 0), old(425, 0), old(359, 40), old(102, 1), x32(250)); return 0; }
        """
    )
    done = finish(sandbox, tmp_path, "sh", "-c", f"{cc} -o old old.c && ./old")
    first, *said = map(int, done.output.split())
    if first:
        pytest.skip("this kernel serves no calls of i386")
    assert said == [
        -errno.EPERM,
        -errno.ENOSYS,
        -errno.EAFNOSUPPORT,
        -errno.EAFNOSUPPORT,
        -errno.ENOSYS,
    ]


def test_a_box_starts_no_box_of_its_own_unless_it_is_to(sandbox: Bubblewrap, tmp_path: Path):  # B5
    """Whether by the call itself, or by programs that make it."""
    [native, _] = MACHINES[platform.machine()]
    script = (
        "unshare --user true && echo unshared; "
        "bwrap --dev-bind / / --unshare-user true && echo boxed; echo over"
    )
    narrow = finish(sandbox, tmp_path, "sh", "-c", script)
    assert "shared" not in narrow.output
    assert "boxed" not in narrow.output
    assert narrow.output.endswith("over\n")
    wide = finish(sandbox, tmp_path, "sh", "-c", script, nests=True)
    assert "unshared" in wide.output
    clone = seccomp._CLONE.number(native)
    done = finish(sandbox, tmp_path, *called((clone, NEW_USER | 17, 0)))
    assert done.output == f"-1 {errno.EPERM}\n"


def test_ordinary_programs_work_behind_the_narrow_filter(sandbox: Bubblewrap, tmp_path: Path):
    """Threads and processes, which C libraries start by `clone3` where they can."""
    script = (
        "import subprocess, threading, socket, multiprocessing as m\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
        "print(subprocess.check_output(['echo', 'process'], text=True), end='')\n"
        "p = m.get_context('fork').Process(target=print, args=('fork',)); p.start(); p.join()\n"
        "a = socket.create_server(('127.0.0.1', 0)); socket.create_connection(a.getsockname())\n"
        "print('socket')\n"
    )
    done = finish(sandbox, tmp_path, "/usr/bin/python3", "-c", script)
    assert done.output.split() == ["thread", "process", "fork", "socket"]
    for program, words in (("node", ["-e", "console.log('node')"]), ("java", ["-version"])):
        if shutil.which(program, path=PATH):
            done = finish(sandbox, tmp_path, program, *words)
            assert done.exit_code == 0, done.output


@pytest.mark.parametrize("apart", [False, True])
def test_no_box_reaches_the_kernels_keys(sandbox: Bubblewrap, tmp_path: Path, *, apart: bool):
    """Not even by looking up the user's keyring (0, -4), nor from a box within the box."""
    [native, _] = MACHINES[platform.machine()]
    words = called((seccomp._ANYWHERE["keyctl"].number(native), 0, -4, 0))
    command = [*sandbox.launcher, shlex.join(words)] if apart else list(words)
    done = finish(sandbox, tmp_path, *command, nests=apart)
    assert done.output == "-1 1\n", "EPERM"
