"""Whether somebody works on a branch: it is checked out, being rebased or bisected, anywhere.

Told from the files in which git keeps it, for a process to ask would cost a third of a merge.
"""

import os
from collections.abc import Iterator
from pathlib import Path

_HEADS = "refs/heads/"
_LINKS = 5
"""How many names in a row a ref may be another name for; git's own bound."""


def in_use(git_dir: Path, root: Path, branch: str) -> str:
    """What somebody does with a branch and where, in words; empty when nobody does anything."""
    for own, place in worktrees(git_dir, root):
        if branch in _stands_at(git_dir, own):
            return f"is checked out in {place}"
        if word := _in_the_middle(own, branch):
            return f"is being {word} in {place}"
    return ""


def in_the_middle(git_dir: Path, root: Path, branch: str) -> str:
    """What git is about to finish with a branch and where, in words; empty when nothing."""
    for own, place in worktrees(git_dir, root):
        if word := _in_the_middle(own, branch):
            return f"is being {word} in {place}"
    return ""


def _in_the_middle(own: Path, branch: str) -> str:
    if branch in _rebased(own):
        return "rebased"
    bisected = {branch, branch.removeprefix(_HEADS)}
    return "bisected" if _text(own / "BISECT_START").strip() in bisected else ""


def worktrees(git_dir: Path, root: Path) -> Iterator[tuple[Path, Path]]:
    """The folder in which git keeps each worktree's own state, and the worktree."""
    yield git_dir, root
    for own in sorted((git_dir / "worktrees").glob("*")):
        dot_git = _text(own / "gitdir").strip()
        yield own, (own / dot_git).parent if dot_git else own


def _stands_at(git_dir: Path, own: Path) -> Iterator[str]:
    """The branch that HEAD names; where that is a name for another, that one too."""
    at = own / "HEAD"
    for _ in range(_LINKS):
        name = _named(at)
        if not name:
            return
        yield name
        at = git_dir / name


def _named(ref: Path) -> str:
    """The ref that a ref is another name for."""
    if ref.is_symlink():  # how old repositories say it
        return str(ref.readlink())
    said, _, name = _text(ref).partition(":")
    return name.strip() if said == "ref" else ""


def _rebased(own: Path) -> set[str]:
    """The branches that a rebase in this worktree will move when it is done."""
    held = ("rebase-merge/head-name", "rebase-merge/update-refs", "rebase-apply/head-name")
    return {line.strip() for name in held for line in _text(own / name).splitlines()}


def _text(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes())
    except OSError:
        return ""
