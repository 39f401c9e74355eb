"""Windlass runs a plan of coding tasks to verified, merged commits; no work is lost or repeated.

The use cases are functions; `docs/python.md` shows how to use them. Each is imported when it is
first asked for, so that `import windlass` costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windlass.app.acceptance import approve
    from windlass.app.adopt import adopt, propose
    from windlass.app.bundle import BundleRequest, bundle
    from windlass.app.clean import CleanRequest, clean
    from windlass.app.costs import costs
    from windlass.app.diff import diff
    from windlass.app.doctor import doctor
    from windlass.app.follow import Fact, follow
    from windlass.app.history import history
    from windlass.app.init import init
    from windlass.app.land import land
    from windlass.app.log import LogRequest, log
    from windlass.app.plan import plan
    from windlass.app.pull_request import PullRequestRequest, pull_request
    from windlass.app.recover import RecoverRequest, recover
    from windlass.app.report import report, write_report
    from windlass.app.rest import abort, pause, stop
    from windlass.app.run import RunRequest, RunResult, resume, run
    from windlass.app.run_settings import RunSettings
    from windlass.app.say import Delivery, answer, give, reset, retry
    from windlass.app.status import status
    from windlass.app.take import take
    from windlass.app.wiring import Project

__version__ = "0.1.0"

__all__ = [
    "BundleRequest",
    "CleanRequest",
    "Delivery",
    "Fact",
    "LogRequest",
    "Project",
    "PullRequestRequest",
    "RecoverRequest",
    "RunRequest",
    "RunResult",
    "RunSettings",
    "abort",
    "adopt",
    "answer",
    "approve",
    "bundle",
    "clean",
    "costs",
    "diff",
    "doctor",
    "follow",
    "give",
    "history",
    "init",
    "land",
    "log",
    "pause",
    "plan",
    "propose",
    "pull_request",
    "recover",
    "report",
    "reset",
    "resume",
    "retry",
    "run",
    "status",
    "stop",
    "take",
    "write_report",
]

_HOMES = {
    "acceptance": ("approve",),
    "adopt": ("adopt", "propose"),
    "bundle": ("BundleRequest", "bundle"),
    "clean": ("CleanRequest", "clean"),
    "costs": ("costs",),
    "diff": ("diff",),
    "doctor": ("doctor",),
    "follow": ("Fact", "follow"),
    "history": ("history",),
    "init": ("init",),
    "land": ("land",),
    "log": ("LogRequest", "log"),
    "plan": ("plan",),
    "pull_request": ("PullRequestRequest", "pull_request"),
    "recover": ("RecoverRequest", "recover"),
    "report": ("report", "write_report"),
    "rest": ("abort", "pause", "stop"),
    "run": ("RunRequest", "RunResult", "resume", "run"),
    "run_settings": ("RunSettings",),
    "say": ("Delivery", "answer", "give", "reset", "retry"),
    "status": ("status",),
    "take": ("take",),
    "wiring": ("Project",),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"windlass.app.{_MODULES[name]}"), name)
