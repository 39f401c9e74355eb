"""Recipes that a project keeps for people: make and just."""

import re

from windlass.cli.detect.model import Command, Files, Part

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_JUSTFILES = ("justfile", "Justfile", ".justfile")
_RECIPES = ("test", "check")
"""In the order of preference."""


def recipes(files: Files) -> Part | None:
    """The one recipe that proves the project, of make or else of just."""
    for program, names in (("make", _MAKEFILES), ("just", _JUSTFILES)):
        for name in names:
            found = _recipe(files.get(name, ""))
            if found is not None:
                line, because = f"{program} {found}", f"{name} has a recipe {found!r}"
                return Part(checks=(Command(line, because, needs=program),))
    return None


def _recipe(text: str) -> str | None:
    for name in _RECIPES:
        # A recipe may share its line with others, or take parameters; `test := 1` is a variable.
        if re.search(rf"^@?(?:[\w.-]+ +)*{name}(?![\w.-])[^\n:=#]*:(?![:=])", text, re.MULTILINE):
            return name
    return None
