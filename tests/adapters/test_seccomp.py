"""The filter of calls into the kernel: what it answers, and that every box has it."""  # B5

import os
import platform
import shlex
import shutil
import struct
from functools import partial
from pathlib import Path

import anyio
import pytest

from windlass.adapters.processes import run
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.handing import Handed
from windlass.adapters.sandbox.model import Box
from windlass.adapters.sandbox.seccomp import MACHINES, filter_for

ALLOWED, REFUSED = 0x7FFF0000, 0x00050001
X32 = 0x40000000
PATH = "/usr/local/bin:/usr/bin:/bin"


def answer(program: bytes, audit: int, number: int) -> int:
    """What the kernel would answer, by the few instructions that there are."""
    steps = list(struct.iter_unpack("=HBBI", program))
    seen = struct.pack("=II", number, audit)
    value = at = 0
    while True:
        code, then, otherwise, operand = steps[at]
        at += 1
        match code:
            case 0x20:
                [value] = struct.unpack_from("=I", seen, operand)
            case 0x54:
                value &= operand
            case 0x15:
                at += then if value == operand else otherwise
            case _:
                assert code == 0x06
                return operand


@pytest.mark.parametrize("machine", MACHINES)
def test_the_refused_calls_are_refused_and_no_other(machine: str):
    program = filter_for(machine)
    for numbers in MACHINES[machine]:
        said = {
            number for number in range(500) if answer(program, numbers.audit, number) != ALLOWED
        }
        assert said == set(numbers.refused)
        assert {answer(program, numbers.audit, number) for number in said} == {REFUSED}
        assert answer(program, numbers.audit, X32 | numbers.keyctl) == REFUSED
    assert answer(program, 0x12345678, 0) == REFUSED, "no such machine speaks that"


def test_a_machine_that_is_not_known_has_none():
    assert filter_for("vax") == b""
    with Handed() as handed:
        assert (handed.filter(b""), handed.numbers) == ((), ())


def test_every_start_has_a_filter_of_its_own_and_leaves_nothing_open():
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    with Handed() as one, Handed() as other:
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
        objects=(),
        path=PATH,
        environment={},
        marker="test",
    )
    if reason := made.probe():
        pytest.skip(f"bubblewrap does not work here: {reason}")
    return made


@pytest.mark.parametrize("apart", [False, True])
def test_no_box_reaches_the_kernels_keys(sandbox: Bubblewrap, tmp_path: Path, *, apart: bool):
    """Not even by looking up the user's keyring (0, -4), nor from a box within the box."""
    native, _ = MACHINES[platform.machine()]
    script = f"print syscall({native.keyctl}, 0, -4, 0), ' ', $! + 0"
    command = ["perl", "-e", script]
    if apart:
        command = [*sandbox.launcher, shlex.join(command)]
    box = Box(checkout=tmp_path, network=False, runs="sealed" if apart else "itself")
    done = anyio.run(partial(run, sandbox, box, command, timeout=20, tail=1000))
    assert done.output == "-1 1", "EPERM"
