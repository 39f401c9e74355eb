"""What this machine has to offer: looked at, never changed."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import anyio

from windlass.adapters.agents.vendor import Program
from windlass.adapters.git.git import MINIMUM, ask
from windlass.adapters.processes import cgroups
from windlass.adapters.sandbox import Box, landlock
from windlass.adapters.sandbox import commands as processes
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.seatbelt import Seatbelt
from windlass.app.wiring.agents import DEFAULT, vendor_of
from windlass.core.settings import AgentSettings, Level
from windlass.errors import RepositoryError

_PROBE = Box(checkout=Path("/nonexistent"), network=False)
"""A box like that of a check."""


def agent_program(settings: AgentSettings = DEFAULT) -> Program | None:
    """The program that would play."""
    return vendor_of(settings).find_program()


def has_program(name: str) -> bool:
    """Whether a program of that name is on PATH."""
    return shutil.which(name) is not None


def can_import(interpreter: str, module: str) -> bool:
    """Whether a Python has that module."""
    # Not from the project, whose own files the interpreter would find first.
    done = subprocess.run(
        [interpreter, "-c", f"import {module}"], cwd="/", capture_output=True, check=False
    )
    return done.returncode == 0


def git_version(environment: Mapping[str, str]) -> str:
    """The version of git; raises where it is missing or too old."""
    try:
        said = ask("version", cwd=Path("/"), environment=environment).text
    except FileNotFoundError:
        said = "no git"
    numbers = re.search(r"(\d+)\.(\d+)[\w.]*", said)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < MINIMUM:
        wanted = ".".join(map(str, MINIMUM))
        raise RepositoryError(f"{said} is on PATH", hint=f"install git {wanted} or newer")
    return numbers[0]


def native_walls() -> Level:
    """The level with walls that this system has, if it is there."""
    return "seatbelt" if sys.platform == "darwin" else "bwrap"


def why_no_walls(environment: Mapping[str, str]) -> str | None:
    """Why those walls do not work on this machine, or None; for where there is no project."""
    nowhere = Path("/nonexistent")
    home, path = Path(environment.get("HOME", nowhere)), environment.get("PATH", "")
    if native_walls() == "seatbelt":
        return Seatbelt(
            home=home,
            repository=nowhere,
            path=path,
            environment=environment,
            marker="probe",
            places=nowhere,
        ).probe()
    return _bubblewrap(environment).probe()


def is_filtered(environment: Mapping[str, str]) -> bool:
    """Whether calls into the kernel are filtered where walls work here; macOS has no such thing."""
    return native_walls() == "seatbelt" or _bubblewrap(environment).is_filtered


def why_no_landlock(environment: Mapping[str, str]) -> str | None:
    """Why commands are not behind Landlock as well, or None; macOS has no such thing."""
    if native_walls() == "seatbelt" or _bubblewrap(environment).writable(_PROBE):
        return None
    return landlock.why_not() or "a command behind it does not start"


def limits_kept_by() -> str:
    """How the memory and the processes of a call are bounded here."""
    place = cgroups.where()
    if isinstance(place, str):
        return f"memory and processes of a call are looked at twice a second: {place}"
    return f"memory and processes of a call are kept by control groups (version {place.version})"


def why_no_way_out(environment: Mapping[str, str]) -> str | None:
    """Why an agent's box would have no way to its model here, or None; tried with a real one."""
    if native_walls() == "seatbelt":
        return None
    sandbox = _bubblewrap(environment)
    with tempfile.TemporaryDirectory(prefix="windlass-probe-") as folder:
        box = Box(checkout=Path(folder), network=True)
        done = anyio.run(partial(processes.run, sandbox, box, ("true",), timeout=30, tail=200))
    return None if done.exit_code == 0 else done.output.strip() or "the box did not start"


def has_boxes_in_boxes(environment: Mapping[str, str]) -> bool:
    """Whether what a Coach runs can be kept apart from the Coach, within its own walls."""
    return native_walls() == "bwrap" and bool(_bubblewrap(environment).launcher)


def _bubblewrap(environment: Mapping[str, str]) -> Bubblewrap:
    nowhere = Path("/nonexistent")
    return Bubblewrap(
        home=Path(environment.get("HOME", nowhere)),
        repository=nowhere,
        path=environment.get("PATH", ""),
        environment=environment,
        marker="probe",
    )
