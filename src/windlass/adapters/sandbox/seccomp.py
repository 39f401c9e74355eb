"""Calls into the kernel that no box may make: a filter that bubblewrap lays around every process.

Law: what no mount can hide is refused by its number. A kernel keeps keys for each user (of
encrypted folders, of network drives, of logins), and neither mounts nor users nor processes of its
own keep a box from them. Refused with them is what no build needs and kernels were broken by.
Nothing is refused that a sandbox within the box needs: not clone, unshare, mount or ptrace.

The filter is classic BPF, written out here, for a handful of numbers needs no library. A machine
may speak in the words of an older one, and each has numbers of its own; a box on a machine that is
not known here has no filter, which `windlass doctor` says.
"""

import errno
import struct
from collections.abc import Mapping

from msgspec import Struct


class _Numbers(Struct, frozen=True):
    """What one machine language calls the refused calls."""

    audit: int
    """The kernel's own name for it."""
    add_key: int
    request_key: int
    keyctl: int
    perf_event_open: int
    bpf: int
    userfaultfd: int

    @property
    def refused(self) -> tuple[int, ...]:
        keys = (self.add_key, self.request_key, self.keyctl)
        return (*keys, self.perf_event_open, self.bpf, self.userfaultfd)


MACHINES: Mapping[str, tuple[_Numbers, ...]] = {
    "x86_64": (
        _Numbers(0xC000003E, 248, 249, 250, 298, 321, 323),
        _Numbers(0x40000003, 286, 287, 288, 336, 357, 374),
    ),
    "aarch64": (
        _Numbers(0xC00000B7, 217, 218, 219, 241, 280, 282),
        _Numbers(0x40000028, 309, 310, 311, 364, 386, 388),
    ),
}
"""Each with its older brother of 32 bits, which the same kernel serves."""

_LOAD, _AND, _IF_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_NUMBER, _MACHINE = 0, 4
"""Where in what a filter is shown they stand."""
_SAME_NUMBER = 0xBFFFFFFF
"""Without the bit by which x86_64 tells its third language, whose numbers are the same here."""
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


def filter_for(machine: str) -> bytes:
    """Give the filter for a machine by its name; nothing where it is not known."""
    known = MACHINES.get(machine, ())
    if not known:
        return b""
    # A language that no such machine speaks is refused whole.
    blocks = b"".join(_block(numbers) for numbers in known)
    return _step(_LOAD, _MACHINE) + blocks + _step(_RETURN, _REFUSE)


def _block(numbers: _Numbers) -> bytes:
    """Answer a call in this language; one in another is left to what follows."""
    refused = numbers.refused
    tests = (_step(_IF_EQUAL, number, then=len(refused) - at) for at, number in enumerate(refused))
    answer = b"".join(
        (
            _step(_LOAD, _NUMBER),
            _step(_AND, _SAME_NUMBER),
            *tests,
            _step(_RETURN, _ALLOW),
            _step(_RETURN, _REFUSE),
        )
    )
    return _step(_IF_EQUAL, numbers.audit, otherwise=len(answer) // _STEP.size) + answer


_STEP = struct.Struct("=HBBI")


def _step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    return _STEP.pack(code, then, otherwise, value)
