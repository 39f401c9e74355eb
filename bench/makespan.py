"""How long simulated plans take through the real decide loop, against the bound nobody can beat.

The bound is the longer of the critical path and all work shared evenly among the agents. Beside it
stand the ways of the seeds: wave by wave, layer by layer, and first come first served.
"""

import heapq
import itertools
import random
import statistics
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from clockwork import at_once, seconds, started
from windlass.core.events import model as e
from windlass.core.plan import Plan, Stage, Task, critical_lengths, ordered
from windlass.core.settings import Settings

MEAN_BOUND, P95_BOUND = 1.03, 1.15
CHAINED = 0.3
"""How many tasks of a wide plan wait for another."""
LAYERS = 5
"""From setup to integration, as the seed has them."""


class Case(Struct, frozen=True, kw_only=True):
    """One plan, how long each task takes, what was thought of that, and who works."""

    plan: Plan
    seconds: dict[str, float]
    estimates: dict[str, float]
    agents: int


def layered(dice: random.Random, count: int) -> list[Task]:
    """Layers of tasks, each waiting for one to three of the layer before it."""
    width = max(2, round(count**0.5 * dice.uniform(0.6, 1.6)))
    tasks: list[Task] = []
    for i in range(count):
        layer = i // width
        before = [t.id for t in tasks if t.stage == str(layer - 1)]
        deps = dice.sample(before, min(len(before), dice.randint(1, 3))) if before else []
        tasks.append(Task(id=f"t{i}", title="t", depends_on=tuple(deps), stage=str(layer)))
    return tasks


def wide(dice: random.Random, count: int) -> list[Task]:
    """Mostly independent, with a chain here and there."""
    tasks: list[Task] = []
    for i in range(count):
        chained = tasks and dice.random() < CHAINED
        deps = (dice.choice(tasks).id,) if chained else ()
        tasks.append(Task(id=f"t{i}", title="t", depends_on=deps))
    depth = _depths(tasks)
    return [
        Task(id=t.id, title="t", depends_on=t.depends_on, stage=str(depth[t.id])) for t in tasks
    ]


def _depths(tasks: list[Task]) -> dict[str, int]:
    depth: dict[str, int] = {}
    for task in tasks:
        depth[task.id] = max((depth[dep] + 1 for dep in task.depends_on), default=0)
    return depth


def cases(rounds: int) -> Iterator[Case]:
    """Plans of either kind, small and large, with few agents and many, from one seed."""
    dice = random.Random(7)  # noqa: S311  nothing is secret about a simulation
    kinds: tuple[Callable[[random.Random, int], list[Task]], ...] = (layered, wide)
    for kind, count, agents in itertools.product(kinds, (15, 50, 200), (4, 8, 16)):
        for _ in range(rounds):
            tasks = tuple(kind(dice, count))
            seconds = {t.id: dice.lognormvariate(6, 0.7) for t in tasks}
            noisy = {id_: s * dice.lognormvariate(0, 0.4) for id_, s in seconds.items()}
            plan = Plan(id="p", title="p", dialect="milestone", path="p", tasks=tasks)
            yield Case(plan=plan, seconds=seconds, estimates=noisy, agents=agents)


def bound(case: Case) -> float:
    path = max(critical_lengths(case.plan, case.seconds).values())
    return max(path, sum(case.seconds.values()) / case.agents)


def windlass(case: Case, *, stages: int | None = None) -> float:
    """The plan through decide, fact by fact; only Players take time, as in the seeds' accounts."""

    def outcome(fact: e.Event, now: datetime) -> Iterator[e.Event]:
        for then in at_once(fact, now):
            played = isinstance(then, e.PlayerFinished)
            took = timedelta(seconds=case.seconds[then.task]) if played else timedelta()
            yield replace(then, at=now + took)

    plan = staged(case.plan, stages) if stages is not None else case.plan
    settings = Settings(agents=case.agents, max_cost=1e5)
    return seconds(started(plan, settings, **case.estimates), outcome)


def staged(plan: Plan, most: int) -> Plan:
    """The plan with a barrier after each of at most so many stages."""
    deepest = max(int(task.stage or 0) for task in plan.tasks)
    tall = -(-(deepest + 1) // most)
    tasks = tuple(replace(task, stage=str(int(task.stage or 0) // tall)) for task in plan.tasks)
    names = sorted({task.stage or "" for task in tasks}, key=int)
    return replace(plan, tasks=tasks, stages=tuple(Stage(name=name) for name in names))


def first_come(case: Case) -> float:
    """Tasks in the plan's order, each as soon as it is ready and somebody is free."""
    waiting = list(ordered(case.plan))
    done: set[str] = set()
    running: list[tuple[float, str]] = []
    now = 0.0
    while waiting or running:
        ready = [t for t in waiting if set(t.depends_on) <= done]
        for task in ready[: case.agents - len(running)]:
            waiting.remove(task)
            heapq.heappush(running, (now + case.seconds[task.id], task.id))
        now, ended = heapq.heappop(running)
        done.add(ended)
    return now


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    ways: dict[str, Callable[[Case], float]] = {
        "windlass": windlass,
        "first come": first_come,
        "layer by layer": lambda case: windlass(case, stages=LAYERS),
        "wave by wave": lambda case: windlass(case, stages=len(case.plan.tasks)),
    }
    ratios: dict[str, list[float]] = {name: [] for name in ways}
    for case in cases(rounds):
        best = bound(case)
        for name, way in ways.items():
            ratios[name].append(way(case) / best)
    print(f"makespan ÷ bound over {len(ratios['windlass'])} simulated plans")
    print(f"{'':16}{'mean':>8}{'p95':>8}{'worst':>8}")
    for name, found in ratios.items():
        p95 = statistics.quantiles(found, n=20)[-1]
        print(f"{name:16}{statistics.fmean(found):>8.3f}{p95:>8.3f}{max(found):>8.3f}")
    mine = ratios["windlass"]
    held = (
        statistics.fmean(mine) <= MEAN_BOUND and statistics.quantiles(mine, n=20)[-1] <= P95_BOUND
    )
    print(f"bounds {MEAN_BOUND} and {P95_BOUND}: {'held' if held else 'BROKEN'}")
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
