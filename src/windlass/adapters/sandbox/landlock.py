"""Landlock: a second wall around a command in a box, enforced by the kernel in addition to mounts.

Law: a command that starts no box of its own can write only where allowed, can mount nothing, can
trace no process with fewer restrictions than its own, and (with kernel 6.12 or newer) reaches no
abstract socket and signals no process outside. It holds where a mount was forgotten, also in
`/proc`, and on a network shared with the host.

A process must restrict itself, after bubblewrap has made its mounts and before the command begins.
For that, a few lines of Perl make three calls and exec the command: about a millisecond, where
Python would take seven. Without Perl or Landlock there are only the mounts, and `windlass doctor`
says so. Never put a program that starts a box of its own behind it: Landlock refuses mounts.
"""

import ctypes
import platform
import struct
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

PERL: Final = Path("/usr/bin/perl")

QUIET: Final = {"PERL_BADLANG": "0"}
"""Required in the launcher's environment: otherwise Perl warns about a missing locale. The launcher
removes it."""

_CREATE_RULESET = 444
_LEAST = 2
"""The oldest usable version: with the first, no file could be moved between folders."""

_WRITE_FILE, _REMOVE_DIR, _REMOVE_FILE = 1 << 1, 1 << 4, 1 << 5
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK = 1 << 6, 1 << 7, 1 << 8, 1 << 9
_MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = 1 << 10, 1 << 11, 1 << 12
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_DEVICES = _MAKE_CHAR | _MAKE_BLOCK

_SINCE = {_REFER: 2, _TRUNCATE: 3, _IOCTL_DEV: 5}
_NETWORK_SINCE, _SCOPES_SINCE = 4, 6
_SCOPES = 0b11
"""Abstract sockets, and signals."""

_SECCOMP = {"x86_64": 317, "aarch64": 277}
"""The system call that installs a filter, for a command that has none from bubblewrap."""

LAUNCHER: Final = """\
delete $ENV{PERL_BADLANG};
my ($ruleset, $tell, $number, $filter) = splice @ARGV, 0, 4;
sub give_up { my $why = "windlass: $_[0]: $!\\n"; print STDERR $why;
  if ($tell >= 0 and open my $to, ">&=", $tell) { syswrite $to, '"not-started"' } exit 126 }
my $attributes = pack "H*", $ruleset;
my $set = syscall 444, $attributes, length $attributes, 0;
give_up "Landlock" if $set < 0;
while (@ARGV and ($_ = shift) ne "--") {
  my ($rights, $path) = split /:/, $_, 2;
  sysopen my $at, $path, 012000000 or next;
  $rights = $rights & 0xC002 unless -d $at;
  my $rule = pack "Ql", $rights, fileno $at;
  syscall(445, $set, 1, $rule, 0) == 0 or give_up "Landlock, $path";
}
syscall(446, $set, 0) == 0 or give_up "Landlock";
if (length $filter) {
  my $steps = pack "H*", $filter;
  my $program = pack "Sx6P", length($steps) / 8, $steps;
  syscall($number + 0, 1, 0, $program) == 0 or give_up "seccomp";
}
if ($tell >= 0) { open my $to, ">&=", $tell; fcntl $to, 2, 1; exec { $ARGV[0] } @ARGV;
  give_up $ARGV[0] }
exec { $ARGV[0] } @ARGV;
give_up $ARGV[0];
"""


def version() -> int:
    """The kernel's version of Landlock; 0 if it has none."""
    return _version() if sys.platform == "linux" else 0


def why_not() -> str | None:
    """Why commands are not put behind Landlock here, or None if they are."""
    if version() < _LEAST:
        return "this kernel has no Landlock, or an old one"
    if not PERL.is_file():
        return f"{PERL}, which sets Landlock up, is not installed"
    return None


def confined(
    command: Sequence[str],
    writable: Sequence[str | Path],
    *,
    tell: int = -1,
    seccomp: bytes = b"",
) -> list[str]:
    """The command line that starts the command behind Landlock, or the command as it is.

    Below `writable` it can do anything; elsewhere it can read, run, and use devices. A path may
    also be a file. Paths are as the command sees them; missing ones are skipped. An empty command
    gives the words to put before one. If the command cannot be started, "not-started" is written to
    the descriptor `tell`, and the exit code is 126. `seccomp` is a filter for a command that has
    none yet.
    """
    if not writable or why_not() is not None:
        return list(command)
    rights = _handled(version())
    rules = [f"{rights & ~_DEVICES}:{path}" for path in map(str, writable)]
    rules.append(f"{rights & (_WRITE_FILE | _TRUNCATE | _IOCTL_DEV)}:/dev")
    number = str(_SECCOMP.get(platform.machine(), -1))
    return [
        *(str(PERL), "-e", LAUNCHER, "--"),
        *(_ruleset(version()).hex(), str(tell), number, seccomp.hex()),
        *(*rules, "--"),
        *command,
    ]


def _handled(version: int) -> int:
    """All rights to change something that this kernel knows."""
    first = _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _DEVICES
    first |= _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM
    return first | sum(right for right, since in _SINCE.items() if version >= since)


def _ruleset(version: int) -> bytes:
    """The ruleset's attributes, as long as this kernel knows them."""
    if version >= _SCOPES_SINCE:
        return struct.pack("=QQQ", _handled(version), 0, _SCOPES)
    if version >= _NETWORK_SINCE:
        return struct.pack("=QQ", _handled(version), 0)
    return struct.pack("=Q", _handled(version))


@cache
def _version() -> int:
    library = ctypes.CDLL(None, use_errno=True)
    ask_for_version = 1
    found = library.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ask_for_version)
    return max(0, int(found))
