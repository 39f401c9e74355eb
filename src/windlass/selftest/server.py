"""Starts rehearsed runs: everything is imported once, and each run is a fork.

A line of JSON on stdin requests a run, a line on stdout answers. The library that counts calls is
preloaded into this process and attached only in its children.
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
from windlass.app.wiring.configuration import configure
from windlass.app.wiring.rehearsal import TinyAgent
from windlass.cli.main import call, code_of
from windlass.cli.options import settings_of
from windlass.cli.running import request_of, run_plan
from windlass.selftest.place import Place
from windlass.testing.faults import shim
from windlass.testing.faults.story import PLAN

_ADOPT_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER: the orphans of a killed run become ours, so that we can wait for them."""


class _Notes:
    """A stdout that logs how many facts of the journal were reported."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note

    def write(self, line: str) -> int:
        self._note(f"reported {json.loads(line)['seq']}")
        return len(line)

    def flush(self) -> None:
        """Nothing is buffered."""


def serve(place: Place) -> None:
    """Answer requests until stdin closes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _run_child(place, request)
        _, status = os.waitpid(pid, 0)
        _reap(pid)
        sys.stdout.write(json.dumps({"code": os.waitstatus_to_exitcode(status)}) + "\n")
        sys.stdout.flush()


def _reap(group: int) -> None:
    """Wait until the whole process group of a run is gone, and reap other ended children."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _run_child(place: Place, request: dict[str, Any]) -> NoReturn:
    code = 99
    try:
        os.environ.clear()
        os.environ.update(place.environment)
        output = os.open(place.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(output if request["argv"] else os.open(os.devnull, os.O_RDWR), 1)
        os.chdir(place.repo)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        note = shim.attach(Path(request["control"]))
        if request["argv"]:
            code = call(request["argv"])
        else:
            sys.stdout = _Notes(note)
            code = code_of(lambda: _run_story(place, request))
    except BaseException:  # noqa: BLE001  every error must be seen
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run_story(place: Place, request: dict[str, Any]) -> int:
    project = place.project
    options = {"as_json": True, "sandbox": request["level"], **request["options"]}
    settings = configure(project.root, project.environment, settings_of(options).by_key()).settings
    agent = TinyAgent(project, settings, place.ledger)
    plan = read_plan(project, PLAN)
    wanted = request_of(PLAN, options, request["choice"], agent=agent)
    return run_plan(project, plan, wanted, options)


if __name__ == "__main__":
    serve(Place(Path(sys.argv[1])))
