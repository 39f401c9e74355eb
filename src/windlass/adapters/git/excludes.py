"""What never enters a snapshot unless the base tracks it, or tasks would conflict over a .pyc."""

BY_PRODUCTS = (
    "__pycache__/",
    "*.py[co]",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".hypothesis/",
    ".tox/",
    ".nox/",
    ".venv/",
    "venv/",
    "*.egg-info/",
    ".coverage",
    ".coverage.*",
    "htmlcov/",
    "node_modules/",
    ".npm/",
    ".yarn/cache/",
    ".gradle/",
    ".DS_Store",
    ".claude/settings.local.json",
    ".windlass/",
)


def excludes(*, keep: tuple[str, ...], setup: tuple[str, ...], user: tuple[str, ...]) -> str:
    """The text of an exclude file: known by-products, kept folders, setup's output, the user's."""
    kept = (f"/{folder.strip('/')}/" for folder in keep)
    made = (f"/{_literal(path)}" for path in setup)
    return "\n".join([*BY_PRODUCTS, *kept, *made, *user, ""])


def _literal(path: str) -> str:
    """A path as a pattern that matches nothing else."""
    return "".join(f"\\{c}" if c in "\\*?[]!# " else c for c in path)
