"""What it costs to look at every stage that is done, before the next begins.

A plan of four stages of fifteen tasks whose agents do nothing, on real git. In both runs each task
waits for all tasks of the stage before it, so that the order of work is the same; in one of them
the plan says that these are stages: then commits, files and syntax are looked at between them.
Turn about, so that a noisy machine is noisy for both, and judged by the CPU that Windlass and all
it starts take, which others on the machine hardly change; the clock is printed beside it. Agents
take no time here, so this is the worst there is: a stage of real work takes minutes, and looking at
it takes as long as it does here.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path, PurePath

import anyio
from msgspec.structs import replace

from surroundings import ENVIRONMENT
from windlass.app.wiring import Project, World, started
from windlass.core.events.model import Entry, VerificationFinished
from windlass.core.plan import Plan, Stage, Task
from windlass.core.settings import SandboxSettings, Settings
from windlass.core.state import RunState
from windlass.ports import Brief, Report, Watch
from windlass.testing.agents import approval

BOUND = 1.1
STAGES = 4


class DoNothing:
    """A Player that writes one file and a Coach that approves: what is left is Windlass itself."""

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:  # noqa: ARG002
        """Write a file of its own; as a Coach, approve."""
        if brief.role == "coach":
            return Report(answer=approval(brief))
        Path(workspace, f"{brief.task}.py").write_text(f"NAME = {brief.task!r}\n")
        return Report(summary="done")


def make_repository(root: Path, files: int) -> Path:
    repo = root / "repo"
    repo.mkdir()

    def git(*args: str) -> None:
        subprocess.run(["git", *args], cwd=repo, env=ENVIRONMENT, check=True)

    git("init", "-q", "-b", "main")
    for i in range(files):
        path = repo / f"src/part{i % 20}/file{i}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# file {i}\n" * 40)
    git("add", "-A")
    git("commit", "-q", "-m", "base")
    return repo


def plan_of(tasks: int, label: str, *, staged: bool) -> Plan:
    """Tasks that wait for all of the stage before them; the stages have names where asked for."""
    each = tasks // STAGES
    names = [[f"t{stage}-{i}" for i in range(each)] for stage in range(STAGES)]
    return Plan(
        id=f"bench-{label}",
        title="Bench",
        dialect="native",
        path="bench.md",
        tasks=tuple(
            Task(
                id=name,
                title=f"Task {name}",
                depends_on=tuple(names[stage - 1]) if stage else (),
                stage=str(stage) if staged else None,
                creates=(f"{name}.py",),
            )
            for stage in range(STAGES)
            for name in names[stage]
        ),
        stages=tuple(Stage(name=str(stage)) for stage in range(STAGES)) if staged else (),
    )


def cpu() -> float:
    """Seconds of CPU that this process and all that it has started and waited for have taken."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def run(repo: Path, plan: Plan, label: str) -> tuple[float, float]:
    """Seconds that the whole run takes: of CPU, and by the clock."""
    looks: list[VerificationFinished] = []

    def observe(entry: Entry, _state: RunState) -> None:
        event = entry.event
        looks.extend([event] if isinstance(event, VerificationFinished) and event.stage else [])

    settings = replace(Settings(), agents=4, sandbox=SandboxSettings(level="bwrap"))
    project = Project(repo, ENVIRONMENT)
    with project.journals.session(plan.id) as session:
        world = World(project, plan.id, label, settings, session, agent=DoNothing())
        first = started(label, plan, settings, project.git.base(None, plan.id), world.sandbox.level)
        begin, used = time.monotonic(), cpu()
        ended = anyio.run(
            lambda: world.run((first,), observe=observe, watch=lambda _activity: None)
        )
        spent = cpu() - used, time.monotonic() - begin
    assert len(ended.merged) == len(plan.tasks), ended.reason
    assert len(looks) == (STAGES if plan.stages else 0)
    assert not any(look.problems for look in looks)
    return spent


def main() -> int:
    parser = argparse.ArgumentParser(description="Verified stages against the same without")
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=1000)
    args = parser.parse_args()
    times: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="windlass-bench-") as root:
        repo = make_repository(Path(root), args.files)
        for i in range(args.rounds):
            for staged in (False, True) if i % 2 else (True, False):
                label = f"r{i}{'s' if staged else 'p'}"
                plan = plan_of(args.tasks, label, staged=staged)
                times[staged].append(run(repo, plan, label))
    ratios = [s[0] / p[0] for p, s in zip(times[False], times[True], strict=True)]
    ratio = statistics.median(ratios)
    print(f"{args.tasks} tasks in {STAGES} stages, {args.files} files, {args.rounds} rounds")
    print(f"{'':12}{'median':>12}{'best':>12}{'worst':>12}")
    rows = (("without", False, 0), ("verified", True, 0), ("clock", False, 1), ("clock", True, 1))
    for name, staged, which in rows:
        values = [spent[which] for spent in times[staged]]
        shown = (statistics.median(values), min(values), max(values))
        print(f"{name:12}" + "".join(f"{value:>10.2f} s" for value in shown))
    print(f"{'ratio':12}{ratio:>12.3f}{min(ratios):>12.3f}{max(ratios):>12.3f}")
    print(f"bound {BOUND}: {'held' if ratio <= BOUND else 'BROKEN'}")
    return int(ratio > BOUND)


if __name__ == "__main__":
    sys.exit(main())
