"""What each setting means, from the docstring under its field."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from windlass.core import settings as settings_module


def _meanings() -> Iterator[tuple[str, str]]:
    """The docstring under each field, by the field's dotted key."""
    path = Path(settings_module.__file__)
    classes = {
        node.name: node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    }
    yield from _fields(classes, "Settings", "")


def _fields(
    classes: Mapping[str, ast.ClassDef], name: str, prefix: str
) -> Iterator[tuple[str, str]]:
    body = classes[name].body
    for field, below in zip(body, [*body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        key = prefix + field.target.id
        if isinstance(field.annotation, ast.Name) and field.annotation.id in classes:
            yield from _fields(classes, field.annotation.id, f"{key}.")
        elif isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            yield key, " ".join(str(below.value.value).split())
        else:
            raise LookupError(f"{key} in {name} has no docstring under it")


MEANINGS = dict(_meanings())
"""By the setting's dotted key."""
