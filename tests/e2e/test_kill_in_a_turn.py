"""Killed between any two steps of a turn: at most the running one is repeated, and paid for."""

import itertools
import json
import signal
import time
from collections import Counter

import pytest
from msgspec.structs import replace

import plans
from money import billed, charge
from windlass.core.events import model as e
from windlass.testing.model.script import Book, Hang, Script, Tokens
from windlass.testing.sample import playing, reviewing, write

pytestmark = pytest.mark.e2e

STEPS = (
    "RunStarted BaselineStarted",
    "BaselineFinished PlayerStarted",
    *("SpendReserved", "SpendSettled") * 2,
    "PlayerFinished SnapshotStarted",
    "SnapshotTaken ChecksStarted",
    "ChecksFinished CoachStarted",
    *("SpendReserved", "SpendSettled"),
    "CoachAnswered TurnReturned PlayerStarted",
    *("SpendReserved", "SpendSettled") * 2,
    "PlayerFinished SnapshotStarted",
    "SnapshotTaken ChecksStarted",
    "ChecksFinished CoachStarted",
    *("SpendReserved", "SpendSettled"),
    "CoachAnswered TaskApproved MergeStarted",
    "MergeBuilt TipMoveStarted",
    "TaskMerged RunEnded",
)
"""The whole journal of the run; what stands on a line becomes durable together."""
FACTS = " ".join(STEPS).split()
ENDS = list(itertools.accumulate(len(step.split()) for step in STEPS))
"""How many facts the journal has after each step: it can have no other number of them."""
_COACH = STEPS.index("ChecksFinished CoachStarted")
SAMPLE = {
    ENDS[at]
    for at, step in enumerate(STEPS)
    if at == STEPS.index(step) and ("Started" in step or "Merged" in step) and at != 0
} | {ENDS[_COACH + 1]}
"""One step of each kind that begins an effect, and money of the Coach's; a sweep has them all."""

PLAYER, COACH = "Role: Player|Task: a\n|Turn: {}\n", "Role: Coach|Task: a\n|Turn: {}\n"
AGENTS = [role.format(turn) for turn in (1, 2) for role in (PLAYER, COACH)]
"""The conversations of the run, in order, by the keys of their scripts."""
INTERRUPTED = ["SnapshotStarted", "SnapshotTaken"]
"""What a Player left is kept, before the next one starts from it."""
ANSWERED = {"PlayerFinished", "CoachAnswered"}
MUST_FIX = {"severity": "must_fix", "category": "bug", "description": "it loses a line"}


def book() -> Book:
    scripts = (
        playing(write("a.txt", "by a\n"), summary="Wrote a.txt."),
        reviewing(decision="feedback", issues=[MUST_FIX], feedback="keep every line"),
        playing(write("a.txt", "by a, all of it\n"), summary="Mended."),
        reviewing(),
    )
    price = itertools.count(1)
    return Book(
        scripts={
            key: Script(tuple(_priced(step, next(price)) for step in script.steps))
            for key, script in zip(AGENTS, scripts, strict=True)
        }
    )


def _priced(step, number: int):
    """Each answer has a price of its own, or one could stand for another in the bill."""
    # It takes its time, so that a request can be in flight when the process is killed.
    return replace(step, delay=0.1, usage=Tokens(input_tokens=1000 * number, output_tokens=number))


@pytest.fixture
def play(stage):
    return stage(plans.files({"a": ()}, state_file=True), book())


def names(facts: list[e.Event]) -> list[str]:
    return [type(fact).__name__ for fact in facts]


def money(facts: list[e.Event]) -> tuple[dict[str, float], dict[str, float]]:
    """What was reserved and what was settled, by reservation, in order."""
    reserved = {fact.id: fact.usd for fact in facts if isinstance(fact, e.SpendReserved)}
    settled = {fact.id: fact.usage.cost_usd for fact in facts if isinstance(fact, e.SpendSettled)}
    return reserved, settled


def test_uninterrupted(play):
    """The list that the others go by is the run's; each number is exact where nothing happens."""
    code, _, err = play.run("run", "plan.md")
    assert code == 0, err
    assert names(play.journal()) == FACTS
    assert [seen.key for seen in play.seen if seen.step == 0] == AGENTS
    assert _is_whole(play) == pytest.approx(billed(play.seen), abs=1e-6)


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(n, id=f"{n}-{name}", marks=[] if n in SAMPLE else [pytest.mark.sweep])
        for n, name in enumerate(FACTS, start=1)
    ],
)
def test_killed_after_a_fact(play, facts):  # G10 K3 B4 B6
    """SIGKILL to the whole group as soon as a fact is told, which is while the next step runs."""
    assert play.killed_after(facts, "run", "plan.md") == -signal.SIGKILL
    assert len(play.journal()) >= facts, "what was told is durable"
    _resumes_where_it_was(play)


@pytest.mark.parametrize(
    ("intent", "made"),
    [
        pytest.param("PlayerStarted", "windlass/plan/*/task/a/1/start", id="start"),
        pytest.param("SnapshotStarted", "windlass/plan/*/task/a/1/snapshot", id="snapshot"),
        pytest.param("CoachStarted", "windlass/plan/*/task/a/1/verdict-1", id="verdict"),
        pytest.param("MergeStarted", "windlass/plan/*/candidate/1", id="candidate"),
        pytest.param("TipMoveStarted", "heads/windlass/plan/integration", id="integration"),
    ],
)
def test_killed_between_an_effect_and_its_fact(play, intent, made):  # B4 B6
    """What was made is in git and not in the journal: it is found, and nobody is paid again."""
    facts = FACTS.index(intent) + 1
    if intent == "CoachStarted":
        facts += 2  # its money must be recorded, or it gets no answer
    shown = lambda: any((play.repo / ".git/refs").glob(made))  # noqa: E731
    assert play.killed_unrecorded(facts, shown, "run", "plan.md") == -signal.SIGKILL
    _resumes_where_it_was(play)


@pytest.mark.parametrize("agent", AGENTS[:2], ids=["player", "coach"])
def test_killed_in_the_middle_of_an_answer(play, agent):  # B6
    """The provider charges for all of what it began to say; the estimate covers that."""
    whole = book()
    play.replace_book(Book(scripts={**whole.scripts, agent: Script((Hang("middle"),))}))
    facts = FACTS.index("PlayerStarted" if agent == AGENTS[0] else "CoachStarted") + 2
    begun = lambda: any(seen.key == agent and seen.usage for seen in play.asked())  # noqa: E731
    assert play.killed_unrecorded(facts, begun, "run", "plan.md") == -signal.SIGKILL
    play.replace_book(whole)
    reserved, settled = money(play.journal())
    assert len(reserved) == len(settled) + 1, "it is in flight"
    _resumes_where_it_was(play)


def _resumes_where_it_was(play) -> None:
    assert play.none_left(), "what a killed run started dies with it"
    before = play.journal()
    told = names(before)
    assert told == FACTS[: len(told)]
    assert len(told) in ENDS, "a step is durable as a whole"
    adopted = _pinned_verdicts(play) > told.count("CoachAnswered")
    resumed_at = time.monotonic()
    code, _, err = play.run("resume", "plan.md")
    if told[-1] == "RunEnded" and code == 2:
        assert "nothing to resume" in err, "the files told of the end as well before the kill"
    else:
        assert code == 0, err
    assert "not known" not in err, "the meter knows what a killed agent had spent"
    assert names(play.journal()) == [*told, *_to_come(told, adopted=adopted)]
    _pays_agents_once(play, told, resumed_at, adopted=adopted)
    _counts_every_cent(play, before, resumed_at, total=_is_whole(play))


def _pinned_verdicts(play) -> int:
    return len(play.git("for-each-ref", "refs/windlass/plan/*/task/a/*/verdict-*").splitlines())


def _to_come(told: list[str], *, adopted: bool) -> list[str]:
    """What follows in the journal: the running step from its intent, then what never was."""
    if told[-1] == "RunEnded":
        return []
    intent = max(at for at, name in enumerate(told) if name.endswith("Started"))
    if adopted:
        # The Coach's answer was pinned and only had to be recorded: nobody is asked again.
        return ["RunResumed", FACTS[intent], *FACTS[FACTS.index("CoachAnswered", intent) :]]
    kept = INTERRUPTED if FACTS[intent] == "PlayerStarted" else []
    return ["RunResumed", *kept, *FACTS[intent:]]


def _is_whole(play) -> float:
    """The work is there as asked for, once, and nothing else has changed; gives what it cost."""
    assert play.merges() == ["a"]
    base = play.git("ls-tree", "-r", "--name-only", "main").split()
    made = play.git("ls-tree", "-r", "--name-only", "windlass/plan/integration").split()
    assert made == sorted([*base, "a.txt"])
    assert play.git("show", "windlass/plan/integration:a.txt") == "by a, all of it\n"
    assert play.git("diff", "--name-only", "main", "windlass/plan/integration") == "a.txt\n"
    # What was written and not pinned before the kill is written again; the first is git's to prune.
    assert play.git("fsck", "--connectivity-only", "--no-dangling") == ""
    status = json.loads(play.run("status", "plan", "--json")[1])
    assert (status["status"], status["tasks"]["a"]["turns"]) == ("completed", 2)
    shown = json.loads((play.repo / "state/plan_state.json").read_text())
    assert shown["completed_tasks"] == ["a"]
    assert not (play.repo / ".windlass/plans/plan/workspaces/a").exists(), "it is not needed"
    assert play.none_left()
    return status["metrics"]["cost_usd"]


def _pays_agents_once(play, told: list[str], resumed_at: float, *, adopted: bool) -> None:
    """As the model saw it: who had answered is not asked again, who had not is, once."""
    begun = [seen for seen in play.seen if seen.step == 0]
    first = Counter(seen.key for seen in begun if seen.at < resumed_at)
    second = Counter(seen.key for seen in begun if seen.at >= resumed_at)
    answered = sum(name in ANSWERED for name in told) + adopted
    assert second == Counter(AGENTS[answered:])
    running = Counter(AGENTS[answered : answered + 1])
    assert first - Counter(AGENTS[:answered]) <= running
    assert first + second - Counter(AGENTS) <= running, "at most the running one, at most once more"


def _counts_every_cent(play, before: list[e.Event], resumed_at: float, total: float) -> None:
    """The total is what the provider charged, and an estimate of what was in flight."""
    reserved, settled = money(play.journal())
    earlier, paid = money(before)
    in_flight = {name: usd for name, usd in earlier.items() if name not in paid}
    assert in_flight.keys() == reserved.keys() - settled.keys(), "all the others are settled"
    assert len(in_flight) <= 1
    # One agent at a time, so requests reach the provider in the order of their reservations.
    first = [charge(seen) for seen in play.seen if seen.at < resumed_at]
    second = [charge(seen) for seen in play.seen if seen.at >= resumed_at]
    ended, cut = first[: len(paid)], first[len(paid) :]
    assert [*ended, *second] == pytest.approx(list(settled.values()), abs=1e-9)
    assert len(cut) <= len(in_flight)
    assert sum(cut) <= sum(in_flight.values()), "a reservation is never less than the charge"
    known = sorted(paid.values())
    likely = known[-1 - len(known) * 5 // 100] if known else float("inf")
    estimated = sum(min(most, likely) for most in in_flight.values())
    assert total == pytest.approx(sum(ended) + sum(second) + estimated, abs=1e-6)
    assert total >= billed(play.seen) - 1e-6
