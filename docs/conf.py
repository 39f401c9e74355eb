"""How the site is made of these pages: `make site`, which builds it into build/site.

Law: every page is plain Markdown that reads well where it lies, with links that work there; what
only the site needs is done here. A page that is there is in the site, without a list to keep.
"""

import os.path
import re
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent

project = "Windlass"
copyright = "the Windlass maintainers"  # noqa: A001  Sphinx's name for it
extensions = ["myst_parser"]
exclude_patterns = ["_static"]
myst_heading_anchors = 4
highlight_language = "text"
html_theme = "furo"
html_title = "Windlass"
html_static_path = ["_static"]
html_css_files = ["windlass.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b5c73",
        "color-brand-content": "#0b5c73",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6cc3da",
        "color-brand-content": "#6cc3da",
    },
}

GROUPS = (
    (
        "Start here",
        ("install", "tutorial", "how-to/write-a-plan", "comparison", "troubleshooting"),
    ),
    ("Coming from", ("how-to/coming-from-*",)),
    (
        "Reference",
        (
            *("cli", "choosing-a-command", "shell-completion", "configuration", "exit-codes"),
            *("events", "state-diagram", "schemas"),
            *("prompts", "sandbox", "glossary", "changelog"),
        ),
    ),
    (
        "Why it holds",
        (
            *("gate", "after-a-crash", "promises-tested", "security"),
            *("architecture", "design/README", "contributing"),
        ),
    ),
)
"""What stands where in the margin; every other page is a guide."""
GUIDES = "How to"

STANDS_IN = {
    "architecture": "ARCHITECTURE.md",
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "security": "SECURITY.md",
}
"""Pages of one line, in whose place the site shows a file that lies at the root."""

_LINK = re.compile(r"(?<!!)\[(?P<label>[^\]\[]*)\]\((?P<target>[^)\s:#]+)(?P<anchor>#[^)\s]*)?\)")
_MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FOLDED = r"""<details><summary>The picture, as Mermaid reads it</summary>

```text
\1```

</details>
"""


def setup(app: Any) -> None:
    """Have every page pass through `_site_form`."""
    app.connect("source-read", _site_form)


def _site_form(app: Any, name: str, source: list[str]) -> None:
    """The page's text as the site needs it."""
    text, folder = source[0], (HERE / name).parent
    if name in STANDS_IN:
        path = ROOT / STANDS_IN[name]
        app.env.note_dependency(str(path))
        text, folder = path.read_text(encoding="utf-8"), ROOT
    text = _LINK.sub(lambda found: _link(found, folder, HERE / name), text)
    # Nothing that could draw it works without the network; the tables below it say the same.
    text = _MERMAID.sub(_FOLDED, text)
    if name == "index":
        text += "".join(_margin(sorted(app.env.found_docs)))
    elif name == "design/README":
        text += _tree(("[0-9]*",), ":glob:")
    source[0] = text


def _link(found: re.Match[str], folder: Path, page: Path) -> str:
    """A link to what is in the site; of what is not, only its words."""
    label, anchor = found["label"], found["anchor"] or ""
    path = _meant((folder / found["target"]).resolve())
    if path.is_dir() or (path.exists() and not path.is_relative_to(HERE)):
        return label
    # A page named by its file shows its title, which MyST puts where there are no words.
    words = "" if label.endswith(".md") else label
    return f"[{words}]({os.path.relpath(path, page.parent)}{anchor})"


def _meant(path: Path) -> Path:
    """The page that has what lies there."""
    standing = {ROOT / file: HERE / f"{name}.md" for name, file in STANDS_IN.items()}
    standing[ROOT / "README.md"] = HERE / "index.md"
    if path in standing:
        return standing[path]
    if path.is_dir() and path.is_relative_to(HERE):
        return next(
            (each for each in (path / "README.md", path.with_suffix(".md")) if each.exists()), path
        )
    return path


def _margin(names: list[str]) -> list[str]:
    """Every page in its group."""
    grouped = [
        (caption, [name for wanted in patterns for name in names if fnmatch(name, wanted)])
        for caption, patterns in GROUPS
    ]
    placed = {name for _, group in grouped for name in group}
    notes = {name for name in names if fnmatch(name, "design/[0-9]*")}
    guides = [name for name in names if name not in placed | notes | {"index"}]
    grouped.insert(1, (GUIDES, guides))
    return [_tree(group, ":hidden:", f":caption: {caption}") for caption, group in grouped if group]


def _tree(names: Iterable[str], *options: str) -> str:
    return "\n".join(["\n```{toctree}", *options, "", *names, "```\n"])
