"""How much differs between commits, for reports: many pairs by two calls of git, whatever they are.

What git has no more is left out; a report is told without it.
"""

from collections.abc import Iterable

from windlass.adapters.git.inspect import UserGit
from windlass.ports import Change, Changes

_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-renames", "--no-color")


def changes(git: UserGit, pairs: Iterable[tuple[str, str]]) -> Changes:
    """For each pair, old and new, the files that differ and by how many lines."""
    wanted = list(dict.fromkeys(pairs))
    there = _commits(git, {commit for pair in wanted for commit in pair})
    asked = [(old, new) for old, new in wanted if old in there and new in there]
    if not asked:
        return {}
    told = git.ask(
        "diff-tree", "--stdin", "--always", "-r", "--numstat", "-z", *_PLAIN,
        stdin="".join(f"{new} {old}\n" for old, new in asked),
    )  # fmt: skip
    found: list[list[Change]] = []
    for field in told.fields:
        added, tab, rest = field.partition("\t")
        if not tab:  # the name of the commit that what follows is about
            found.append([])
            continue
        deleted, _, path = rest.partition("\t")
        found[-1].append(Change(path=path, added=_lines(added), deleted=_lines(deleted)))
    return {pair: tuple(each) for pair, each in zip(asked, found, strict=True)}


def _commits(git: UserGit, names: set[str]) -> set[str]:
    asked = "".join(f"{name}\n" for name in sorted(names))
    form = "--batch-check=%(objectname) %(objecttype)"
    lines = git.ask("cat-file", form, stdin=asked).text.split("\n")
    return {name for name, _, kind in (line.partition(" ") for line in lines) if kind == "commit"}


def _lines(told: str) -> int | None:
    return int(told) if told.isdigit() else None
