"""How this copy of Windlass was installed, and the command that adds an extra to it.

Windlass claims no name on a package index. So the command names the place that this copy came
from, as its installer recorded it, or else the packages that the extra consists of.
"""

import json
import re
import shlex
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

_NAME = "windlass"


def how_to_add(extra: str) -> str:
    """The command that installs what the extra needs, where this copy of Windlass is."""
    try:
        return add_command(distribution(_NAME), extra, Path(sys.prefix), sys.executable)
    except PackageNotFoundError:  # run from its source, and never installed
        return f"install Windlass from its checkout: pip install --editable '.[{extra}]'"


def add_command(found: Distribution, extra: str, prefix: Path, python: str) -> str:
    """The command for a distribution in an environment at `prefix` with this Python."""
    packages = shlex.join(_packages(found, extra))
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx inject {_NAME} {packages}"
    source = _source(found, extra)
    if source is not None and (prefix / "uv-receipt.toml").exists():
        return f"uv tool install --force {source}"
    quoted = shlex.quote(python)
    by_uv = (found.read_text("INSTALLER") or "").strip() == "uv"  # such an environment has no pip
    pip = f"uv pip install --python {quoted}" if by_uv else f"{quoted} -m pip install"
    return f"{pip} {source or packages}"


def _packages(found: Distribution, extra: str) -> Iterator[str]:
    """The requirements of the extra: `mcp>=2.3`."""
    for line in found.requires or ():
        requirement, _, marker = line.partition(";")
        if re.search(rf"""\bextra\s*==\s*["']{re.escape(extra)}["']""", marker):
            yield requirement.strip()


def _source(found: Distribution, extra: str) -> str | None:
    """What an installer takes for this copy with the extra; None if that is unknown, or is gone."""
    recorded = json.loads(found.read_text("direct_url.json") or "{}")
    url = str(recorded.get("url", ""))
    if version_control := recorded.get("vcs_info"):
        commit = version_control["commit_id"]
        return shlex.quote(f"{_NAME}[{extra}] @ {version_control['vcs']}+{url}@{commit}")
    if not url.startswith("file:"):
        return shlex.quote(f"{_NAME}[{extra}] @ {url}") if url else None
    path = Path(unquote(urlsplit(url).path))
    if not path.exists():
        return None
    editable = "--editable " if recorded.get("dir_info", {}).get("editable") else ""
    return editable + shlex.quote(f"{path}[{extra}]")
