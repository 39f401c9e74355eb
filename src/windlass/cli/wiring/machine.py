"""What the machine and a repository have to offer: looked at, never changed or started."""

import re
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import anyio
from msgspec import Struct

from windlass.adapters import cgroups, processes
from windlass.adapters.agents.claude import find_program
from windlass.adapters.git import inspect
from windlass.adapters.git.git import MINIMUM, ask
from windlass.adapters.sandbox import Box, landlock
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.seatbelt import Seatbelt
from windlass.cli.wiring.project import Project
from windlass.errors import RepositoryError
from windlass.settings import Level

_PROBE = Box(checkout=Path("/nonexistent"), network=False)
"""A box like that of a check."""


class AgentProgram(Struct, frozen=True):
    """The agent's program."""

    path: Path
    version: str
    """Empty where only the program itself could tell."""


def agent_program() -> AgentProgram | None:
    """The program that would play; its version is read, for starting it takes a second."""
    found = find_program()
    if found is None:
        return None
    beside = found.with_name("claude.version")
    words = beside.read_text().split() if beside.is_file() else []
    return AgentProgram(found, words[0] if words else "")


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
            objects=(),
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
        objects=(),
        path=environment.get("PATH", ""),
        environment=environment,
        marker="probe",
    )


def identity(project: Project) -> str:
    """Whose name commits carry; raises where git does not know."""
    known = inspect.identity(project.user_git)
    return f"{known['GIT_AUTHOR_NAME']} <{known['GIT_AUTHOR_EMAIL']}>"


def base(project: Project, wanted: str | None) -> inspect.Base:
    """The commit a new run of any plan would work from; raises where none could."""
    own = (path for plan_id in project.plans() for path in project.own_files(plan_id))
    return inspect.base(project.user_git, wanted, (".windlass/", *own))


def git_locks(project: Project) -> list[Path]:
    """Lock files in the user's git directory: some git is at work there, or died at it."""
    return sorted(project.origin.git_dir.glob("*.lock"))
