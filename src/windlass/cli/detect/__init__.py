"""What proves a project, read off its files and proposed with the reason, for a person to confirm.

Law: files in, a proposal out; nothing is run and nothing is written. Setup is proposed only where
the project's own files say what to install and the result stays inside the checkout, because
checks run without network in a fresh home. Where that cannot be known, a note says so instead.
"""

from windlass.cli.detect.compiled import cargo, cmake, go
from windlass.cli.detect.javascript import javascript
from windlass.cli.detect.model import Command, Detector, Files, Proposal, joined
from windlass.cli.detect.others import dotnet, gradle, maven, mix, php, ruby
from windlass.cli.detect.python import python
from windlass.cli.detect.recipes import recipes

__all__ = ["Command", "Files", "Proposal", "detect"]

_TOOLCHAINS: tuple[Detector, ...] = (
    python,
    javascript,
    cargo,
    go,
    gradle,
    maven,
    dotnet,
    mix,
    ruby,
    php,
    cmake,
)
"""Each toolchain that may prove a project; a project may use several."""


def detect(files: Files) -> Proposal:
    """What the files propose; a recipe such as `make test` only where no toolchain is known."""
    parts = [part for look in _TOOLCHAINS if (part := look(files)) is not None]
    recipe = recipes(files)
    if recipe is not None and any(part.checks for part in parts):
        # The recipe most likely runs the same tests, and would be run twice.
        line, why = recipe.checks[0].line, recipe.checks[0].because
        note = f"{why}: name `{line}` in `checks` instead, if that is how the project is proven"
        return joined([*parts, Proposal(notes=(note,))])
    return joined(parts if recipe is None else [*parts, recipe])
