"""Detect a project's checks and setup from its files, each with a reason, for a person to confirm.

Law: files in, a proposal out; nothing is run and nothing is written. Setup is proposed only if the
project's own files name what to install and the result stays inside the checkout, because checks
run without network in a fresh home. Otherwise a note says so.
"""

from windlass.app.detect.javascript import javascript
from windlass.app.detect.model import Command, Files, Part, Proposal, joined
from windlass.app.detect.python import python
from windlass.app.detect.toolchains import recipes, toolchains

__all__ = ["Command", "Files", "Proposal", "detect"]


def detect(files: Files) -> Proposal:
    """What all toolchains propose; a recipe such as `make test` only if there is none."""
    found: list[Part | None] = [python(files), javascript(files), *toolchains(files)]
    parts = [part for part in found if part is not None]
    recipe = recipes(files)
    if recipe is not None and any(part.checks for part in parts):
        # The recipe most likely runs the same tests a second time.
        line, why = recipe.checks[0].line, recipe.checks[0].because
        note = f"{why}: use `{line}` in `checks` instead, if that is how the project is tested"
        return joined([*parts, Proposal(notes=(note,))])
    return joined(parts if recipe is None else [*parts, recipe])
