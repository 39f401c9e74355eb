"""What this machine offers; nothing here changes it."""

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
"""A box like a check's."""


def agent_program(settings: AgentSettings = DEFAULT) -> Program | None:
    """The agent's program, if it is installed."""
    return vendor_of(settings).find_program()


def has_program(name: str) -> bool:
    return shutil.which(name) is not None


def can_import(interpreter: str, module: str) -> bool:
    """Whether a Python interpreter has that module."""
    # Not in the project: the interpreter would find its files first.
    done = subprocess.run(
        [interpreter, "-c", f"import {module}"], cwd="/", capture_output=True, check=False
    )
    return done.returncode == 0


def git_version(environment: Mapping[str, str]) -> str:
    """The version of git; raises if it is missing or too old."""
    try:
        version = ask("version", cwd=Path("/"), environment=environment).text
    except FileNotFoundError:
        version = "no git"
    numbers = re.search(r"(\d+)\.(\d+)[\w.]*", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < MINIMUM:
        wanted = ".".join(map(str, MINIMUM))
        raise RepositoryError(f"{version} is on PATH", hint=f"install git {wanted} or newer")
    return numbers[0]


def native_walls() -> Level:
    """The sandbox level with walls for this operating system."""
    return "seatbelt" if sys.platform == "darwin" else "bwrap"


def why_no_walls(environment: Mapping[str, str]) -> str | None:
    """Why those walls do not work on this machine, or None; works without a project."""
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
    """Whether the walls filter system calls; always true on macOS, which has no such filter."""
    return native_walls() == "seatbelt" or _bubblewrap(environment).is_filtered


def why_no_landlock(environment: Mapping[str, str]) -> str | None:
    """Why Landlock does not confine commands as well, or None; None on macOS, which lacks it."""
    if native_walls() == "seatbelt" or _bubblewrap(environment).writable(_PROBE):
        return None
    return landlock.why_not() or "a command behind it does not start"


def how_limits_work() -> str:
    """How this machine limits the memory and processes of a call."""
    place = cgroups.where()
    if isinstance(place, str):
        return f"memory and processes of a call are checked twice a second: {place}"
    return f"control groups (version {place.version}) limit memory and processes of a call"


def why_no_way_out(environment: Mapping[str, str]) -> str | None:
    """Why an agent's box could not reach its model here, or None; tried with a real box."""
    if native_walls() == "seatbelt":
        return None
    sandbox = _bubblewrap(environment)
    with tempfile.TemporaryDirectory(prefix="windlass-probe-") as folder:
        box = Box(checkout=Path(folder), network=True)
        done = anyio.run(partial(processes.run, sandbox, box, ("true",), timeout=30, tail=200))
    return None if done.exit_code == 0 else done.output.strip() or "the box did not start"


def has_nested_boxes(environment: Mapping[str, str]) -> bool:
    """Whether a Coach's commands can run in a box of their own, inside the Coach's box."""
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
