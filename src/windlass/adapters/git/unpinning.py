"""Pins are taken away by locks that hold a text of Windlass's own, so that none is left for ever.

Law: git deletes a ref under a lock on the list of all packed refs, and a git that is killed leaves
that lock, empty, in the user's way. Here every lock is made at once with what it holds, and found
again by it. Only pins are removed, and only where they stand at the commit that was seen.
"""

import os
import secrets
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from windlass.adapters.exclusive import patiently
from windlass.adapters.files import (
    fsync_dir,
    make_folder,
    read_plainly,
    remove_durably,
    write_durably,
)
from windlass.adapters.git.landing_intent import Locked, linked

_PATIENCE = 5.0
_HOME = "windlass-unpin"


def remove_pins(git_dir: Path, pins: Mapping[str, str]) -> None:
    """Remove these refs of Windlass's, each if it stands at that commit."""
    packed = git_dir / "packed-refs"
    with _locked(git_dir, packed):
        gone = {
            line
            for line in _lines(packed)
            if (told := line.rstrip().split(b" ")) and _is_doomed(told, pins)
        }
        for ref, commit in pins.items():
            path = git_dir / ref
            if read_plainly(path) == f"{commit}\n":
                with _locked(git_dir, path):
                    if read_plainly(path) == f"{commit}\n":
                        path.unlink()
                        fsync_dir(path.parent)
        if gone:
            # A packed ref that another git moved since has a file of its own, which wins.
            kept = b"".join(_kept(_lines(packed), gone))
            write_durably(packed, kept, by_way_of=git_dir / _HOME)
    release(git_dir)


def release(git_dir: Path) -> None:
    """Let go of what a process left that was killed while it removed pins."""
    home = git_dir / _HOME
    if not home.is_dir():
        return
    for note in home.glob("*.lock-of"):
        token, lock = home / note.stem, Path(os.fsdecode(note.read_bytes()))
        held = read_plainly(token)
        if held and read_plainly(lock) == held:
            remove_durably(lock)
        remove_durably(token)
        remove_durably(note)
    for left in home.iterdir():
        left.unlink()
    home.rmdir()


@contextmanager
def _locked(git_dir: Path, path: Path) -> Generator[None]:
    """Keep every other git from a file; what is to be found again is noted before."""
    home, name = git_dir / _HOME, secrets.token_hex(8)
    token, note = home / name, home / f"{name}.lock-of"
    lock = path.with_name(f"{path.name}.lock")
    make_folder(home)
    write_durably(token, f"windlass clean {secrets.token_hex(16)}\n")
    write_durably(note, os.fsencode(lock))
    if not patiently(lambda: linked(token, lock), _PATIENCE):
        raise Locked(lock)
    fsync_dir(lock.parent)
    try:
        yield
    finally:
        remove_durably(lock)
        remove_durably(note)
        remove_durably(token)


def _is_doomed(told: list[bytes], pins: Mapping[str, str]) -> bool:
    if len(told) != 2:  # noqa: PLR2004  a commit and its ref
        return False
    commit, ref = told[0].decode(errors="replace"), os.fsdecode(told[1])
    return pins.get(ref) == commit


def _kept(lines: list[bytes], gone: set[bytes]) -> Iterator[bytes]:
    """The lines without those, and without what each of them stands for behind a tag."""
    skipping = False
    for line in lines:
        if line.startswith(b"^") and skipping:
            continue
        skipping = line in gone
        if not skipping:
            yield line


def _lines(packed: Path) -> list[bytes]:
    try:
        return packed.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
