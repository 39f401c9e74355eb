"""The first word on a terminal, before anything heavy is loaded; gone again with the first line."""

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def greeting(what: str, options: Mapping[str, Any]) -> Generator[None]:
    """Say what is read for as long as it is, to a person at a terminal and to nobody else."""
    asked = options.get("display")
    silent = options.get("quiet") or options.get("as_json") or asked in {"plain", "json", "none"}
    moves = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if silent or not moves:
        yield
        return
    shown = "".join(char if char.isprintable() else "?" for char in what)[:60]
    sys.stderr.write(f"reading {shown} …")
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
