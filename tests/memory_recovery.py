"""Recovery in memory: a lost journal is restored from the memory repository."""

from datetime import timedelta

import msgspec

from windlass.core.events import codec
from windlass.core.events.review import Review
from windlass.core.scheduler.recovery import adopted
from windlass.core.state import fold
from windlass.core.state.remains import Kept, Made, Remains
from windlass.testing.journal import MemoryJournal
from windlass.testing.memory import MemoryRepository
from worlds import NOON, World

RUN = "r1"


def remains_of(repository: MemoryRepository) -> Remains:
    """What Windlass would read from git for these commits and pins."""
    commits = {
        name: Made(
            commit=name,
            tree=commit.tree,
            parents=commit.parents,
            at=NOON + timedelta(seconds=second),
            run="" if commit.message == "base" else RUN,
            task=commit.message.removeprefix("merge ").split()[0],
            turn=_turn(commit.message),
        )
        for second, (name, commit) in enumerate(repository.commits.items())
    }
    pins = repository.pins
    return Remains(
        run=RUN,
        base=repository.base,
        tip=repository.tip,
        commits=commits,
        attempts=_attempts(repository),
        candidates={
            int(name.split("/")[1]): at for name, at in pins.items() if name.startswith("candidate")
        },
    )


def _attempts(repository: MemoryRepository) -> dict[str, dict[int, Kept]]:
    found: dict[str, dict[int, Kept]] = {}
    for name, at in repository.pins.items():
        if not name.startswith("task/"):
            continue
        _, task, number, what = name.split("/")
        n = int(number)
        kept = found.setdefault(task, {}).get(n) or Kept(n=n)
        found[task][n] = _with(repository, kept, what, at)
    return found


def _with(repository: MemoryRepository, kept: Kept, what: str, at: str) -> Kept:
    if what.startswith("verdict-"):
        k, review = int(what.removeprefix("verdict-")), msgspec.json.decode(at, type=Review)
        return msgspec.structs.replace(kept, reviews={**kept.reviews, k: review})
    if what.startswith("turn-"):
        return msgspec.structs.replace(kept, turn=int(what.removeprefix("turn-")))
    if what in {"snapshot", "partial"}:
        turn = _turn(repository.commits[at].message)
        return msgspec.structs.replace(kept, kind=what, commit=at, turn=turn)
    field = "start" if what == "tip" else what
    return msgspec.structs.replace(kept, **{field: at})


def _turn(message: str) -> int | None:
    """The turn that a snapshot was made in; no other commit names one."""
    _, _, turn = message.partition(" ")
    return int(turn) if turn.isdigit() else None


def recover(world: World, *, lost: int = 0) -> int:
    """Lose the journal and restore it from its mirror; returns the number of facts added from git.

    `lost` records are missing at the end of the mirror: all of them in a run of an older version.
    """
    mirror = world.repository.mirror
    payloads = mirror.stored[: max(0, len(mirror.stored) - lost)]
    facts = [codec.decode(payload) for payload in payloads]
    begun = facts or [world.first(None, None)]
    state = fold(begun)
    assert state is not None
    added = adopted(state, remains_of(world.repository), world.clock.now())
    world.journal = MemoryJournal(storage=list(payloads))
    world.journal.append((*(() if facts else begun), *added), expected=len(payloads))
    mirror.stored = payloads
    return len(added)
