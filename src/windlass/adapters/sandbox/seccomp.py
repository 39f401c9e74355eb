"""System calls that a box may not make: filters that the kernel applies to every process.

Law: a call is refused by its number where mounts and namespaces do not hide what it reaches. The
kernel keeps keys for each user, its own log, programs and modules, clocks, swap, and sockets that
no network namespace holds (`AF_VSOCK` leads to the host of a virtual machine). Also refused is what
builds do not need and exploits have used: `io_uring`, `bpf`, `userfaultfd`.

There are two filters. The wide one is for a program that starts a box of its own, as a Coach's
does: namespaces and mounts stay allowed. The narrow one is for everything else, and refuses those
as well. `ptrace` and `process_vm_readv` are allowed in both: debuggers are ordinary tools, and the
pid namespace of the box bounds what they reach.

An answer is chosen so that ordinary programs fall back: a call that an older kernel does not have
gets ENOSYS, a forbidden one EPERM, an unknown kind of socket EAFNOSUPPORT. `clone3` has its flags
in memory, where no filter can look; it gets ENOSYS, and C libraries then use `clone`.

A filter is classic BPF, written out here. A 64-bit kernel also serves the calls of its 32-bit
predecessor under other numbers, so each filter has a part for both; calls of any other kind get
ENOSYS. A machine that is not listed has no filter, and `windlass doctor` says so.
"""

import errno
import struct
from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

Abi = Literal["x86_64", "i386", "aarch64", "arm"]
"""One set of call numbers."""

MACHINES: Mapping[str, tuple[Abi, Abi]] = {
    "x86_64": ("x86_64", "i386"),
    "aarch64": ("aarch64", "arm"),
}
"""For each machine its own calls, and those of its 32-bit predecessor."""

AUDIT: Mapping[Abi, int] = {
    "x86_64": 0xC000003E,
    "i386": 0x40000003,
    "aarch64": 0xC00000B7,
    "arm": 0x40000028,
}
"""The kernel's number for each in a filter."""

X32 = 0x40000000
"""Numbers from here on are x86_64's third kind, x32, which distributions do not use."""

_ABSENT = -1


class Call(Struct, frozen=True):
    """One call: its number on each machine, or -1 where the machine does not have it."""

    x86_64: int
    i386: int
    aarch64: int
    arm: int

    def number(self, abi: Abi) -> int:
        return int(getattr(self, abi))


_ANYWHERE = {
    # Keys that the kernel holds for the user, and the kernel's own log.
    "add_key": Call(248, 286, 217, 309),
    "request_key": Call(249, 287, 218, 310),
    "keyctl": Call(250, 288, 219, 311),
    "syslog": Call(103, 103, 116, 103),
    # Ways into the kernel that builds do not need.
    "perf_event_open": Call(298, 336, 241, 364),
    "bpf": Call(321, 357, 280, 386),
    "userfaultfd": Call(323, 374, 282, 388),
    "lookup_dcookie": Call(212, 253, 18, 249),
    "uselib": Call(134, 86, _ABSENT, 86),
    # Files by a handle instead of a path: a handle does not care about mounts.
    "open_by_handle_at": Call(304, 342, 265, 371),
    # The machine itself.
    "kexec_load": Call(246, 283, 104, 347),
    "kexec_file_load": Call(320, _ABSENT, 294, 401),
    "create_module": Call(174, 127, _ABSENT, _ABSENT),
    "query_module": Call(178, 167, _ABSENT, _ABSENT),
    "get_kernel_syms": Call(177, 130, _ABSENT, _ABSENT),
    "init_module": Call(175, 128, 105, 128),
    "finit_module": Call(313, 350, 273, 379),
    "delete_module": Call(176, 129, 106, 129),
    "swapon": Call(167, 87, 224, 87),
    "swapoff": Call(168, 115, 225, 115),
    "reboot": Call(169, 88, 142, 88),
    "settimeofday": Call(164, 79, 170, 79),
    "stime": Call(_ABSENT, 25, _ABSENT, _ABSENT),
    "clock_settime": Call(227, 264, 112, 262),
    "clock_settime64": Call(_ABSENT, 404, _ABSENT, 404),
    "acct": Call(163, 51, 89, 51),
    "quotactl": Call(179, 131, 60, 131),
    "quotactl_fd": Call(443, 443, 443, 443),
    "nfsservctl": Call(180, 169, 42, 169),
    "_sysctl": Call(156, 149, _ABSENT, 149),
    "vhangup": Call(153, 111, 58, 111),
    "iopl": Call(172, 110, _ABSENT, _ABSENT),
    "ioperm": Call(173, 101, _ABSENT, _ABSENT),
    "vm86": Call(_ABSENT, 166, _ABSENT, _ABSENT),
    "vm86old": Call(_ABSENT, 113, _ABSENT, _ABSENT),
}
"""Refused with EPERM in every box."""

_AS_IF_MISSING = {
    "io_uring_setup": Call(425, 425, 425, 425),
    "io_uring_enter": Call(426, 426, 426, 426),
    "io_uring_register": Call(427, 427, 427, 427),
}
"""Refused with ENOSYS in every box: programs fall back, as on older kernels."""

_INNER = {
    "mount": Call(165, 21, 40, 21),
    "umount": Call(_ABSENT, 22, _ABSENT, _ABSENT),
    "umount2": Call(166, 52, 39, 52),
    "pivot_root": Call(155, 217, 41, 218),
    "open_tree": Call(428, 428, 428, 428),
    "open_tree_attr": Call(467, 467, 467, 467),
    "move_mount": Call(429, 429, 429, 429),
    "fsopen": Call(430, 430, 430, 430),
    "fsconfig": Call(431, 431, 431, 431),
    "fsmount": Call(432, 432, 432, 432),
    "fspick": Call(433, 433, 433, 433),
    "mount_setattr": Call(442, 442, 442, 442),
    "setns": Call(308, 346, 268, 375),
}
"""Refused with EPERM where no box is started within the box."""

_CLONE3 = Call(435, 435, 435, 435)
_CLONE = Call(56, 120, 220, 120)
_UNSHARE = Call(272, 310, 97, 337)
_SOCKET = Call(41, 359, 198, 281)
_SOCKETCALL = Call(_ABSENT, 102, _ABSENT, _ABSENT)
_IOCTL = Call(16, 54, 29, 54)
_PERSONALITY = Call(135, 136, 92, 136)

NAMESPACES = 0x7E020000
"""The flags that make namespaces: mount, cgroup, uts, ipc, user, pid, net."""
_TIME_NAMESPACE = 0x80
"""For `unshare` alone: in the flags of `clone` this bit is part of a signal's number."""

FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK: kinds of sockets that namespaces hold, and that
programs use. All others are refused, for some reach past every namespace."""
_MAKE_A_SOCKET = 1
"""The argument of i386's `socketcall` for a socket; its kind is in memory only."""

TERMINAL = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which type into a terminal."""

_ORDINARY = 0x8 | 0x20000 | 0x40000
"""What `personality` may be: of 32 bits, naming an old version, without random addresses."""
_ASKED = 0xFFFFFFFF
"""`personality` with this only asks."""

_LOAD, _JUMP, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
"""Offsets in the data that a filter sees. The low half of an argument comes first."""
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_WORD = 0xFFFFFFFF


def filter_for(machine: str, *, nests: bool) -> bytes:
    """The filter for a machine by its name; empty if the machine is not listed.

    With `nests` it is the wide one, which lets a program start its own box.
    """
    known = MACHINES.get(machine, ())
    if not known:
        return b""
    blocks = b"".join(_block(abi, nests=nests) for abi in known)
    return _step(_LOAD, _MACHINE) + blocks + _refuse(errno.ENOSYS)


def refused(abi: Abi, *, nests: bool) -> dict[int, int]:
    """The calls that are refused with any arguments, each with its error."""
    calls = [(call, errno.EPERM) for call in _ANYWHERE.values()]
    calls += [(call, errno.ENOSYS) for call in _AS_IF_MISSING.values()]
    if not nests:
        calls += [(call, errno.EPERM) for call in _INNER.values()]
        calls.append((_CLONE3, errno.ENOSYS))
    numbered = ((call.number(abi), answer) for call, answer in calls)
    return {number: answer for number, answer in numbered if number != _ABSENT}


def _block(abi: Abi, *, nests: bool) -> bytes:
    """Answers calls of this kind; others go on to the next block."""
    rules = [(number, _refuse(answer)) for number, answer in refused(abi, nests=nests).items()]
    rules += _by_argument(abi, nests=nests)
    tests = b"".join(_when(_IF_EQUAL, number, answer) for number, answer in rules)
    third = _when(_IF_AT_LEAST, X32, _refuse(errno.ENOSYS)) if abi == "x86_64" else b""
    answer = _step(_LOAD, _NUMBER) + third + tests + _step(_RETURN, _ALLOW)
    return _step(_IF_EQUAL, AUDIT[abi], then=1) + _step(_JUMP, _steps(answer)) + answer


def _by_argument(abi: Abi, *, nests: bool) -> Iterator[tuple[int, bytes]]:
    """The calls whose arguments decide, each with the steps that answer it."""
    allow = _step(_RETURN, _ALLOW)
    families = b"".join(_when(_IF_EQUAL, family, allow) for family in FAMILIES)
    typing = b"".join(_when(_IF_EQUAL, word, _refuse(errno.EPERM)) for word in TERMINAL)
    rules = [
        (_SOCKET, _argument(0) + families + _refuse(errno.EAFNOSUPPORT)),
        (
            _SOCKETCALL,
            _argument(0) + _when(_IF_EQUAL, _MAKE_A_SOCKET, _refuse(errno.EAFNOSUPPORT)) + allow,
        ),
        (_IOCTL, _argument(1) + typing + allow),
        (
            _PERSONALITY,
            _argument(0)
            + _when(_IF_EQUAL, _ASKED, allow)
            + _when(_IF_ANY, _WORD ^ _ORDINARY, _refuse(errno.EPERM))
            + allow,
        ),
    ]
    if not nests:
        for call, flags in ((_CLONE, NAMESPACES), (_UNSHARE, NAMESPACES | _TIME_NAMESPACE)):
            rules.append((call, _argument(0) + _when(_IF_ANY, flags, _refuse(errno.EPERM)) + allow))
    numbered = ((call.number(abi), steps) for call, steps in rules)
    return ((number, steps) for number, steps in numbered if number != _ABSENT)


_STEP = struct.Struct("=HBBI")


def _step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    return _STEP.pack(code, then, otherwise, value)


def _steps(program: bytes) -> int:
    return len(program) // _STEP.size


def _when(test: int, value: int, steps: bytes) -> bytes:
    """Do the steps if the test holds; else skip them."""
    return _step(test, value, otherwise=_steps(steps)) + steps


def _argument(index: int) -> bytes:
    return _step(_LOAD, _ARGUMENTS + 8 * index)


def _refuse(error: int) -> bytes:
    return _step(_RETURN, _ERROR | error)
