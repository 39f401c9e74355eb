"""The power goes: the story is run once and written down, then taken up from every moment of it.

Law: what was told is safe. Whatever a run has said it recorded is in the journal afterwards, and
the work of a Player that had finished is the work that is committed.
"""

import shutil

from windlass.app.wiring import Project
from windlass.core.events import codec
from windlass.core.events import model as e
from windlass.errors import WindlassError
from windlass.selftest.place import Rehearsals
from windlass.selftest.sweep import Finding, Sweep
from windlass.testing.faults.disk import Disk, Survival, read
from windlass.testing.faults.shim import Mode
from windlass.testing.faults.story import PLAN_ID


class PowerLoss:
    """One run written down, and the moments at which its power may go."""

    def __init__(self, rehearsals: Rehearsals, sweep: Sweep) -> None:
        self._run = rehearsals
        self._sweep = sweep
        rehearsals.place.fresh()
        rehearsals.control.order(Mode.LOG)
        if (code := rehearsals.run()) != 0:
            raise WindlassError(f"unbroken, the run ends with {code}", hint="see what it said")
        self._lines = read(rehearsals.control.log)
        self._recorded = self._events()

    @property
    def moments(self) -> int:
        """How many there are."""
        return len(self._lines)

    def at(self, moment: int, survival: Survival, seed: int = 0) -> Finding:
        """Lose power after so many calls, then resume."""
        place = self._run.place
        disk = Disk(place.repo, place.untouched, self._run.control.log)
        for line in self._lines[:moment]:
            disk.do(line)
        place.fresh()
        shutil.rmtree(place.repo)
        disk.write(place.repo, survival, seed)
        last = self._lines[moment - 1]
        name = f"{survival} after {moment} {last.what} {last.path.removeprefix(f'{place.repo}/')}"
        try:
            kept = self._events()
        except WindlassError as error:
            return Finding(name=name, reached=True, faults=(f"no journal: {error}",))
        faults: list[str] = []
        if [*map(codec.encode, kept[: disk.told])] != [
            *map(codec.encode, self._recorded[: disk.told])
        ]:
            faults.append(f"told up to {disk.told}, and the journal has {len(kept)}")
        found = self._sweep.resumed(name, reached=True, breaks=1, ledger=False)
        if not found.faults:
            faults += self._lost_work(disk.told)
        return Finding(name=name, reached=True, faults=(*faults, *found.faults), said=found.said)

    def _lost_work(self, told: int) -> list[str]:
        """Players that had finished, and whose work is not what was committed of it."""
        now = _committed(self._events())
        then = _committed(self._recorded)
        finished = [
            (event.task, event.n)
            for event in self._recorded[:told]
            if isinstance(event, e.PlayerFinished)
        ]
        return [f"the work of {key} is lost" for key in finished if now.get(key) != then[key]]

    def _events(self) -> list[e.Event]:
        place = self._run.place
        entries = Project(place.repo, place.environment).journals.entries(PLAN_ID)
        return [entry.event for entry in entries]


def _committed(events: list[e.Event]) -> dict[tuple[str, int], str]:
    """The tree that each start of a Player came to."""
    taken = (event for event in events if isinstance(event, e.SnapshotTaken))
    return {(event.task, event.n): event.tree for event in taken}
