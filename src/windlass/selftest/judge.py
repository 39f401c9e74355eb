"""What must be true of a rehearsed run in the end, whatever happened to it on the way.

Law: everything is looked at from outside, with the user's git and the files on disk; the journal is
added up here once more, and never by the code that is judged.
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
"""Seconds that what dies with a run may take to be gone."""

_HELD = ("HEAD", "config", "index", "refs/heads/main")


class Judge:
    """Knows what the place was like before, and what every run must end with."""

    def __init__(self, place: Place) -> None:
        place.fresh()
        self._place = place
        self._project = Project(place.repo, place.environment)
        self._wanted = place.wanted_tree()
        place.fresh()
        self._before = self._users_own()

    def faults(self, *, breaks: int, ledger: bool = True) -> list[str]:
        """All that is wrong after a run which was broken so many times and then came to its end.

        Without the ledger, calls of agents that nobody recorded are not counted.
        """
        try:
            return [
                *self._of_git(),
                *self._of_the_user(),
                *self._of_the_journal(breaks, ledger=ledger),
            ]
        except (subprocess.CalledProcessError, OSError, ValueError) as error:
            said = getattr(error, "stderr", "") or ""
            return [f"it cannot even be judged: {error} {said}".rstrip()]

    def _of_git(self) -> Iterator[str]:
        git = self._place.git
        if (tree := git("rev-parse", f"{INTEGRATION}^{{tree}}")) != self._wanted:
            yield f"another tree came out: {git('ls-tree', '-r', tree)}"
        told = git(
            "log", "--merges", "--first-parent", "--format=%(trailers:key=Windlass-Task,valueonly)",
            f"main..{INTEGRATION}",
        )  # fmt: skip
        if sorted(told.split()) != sorted(TASKS):
            yield f"not every task is merged once: {told.split()}"
        # A run that was killed before its first record has a tip as well: where it would begin.
        tips = git("for-each-ref", "--format=%(objectname)", f"refs/windlass/{PLAN_ID}/*/tip")
        if {*tips.split(), git("rev-parse", "main")} != {
            git("rev-parse", INTEGRATION),
            git("rev-parse", "main"),
        }:
            yield "the integration branch does not show the tip"
        git("fsck", "--connectivity-only", "--no-dangling")

    def _of_the_user(self) -> Iterator[str]:
        now = self._users_own()
        for name in sorted(self._before.keys() | now.keys()):
            if self._before.get(name) != now.get(name):
                yield f"the user's {name} is not what it was"
        locks = [
            str(path.relative_to(self._place.repo)) for path in self._place.repo.rglob("*.lock")
        ]
        if locks:
            yield f"stale locks: {locks}"
        home = self._place.repo / ".windlass/plans" / PLAN_ID
        for folder in ("workspaces", "throwaway"):
            if left := sorted(path.name for path in (home / folder).glob("*")):
                yield f"left in {folder}: {left}"
        deadline = time.monotonic() + PATIENCE
        while (running := left_running(self._project)) and time.monotonic() < deadline:
            time.sleep(0.02)
        if running:
            yield f"left running: {running}"

    def _of_the_journal(self, breaks: int, *, ledger: bool) -> Iterator[str]:
        events = [entry.event for entry in self._project.journals.entries(PLAN_ID)]
        merged = Counter(event.task for event in events if isinstance(event, e.TaskMerged))
        if merged != Counter(TASKS):
            yield f"recorded as merged: {dict(merged)}"
        ends = [event for event in events if isinstance(event, e.RunEnded)]
        if not ends or ends[-1].status is not e.RunEnd.COMPLETED:
            yield "the journal does not end with a completed run"
        told = self._project.journals.state_file(PLAN_ID)
        if told is None or told.seq != len(events):
            yield f"state.json is at {told and told.seq}, the journal at {len(events)}"
        else:
            yield from of_money(events, told)
        if ledger:
            yield from of_calls(events, self._place.ledger.read_text().split("\n")[:-1], breaks)
        if not (self._place.repo / STATE_FILE).is_file():
            yield f"{STATE_FILE} was not written"

    def _users_own(self) -> dict[str, str]:
        """Every file of the user's, by its hash, and what their git holds of them."""
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


def _outcomes(events: list[e.Event]) -> list[Outcome]:
    return [event for event in events if isinstance(event, Outcome)]


def of_money(events: list[e.Event], told: Progress) -> Iterator[str]:
    """What is told is the sum of what was recorded, and each thing was recorded once.

    A request counts for what it came to; one that no process lived to settle is an estimate.
    """
    reserved = Counter(event.id for event in events if isinstance(event, e.SpendReserved))
    settled = Counter(event.id for event in events if isinstance(event, e.SpendSettled))
    if settled - reserved:
        yield f"settled and never reserved: {sorted(settled - reserved)}"
    cost, shown = whole(bills("", events)), told.metrics.cost
    if (cost.spent_usd, cost.estimated_usd) != (shown.spent_usd, shown.estimated_usd):
        yield f"{amounts(cost)}: so many USD are in the journal, and {amounts(shown)} is told"
    keys = Counter((type(o).__name__, o.task, o.n, getattr(o, "k", 0)) for o in _outcomes(events))
    counts = (*keys.items(), *reserved.items(), *settled.items())
    if twice := [key for key, count in counts if count > 1]:
        yield f"recorded twice: {twice}"


def of_calls(events: list[e.Event], calls: list[str], breaks: int) -> Iterator[str]:
    """Each call of an agent is booked and recorded, but for those that a break found under way."""
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
        told = f"{len(calls)} calls of agents, {reserved} of them reserved, {settled} settled"
        yield f"{told}, after {breaks} breaks"


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
