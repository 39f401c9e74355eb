"""A small process that outlives Windlass for a moment, and ends what Windlass had started.

Bubblewrap's --die-with-parent takes effect some milliseconds after its start. A Windlass that is
killed in that time leaves a box behind: one that waits for ever, or one that runs its command. The
guardian sees the kill, because its input ends, and ends every process with the run's mark.

Law: the mark is of one Windlass process, so a guardian never ends what the next process of the run
starts. It carries the mark itself, so that process ends it with the other leftovers.
"""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from windlass.adapters.processes import leftovers

_ROUNDS, _PAUSE = 20, 0.1
"""How often it looks: a process that is just being started has no mark yet."""

_SCRIPT = f"""
import os, sys, time
if not os.read(0, 1):
    sys.path.insert(0, sys.argv[1])
    import leftovers
    for _ in range({_ROUNDS}):
        leftovers.end_leftovers(sys.argv[2])
        time.sleep({_PAUSE})
"""


@contextmanager
def guarded(mark: str) -> Generator[None]:
    """End all processes with this process's own mark, should it be killed inside the block."""
    if sys.platform != "linux":  # processes elsewhere cannot be found by their mark
        yield
        return
    folder = Path(leftovers.__file__).parent
    with subprocess.Popen(
        # Without site and package: it starts in no time, and imports only when it must.
        [sys.executable, "-I", "-S", "-c", _SCRIPT, str(folder), mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={leftovers.MARKER: f"{mark}:guardian"},
        start_new_session=True,
    ) as guardian:
        try:
            yield
        finally:
            with suppress(OSError):  # it may have been ended; it is not needed any more
                guardian.communicate(b".")
