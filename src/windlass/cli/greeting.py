"""A line on the terminal while the plan is read, before anything heavy is imported."""

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def greeting(what: str, options: Mapping[str, Any]) -> Generator[None]:
    """Show what is being read, on a terminal only; the line is erased afterwards."""
    asked = options.get("display")
    silent = options.get("quiet") or options.get("as_json") or asked in {"plain", "json", "none"}
    moves = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if silent or not moves:
        yield
        return
    sys.stderr.write(f"reading {what} …")
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
