"""Whether a sandbox works on this machine: one harmless command in it, and what came of that."""

import subprocess
from collections.abc import Mapping, Sequence

PATIENCE = 10
"""Seconds."""


def why_not(
    argv: Sequence[str], environment: Mapping[str, str], inherited: tuple[int, ...] = ()
) -> str | None:
    """Why the command did not end well, or None where it did."""
    try:
        done = subprocess.run(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            pass_fds=inherited,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return said[-1] if said else f"it ended with {done.returncode}"
