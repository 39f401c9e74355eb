"""A diamond of five tasks with reviews, against the same conversations started by bare threads.

The real Claude program talks to a scripted model. The floor starts one program per conversation, a
Player and then a Coach for each task, in a plain folder, as soon as the tasks before it are done,
at most three at once. It checks nothing, commits nothing, merges nothing and would lose everything
to a kill. Windlass does all of that; what it takes is the whole command, from the shell's prompt to
the next one. Both are measured turn about: once with a model that answers at once, which is the
hardest case, and once with one that takes a second for an answer.

Below, where the rest goes: times of the run's own journal, summed over the critical path, and how
long the process lives after its last fact.
"""

import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from windlass.adapters.agents.claude import find_program
from windlass.adapters.agents.claude.agent import FLAGS, VARIABLES
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.core.events import model as e
from windlass.core.events.review import PlayerAnswer, Review, schema
from windlass.testing.model import Answer, Block, Book, Call, Say, Script
from windlass.testing.stage import Stage, scripted_model

BOUND = 1.25
"""Windlass ÷ floor, with a model that answers at once."""
ENDS_WITHIN = 0.1
"""Seconds from the last fact to the end of the process."""
AGENTS = 3
ROUNDS = 5
DIAMOND: Mapping[str, tuple[str, ...]] = {
    "a": (), "b": ("a",), "c": ("a",), "d": ("a",), "e": ("b", "c", "d"),
}  # fmt: skip
MODEL = "claude-sonnet-4-5"
MARKS: Mapping[type[e.Event], str] = {
    e.PlayerStarted: "Player",
    e.PlayerFinished: "snapshot, check",
    e.CoachStarted: "Coach",
    e.CoachAnswered: "merge",
}
"""The facts that begin a part of a task, in their order."""

APPROVAL = Call(
    "StructuredOutput",
    {
        "decision": "approve",
        "summary": "It is there.",
        "test_results": {"passed": True},
        "evidence": [{"criterion": 1, "met": True, "evidence": "I looked."}],
        "feedback": "",
    },
)


DONE = Call("StructuredOutput", {"summary": "Done."})


def book(delay: float) -> Book:
    """What the model says to each Player and Coach; each answer takes so long."""

    def says(*blocks: Block) -> Script:
        return Script(tuple(Answer((block,), delay=delay) for block in blocks))

    def plays(task: str) -> Script:
        write = Call("Bash", {"command": f"echo {task} > {task}.txt", "description": "Write"})
        return says(write, DONE, Say("Done."))

    players = {f"Role: Player|Task: {task}\n": plays(task) for task in DIAMOND}
    coaches = {f"Role: Coach|Task: {task}\n": says(APPROVAL, Say("Done.")) for task in DIAMOND}
    return Book(scripts={**coaches, **players})


def plan() -> str:
    """The plan's text."""
    return "# Milestone: Diamond\n\n" + "\n".join(
        f"## Task {task}: Write {task}.txt\n\n**Depends on:** {', '.join(before) or 'none'}\n\n"
        f"**Acceptance Criteria:**\n- [ ] {task}.txt is there\n"
        for task, before in DIAMOND.items()
    )


FILES = {"README.md": "hello\n", "plan.md": plan(), "windlass.toml": 'checks = ["true"]\n'}


def converse(stage: Stage, program: Path, folder: Path, role: str, task: str) -> None:
    """One conversation, as a shell would start it."""
    answer = schema(Review if role == "Coach" else PlayerAnswer)
    flags = [*FLAGS, f"--model={MODEL}", f"--json-schema={json.dumps(answer)}"]
    prompt = {"role": "user", "content": f"Role: {role}\nTask: {task}\n"}
    environment = {
        **stage.environment,
        **VARIABLES,
        "HOME": str(folder.parent / f"{folder.name}-home"),
    }
    Path(environment["HOME"]).mkdir(exist_ok=True)
    subprocess.run(
        [program, *flags],
        input=json.dumps({"type": "user", "message": prompt}) + "\n",
        cwd=folder, env=environment, stdout=subprocess.DEVNULL, text=True, check=True,
    )  # fmt: skip


def floor(stage: Stage, program: Path) -> float:
    """Seconds for all conversations, in the order that the plan asks for."""
    folders = Path(tempfile.mkdtemp(dir=stage.root))
    begun = time.perf_counter()
    done: dict[str, Future[None]] = {}

    def work(task: str) -> None:
        for role in ("Player", "Coach"):
            folder = folders / f"{task}-{role}"
            shutil.copytree(stage.repo, folder, ignore=shutil.ignore_patterns(".git", ".windlass"))
            converse(stage, program, folder, role, task)
            if role == "Player":
                assert (folder / f"{task}.txt").exists(), task

    with ThreadPoolExecutor(AGENTS) as threads:
        waiting = dict(DIAMOND)
        while waiting:
            ready = [
                t for t, deps in waiting.items() if all(d in done and done[d].done() for d in deps)
            ]
            for task in ready:
                done[task] = threads.submit(work, task)
                del waiting[task]
            time.sleep(0.002)
    for each in done.values():
        each.result()
    return time.perf_counter() - begun


def windlass(stage: Stage, number: int) -> tuple[float, float, dict[str, float]]:
    """Seconds for the command, those after the last fact, and where the rest went."""
    begun = time.perf_counter()
    with stage.windlass(
        "run", "plan.md", "--agents", str(AGENTS), *(("--restart",) if number else ())
    ) as process:
        _, err = process.communicate()
    took, ended = time.perf_counter() - begun, time.time()  # noqa: TID251  beside the journal's
    assert process.returncode == 0, err
    with SqliteJournal.read_only(stage.repo / ".windlass/plans/plan/journal.db") as journal:
        facts = [entry.event for entry in journal.read()]
    begins = max(at for at, fact in enumerate(facts) if isinstance(fact, e.RunStarted))
    return took, ended - facts[-1].at.timestamp(), parts(facts[begins:], ended - took)


def parts(facts: Sequence[e.Event], began: float) -> dict[str, float]:
    """Seconds by what was under way on the way through a, the slowest of b, c, d, and e."""
    at = {(type(fact), getattr(fact, "task", "")): fact.at.timestamp() for fact in facts}
    slowest = max("bcd", key=lambda task: at[e.TaskMerged, task])
    spans = dict.fromkeys(("start", *MARKS.values()), 0.0)
    spans["start"] = at[e.PlayerStarted, "a"] - began
    for task in ("a", slowest, "e"):
        for (one, name), (two, _) in itertools.pairwise((*MARKS.items(), (e.TaskMerged, ""))):
            spans[name] += at[two, task] - at[one, task]
    return spans


def main() -> None:
    """Measure and show; a bound that is broken ends it with 1."""
    found = find_program()
    assert found is not None, "the agent's program is missing"
    print(f"a diamond of {len(DIAMOND)} tasks, {AGENTS} agents; medians of {ROUNDS} rounds\n")
    print(f"{'an answer takes':18}{'floor':>9}{'windlass':>10}{'ratio':>8}{'ends after':>14}")
    broken = False
    for delay in (0.0, 1.0):
        with (
            tempfile.TemporaryDirectory() as folder,
            scripted_model(book(delay), Path(folder, "log")) as url,
        ):
            stage = Stage(Path(folder), url)
            stage.build(FILES)
            floors: list[float] = []
            ours: list[float] = []
            ends: list[float] = []
            spent: list[dict[str, float]] = []
            for number in range(ROUNDS):
                floors.append(floor(stage, found.path))
                took, after, where = windlass(stage, number)
                ours.append(took)
                ends.append(after)
                spent.append(where)
        ratio = statistics.median(ours) / statistics.median(floors)
        end = statistics.median(ends)
        broken |= ratio > BOUND or end > ENDS_WITHIN
        print(
            f"{delay:16.0f} s{statistics.median(floors):8.2f}s{statistics.median(ours):9.2f}s"
            f"{ratio:8.2f}{end * 1000:11.0f} ms"
        )
        for name in spent[0]:
            print(f"{'':18}{name:18}{statistics.median(each[name] for each in spent):8.2f}s")
    print(f"\nbounds: {BOUND} and {ENDS_WITHIN * 1000:.0f} ms")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    main()
