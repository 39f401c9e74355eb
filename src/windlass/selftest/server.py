"""Starts rehearsed runs: all is imported once, and every run is a fork that does as it is told.

A line of JSON on stdin asks for a run, one on stdout answers. The library that counts calls is
loaded with this process and takes part only in its children.
"""

import ctypes
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from windlass.app.plans import read_plan
from windlass.app.wiring import Project
from windlass.app.wiring.configuration import configure
from windlass.app.wiring.rehearsal import TinyAgent
from windlass.cli.main import call, code_of
from windlass.cli.options import settings_of
from windlass.cli.running import request_of, run_plan
from windlass.selftest.place import Place
from windlass.testing.faults import shim
from windlass.testing.faults.story import PLAN

_ADOPT_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER: what a killed run leaves becomes ours, so that its end can be seen."""


class _Notes:
    """A stdout that says to the log how far the journal was told."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note

    def write(self, line: str) -> int:
        """Take one line of JSON."""
        self._note(f"told {json.loads(line)['seq']}")
        return len(line)

    def flush(self) -> None:
        """Nothing is held back."""


def serve(place: Place) -> None:
    """Answer until nobody asks any more."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _be_the_run(place, asked)
        _, status = os.waitpid(pid, 0)
        _reap(pid)
        sys.stdout.write(json.dumps({"code": os.waitstatus_to_exitcode(status)}) + "\n")
        sys.stdout.flush()


def _reap(group: int) -> None:
    """Wait until all of a dead run's group is gone, and let go what else has ended."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _be_the_run(place: Place, asked: dict[str, Any]) -> NoReturn:
    code = 99
    try:
        os.environ.clear()
        os.environ.update(place.environment)
        said = os.open(place.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        os.dup2(said, 2)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(said if asked["argv"] else os.open(os.devnull, os.O_RDWR), 1)
        os.chdir(place.repo)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        note = shim.take_part(Path(asked["control"]))
        if asked["argv"]:
            code = call(asked["argv"])
        else:
            sys.stdout = _Notes(note)
            code = code_of(lambda: _haul(place, asked))
    except BaseException:  # noqa: BLE001  whatever it is, it must be seen
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _haul(place: Place, asked: dict[str, Any]) -> int:
    project = Project(place.repo, place.environment)
    options = {"as_json": True, "sandbox": asked["level"], **asked["options"]}
    settings = configure(project.root, project.environment, settings_of(options)).settings
    agent = TinyAgent(project, settings, place.ledger)
    plan = read_plan(project, PLAN)
    request = request_of(PLAN, options, asked["choice"], agent=agent)
    return run_plan(project, plan, request, options)


if __name__ == "__main__":
    serve(Place(Path(sys.argv[1])))
