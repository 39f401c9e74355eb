"""The merge queue: how long merges wait for their checks, in batches and one after the other.

The real decide loop. Only checks of merged trees take time, one at a time, as with one test slot
that nobody else wants; tasks' own checks cost the same either way, and nothing here.
A task that is broken is green alone and red with any other; its Player mends it when it is told.
"""

import random
import statistics
from collections.abc import Iterable
from datetime import datetime, timedelta

from clockwork import at_once, seconds, started
from windlass.core.events import model as e
from windlass.core.plan import Plan, Task
from windlass.core.settings import Settings

CHECK = timedelta(minutes=10)


class Scene:
    """What is in each commit, and which of it is broken."""

    def __init__(self, ids: list[str], broken: float, seed: int) -> None:
        dice = random.Random(seed)  # noqa: S311  nothing is secret about a simulation
        self._broken = {f"{id_}.1" for id_ in ids if dice.random() < broken}
        self._content: dict[str, frozenset[str]] = {"base": frozenset()}

    def outcome(self, fact: e.Event, now: datetime) -> Iterable[e.Event]:
        """What comes of an intent, and when."""
        if isinstance(fact, e.SnapshotStarted):
            name = f"{fact.task}.{fact.n}"
            self._content[name] = frozenset({name})
        elif isinstance(fact, e.MergeStarted):
            both = self._content[fact.onto] | self._content[fact.commit]
            self._content[f"m{fact.candidate}"] = both
        elif isinstance(fact, e.ChecksStarted):
            return [self._checked(fact, now)]
        return at_once(fact, now)

    def _checked(self, fact: e.ChecksStarted, now: datetime) -> e.ChecksFinished:
        inside = self._content[fact.commit]
        alone = len(inside) == 1
        red = not alone and not inside.isdisjoint(self._broken)
        said = e.Outcome.FAIL if red else e.Outcome.PASS
        return e.ChecksFinished(
            at=now if alone else now + CHECK,
            task=fact.task,
            commit=fact.commit,
            tree=fact.tree,
            results=tuple(e.CheckResult(command=check, outcome=said) for check in fact.checks),
        )


def hours(tasks: int, broken: float, batch: int, seed: int) -> float:
    """How long it takes until all are in."""
    ids = [f"t{i}" for i in range(tasks)]
    specs = tuple(Task(id=id_, title=id_) for id_ in ids)
    plan = Plan(id="p", title="p", dialect="feature", path="p", tasks=specs)
    settings = Settings(checks=("test",), agents=64, test_slots=64, batch=batch)
    return seconds(started(plan, settings), Scene(ids, broken, seed).outcome) / 3600


def ratio(*, tasks: int = 64, broken: float = 0.05, batch: int = 8, rounds: int = 12) -> float:
    """Batches against one merge after the other, over plans of one seed each; the median."""
    found = [
        hours(tasks, broken, batch, seed) / hours(tasks, broken, 1, seed) for seed in range(rounds)
    ]
    return statistics.median(found)
