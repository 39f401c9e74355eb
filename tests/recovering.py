"""What a memory repository shows of a run whose journal is gone, and a journal made from that."""

from datetime import timedelta

import msgspec

from windlass.events.model import RunStarted
from windlass.events.review import Review
from windlass.scheduler.recovery import recovered
from windlass.state.remains import Kept, Made, Remains, read_began, read_told
from windlass.testing.journal import MemoryJournal
from windlass.testing.memory import MemoryRepository
from worlds import NOON, World

RUN = "r1"


def remains_of(repository: MemoryRepository) -> Remains:
    """All that it shows; the times are as good as any."""
    commits = {
        name: Made(
            commit=name,
            tree=commit.tree,
            parents=commit.parents,
            at=NOON + timedelta(seconds=second),
            run="" if commit.message == "base" else RUN,
            task=commit.message.removeprefix("merge ").split()[0],
        )
        for second, (name, commit) in enumerate(repository.commits.items())
    }
    pins = repository.pins
    told = sorted((int(n.split("/")[1]), t) for n, t in pins.items() if n.startswith("told/"))
    return Remains(
        run=RUN,
        began=read_began(pins["began"]) if "began" in pins else None,
        told=tuple(read_told(text) for _, text in told),
        told_until=max((number for number, _ in told), default=0),
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
        kept = found.setdefault(task, {}).get(n) or Kept(n=n, turn=1 if n == 1 else None)
        found[task][n] = _with(repository, kept, what, at)
    return found


def _with(repository: MemoryRepository, kept: Kept, what: str, at: str) -> Kept:
    if what.startswith("verdict-"):
        k, review = int(what.removeprefix("verdict-")), msgspec.json.decode(at, type=Review)
        return msgspec.structs.replace(kept, reviews={**kept.reviews, k: review})
    if what.startswith("turn-"):
        return msgspec.structs.replace(kept, turn=int(what.removeprefix("turn-")))
    if what in {"snapshot", "partial"}:
        turn = int(repository.commits[at].message.split()[1])
        return msgspec.structs.replace(kept, kind=what, commit=at, turn=turn)
    return msgspec.structs.replace(kept, **{what: at})


def recover(world: World) -> None:
    """The journal is gone, and made anew from what the repository shows."""
    remains = remains_of(world.repository)
    first = world.first(None, None)
    assert isinstance(first, RunStarted)
    facts = recovered(remains, remains.began or first, world.clock.now())
    world.journal = MemoryJournal()
    world.journal.append(facts, expected=0)
