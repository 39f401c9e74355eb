"""What proves a project, read off its files and proposed with the reason, for a person to confirm.

Law: files in, a proposal out; nothing is run and nothing is written. Setup is proposed only where
the project's own files say what to install and the result stays inside the checkout, because
checks run without network in a fresh home. Where that cannot be known, a note says so instead.
"""

from windlass.app.detect.javascript import javascript
from windlass.app.detect.model import Command, Files, Part, Proposal, joined
from windlass.app.detect.python import python
from windlass.app.detect.toolchains import recipes, toolchains

__all__ = ["Command", "Files", "Proposal", "detect"]


def detect(files: Files) -> Proposal:
    """What the files propose; a recipe such as `make test` only where no toolchain is known."""
    found: list[Part | None] = [python(files), javascript(files), *toolchains(files)]
    parts = [part for part in found if part is not None]
    recipe = recipes(files)
    if recipe is not None and any(part.checks for part in parts):
        # The recipe most likely runs the same tests, and would be run twice.
        line, why = recipe.checks[0].line, recipe.checks[0].because
        note = f"{why}: name `{line}` in `checks` instead, if that is how the project is proven"
        return joined([*parts, Proposal(notes=(note,))])
    return joined(parts if recipe is None else [*parts, recipe])
