"""Power losses: the story is run once and logged, then resumed from any moment of the log.

Law: what was reported is safe. Every fact that the run had reported is in the journal afterwards,
and the committed work of a finished Player is the work that it left.
"""

import shutil
from collections.abc import Sequence

from windlass.core.events import codec
from windlass.core.events import model as e
from windlass.errors import WindlassError
from windlass.selftest.place import Rehearsals
from windlass.selftest.sweep import Finding, Sweep, short
from windlass.testing.faults.disk import Disk, Line, Survival, read
from windlass.testing.faults.shim import Mode
from windlass.testing.faults.story import PLAN_ID


def lose_power(
    rehearsals: Rehearsals, lines: Sequence[Line], survival: Survival, seed: int
) -> tuple[Disk, str]:
    """Leave the repository as a power loss after these calls would; with a name for the point."""
    place = rehearsals.place
    disk = Disk(place.repo, place.untouched, rehearsals.control.log)
    for line in lines:
        disk.do(line)
    place.reset()
    shutil.rmtree(place.repo)
    disk.write(place.repo, survival, seed)
    last = lines[-1]
    return disk, f"{survival} after {len(lines)} {last.what} {short(last.path, place.repo)}"


class PowerLoss:
    """One logged run, and the moments at which its power can fail."""

    def __init__(self, rehearsals: Rehearsals, sweep: Sweep) -> None:
        self._run = rehearsals
        self._sweep = sweep
        rehearsals.place.reset()
        rehearsals.control.order(Mode.LOG)
        if (code := rehearsals.run()) != 0:
            output = rehearsals.place.read_output()
            raise WindlassError(f"without a fault, the run ends with {code}: {output}")
        self._lines = read(rehearsals.control.log)
        self._recorded = self._events()

    @property
    def moments(self) -> int:
        """The number of calls after which the power can fail."""
        return len(self._lines)

    def at(self, moment: int, survival: Survival, seed: int = 0) -> Finding:
        """Lose power after that many calls, then resume."""
        disk, name = lose_power(self._run, self._lines[:moment], survival, seed)
        try:
            kept = self._events()
        except WindlassError as error:
            return Finding(name=name, reached=True, faults=(f"no journal: {error}",))
        faults: list[str] = []
        if [*map(codec.encode, kept[: disk.reported])] != [
            *map(codec.encode, self._recorded[: disk.reported])
        ]:
            faults.append(f"{disk.reported} facts were reported, and the journal has {len(kept)}")
        found = self._sweep.resume(name, reached=True, breaks=1, ledger=False)
        if not found.faults:
            faults += self._lost_work(disk.reported)
        return Finding(
            name=name, reached=True, faults=(*faults, *found.faults), output=found.output
        )

    def _lost_work(self, reported: int) -> list[str]:
        """Finished Players whose committed work is not the work that they left."""
        now = _committed(self._events())
        then = _committed(self._recorded)
        finished = [
            (event.task, event.n)
            for event in self._recorded[:reported]
            if isinstance(event, e.PlayerFinished)
        ]
        return [f"the work of {key} is lost" for key in finished if now.get(key) != then[key]]

    def _events(self) -> list[e.Event]:
        return [entry.event for entry in self._run.place.project.journals.entries(PLAN_ID)]


def _committed(events: list[e.Event]) -> dict[tuple[str, int], str]:
    """The tree of the snapshot after each start of a Player."""
    taken = (event for event in events if isinstance(event, e.SnapshotTaken))
    return {(event.task, event.n): event.tree for event in taken}
