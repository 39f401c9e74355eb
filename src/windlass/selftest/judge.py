"""What must be true at the end of a rehearsed run, whatever fault it met.

Law: the judge looks from outside, with the user's git and the files on disk. It adds up the journal
itself and does not rely on the code that it judges.
"""

import hashlib
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from windlass.app.wiring import Project
from windlass.app.wiring.rehearsal import left_running
from windlass.core.events import model as e
from windlass.selftest.place import Place
from windlass.testing.faults.story import AGENTS, PLAN_ID, STATE_FILE, TASKS
from windlass.views.bills import bills, whole
from windlass.views.cost import amounts
from windlass.views.progress import Progress

INTEGRATION = f"refs/heads/windlass/{PLAN_ID}/integration"
PATIENCE = 30.0
"""Seconds that the processes of a killed run may take to end."""

_HELD = ("HEAD", "config", "index", "refs/heads/main")


class Judge:
    """Knows the state of the place before a run, and the tree that every run must end with."""

    def __init__(self, place: Place) -> None:
        place.reset()
        self._place = place
        self._project = place.project
        self._wanted = place.wanted_tree()
        place.reset()
        self._before = self._user_files()

    def faults(self, *, breaks: int, ledger: bool = True) -> list[str]:
        """Everything that is wrong with a completed run that was interrupted `breaks` times.

        Without the ledger, calls of agents that were not recorded are not counted.
        """
        try:
            return [
                *self._git_faults(),
                *self._user_faults(),
                *self._journal_faults(breaks, ledger=ledger),
            ]
        except (subprocess.CalledProcessError, OSError, ValueError) as error:
            output = getattr(error, "stderr", "") or ""
            return [f"it cannot be judged: {error} {output}".rstrip()]

    def _git_faults(self) -> Iterator[str]:
        git = self._place.git
        if (tree := git("rev-parse", f"{INTEGRATION}^{{tree}}")) != self._wanted:
            yield f"the tree is another: {git('ls-tree', '-r', tree)}"
        merged = git(
            "log", "--merges", "--first-parent", "--format=%(trailers:key=Windlass-Task,valueonly)",
            f"main..{INTEGRATION}",
        )  # fmt: skip
        if sorted(merged.split()) != sorted(TASKS):
            yield f"not every task is merged once: {merged.split()}"
        # A run that was killed before its first fact has a tip too: the commit it starts from.
        tips = git("for-each-ref", "--format=%(objectname)", f"refs/windlass/{PLAN_ID}/*/tip")
        if {*tips.split(), git("rev-parse", "main")} != {
            git("rev-parse", INTEGRATION),
            git("rev-parse", "main"),
        }:
            yield "the integration branch does not show the tip"
        git("fsck", "--connectivity-only", "--no-dangling")

    def _user_faults(self) -> Iterator[str]:
        now = self._user_files()
        for name in sorted(self._before.keys() | now.keys()):
            if self._before.get(name) != now.get(name):
                yield f"the user's {name} was changed"
        locks = [
            str(path.relative_to(self._place.repo)) for path in self._place.repo.rglob("*.lock")
        ]
        if locks:
            yield f"stale locks: {locks}"
        home = self._place.repo / ".windlass/plans" / PLAN_ID
        for folder in ("workspaces", "throwaway"):
            if left := sorted(path.name for path in (home / folder).glob("*")):
                yield f"left in {folder}: {left}"
        yield from running_faults(self._project)

    def _journal_faults(self, breaks: int, *, ledger: bool) -> Iterator[str]:
        events = [entry.event for entry in self._project.journals.entries(PLAN_ID)]
        merged = Counter(event.task for event in events if isinstance(event, e.TaskMerged))
        if merged != Counter(TASKS):
            yield f"recorded as merged: {dict(merged)}"
        ends = [event for event in events if isinstance(event, e.RunEnded)]
        if not ends or ends[-1].status is not e.RunEnd.COMPLETED:
            yield "the journal does not end with a completed run"
        shown = self._project.journals.state_file(PLAN_ID)
        if shown is None or shown.seq != len(events):
            yield f"state.json is at {shown and shown.seq}, the journal at {len(events)}"
        else:
            yield from cost_faults(events, shown)
        if ledger:
            yield from call_faults(events, self._place.ledger.read_text().split("\n")[:-1], breaks)
        if not (self._place.repo / STATE_FILE).is_file():
            yield f"{STATE_FILE} was not written"

    def _user_files(self) -> dict[str, str]:
        """The hash of every file of the user, and of their HEAD, index, config and branch."""
        root, own = self._place.repo, dict[str, str]()
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in {".git", ".windlass"}]
            paths = (Path(folder, name) for name in names)
            own |= {str(path.relative_to(root)): _hash(path) for path in paths}
        own.pop(STATE_FILE, None)
        git = {f".git/{name}": _hash(root / ".git" / name) for name in _HELD}
        hooks = {".git/hooks": "there"} if (root / ".git/hooks").exists() else {}
        return own | git | hooks


Outcome = e.PlayerFinished | e.PlayerFailed | e.CoachAnswered | e.CoachFailed


def running_faults(project: Project) -> Iterator[str]:
    """A fault if processes of the project are still running after `PATIENCE`."""
    deadline = time.monotonic() + PATIENCE
    while (running := left_running(project)) and time.monotonic() < deadline:
        time.sleep(0.02)
    if running:
        yield f"left running: {running}"


def cost_faults(events: list[e.Event], progress: Progress) -> Iterator[str]:
    """The shown cost must be the sum of the recorded costs, and each cost recorded once.

    A request counts for its real cost; one that was never settled counts as an estimate.
    """
    reserved = Counter(event.id for event in events if isinstance(event, e.SpendReserved))
    settled = Counter(event.id for event in events if isinstance(event, e.SpendSettled))
    if settled - reserved:
        yield f"settled and never reserved: {sorted(settled - reserved)}"
    cost, shown = whole(bills("", events)), progress.metrics.cost
    if (cost.spent_usd, cost.estimated_usd) != (shown.spent_usd, shown.estimated_usd):
        yield f"{amounts(cost)} USD are in the journal, and {amounts(shown)} are shown"
    outcomes = [event for event in events if isinstance(event, Outcome)]
    keys = Counter((type(o).__name__, o.task, o.n, getattr(o, "k", 0)) for o in outcomes)
    counts = (*keys.items(), *reserved.items(), *settled.items())
    if twice := [key for key, count in counts if count > 1]:
        yield f"recorded twice: {twice}"


def call_faults(events: list[e.Event], calls: list[str], breaks: int) -> Iterator[str]:
    """Each call of an agent must be reserved, settled and recorded, unless a break cut it short."""
    players = Counter(call for call in calls if call.startswith("player"))
    if repeated := [call for call, count in players.items() if count > 1]:
        yield f"played twice under one number: {repeated}"
    reserved = sum(isinstance(event, e.SpendReserved) for event in events)
    settled = sum(isinstance(event, e.SpendSettled) for event in events)
    done = sum(isinstance(event, e.PlayerFinished | e.CoachAnswered) for event in events)
    under_way = AGENTS * breaks
    if not done <= settled <= done + under_way:
        yield f"{settled} requests settled, {done} calls recorded, after {breaks} breaks"
    if not settled <= len(calls) <= reserved <= settled + under_way:
        counts = f"{len(calls)} calls of agents, {reserved} of them reserved, {settled} settled"
        yield f"{counts}, after {breaks} breaks"


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
