"""A world from a seed in which anything happens: to plans, agents, checks, people, money, time.

Random plans, Players, Coaches, providers and crashes; between processes and within them random
edits, words, settings, hands in workspaces, and a clock that jumps.
"""

from datetime import timedelta
from pathlib import PurePath
from random import Random

from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.review import PlayerAnswer, Review, TestResults
from windlass.core.events.values import Amount
from windlass.core.exchange import Message
from windlass.core.plan import Plan, Stage, Task, validated
from windlass.core.scheduler.people import spoken
from windlass.core.settings import E2ESettings, PolicySettings, Settings
from windlass.core.state import Phase
from windlass.core.state.budget import No
from windlass.ports import Ask, Brief, Report, Watch
from windlass.testing.agents import approval
from windlass.testing.memory import Files, MemoryAgent, MemoryChecks, MemoryInbox
from windlass.views.edits import edit_lines, edited
from windlass.views.outcome import is_finished
from worlds import World

IDS = ("a", "b", "c", "d")
FAILURES = (
    e.Failure.TRANSIENT,
    e.Failure.USAGE_LIMIT,
    e.Failure.STALLED,
    e.Failure.AUTH,
    e.Failure.CRASHED,
)
WORST = 0.004
"""What a request may cost at the most, in a world with a meter."""


def some_plan(dice: Random) -> Plan:
    """Some of the tasks, in some order, each in one of its meanings."""
    ids = dice.sample(IDS, dice.randint(1, len(IDS)))
    staged = dice.random() < 0.4
    names = sorted(dice.choice("12") for _ in ids) if staged else [None] * len(ids)
    tasks = tuple(
        Task(
            id=id_,
            title=id_,
            text=(text := dice.choice(("v1", "v1", "v2"))),
            checks=(f"{id_} is {text}",) if dice.random() < 0.3 else (),
            depends_on=tuple(dep for dep in ids[:i] if dice.random() < 0.4),
            complexity=9 if dice.random() < 0.1 else None,
            stage=names[i],
            creates=(id_, "odd")[: dice.choice((0, 0, 1, 1, 2))],
        )
        for i, id_ in enumerate(ids)
    )
    return validated(
        Plan(
            id="p",
            title="P",
            dialect=dice.choice(("milestone", "feature")),
            path="p.md",
            tasks=tasks,
            stages=tuple(Stage(name=name) for name in "12") if staged else (),
            checks=("more",) if dice.random() < 0.1 else (),
            e2e=dice.choice((None, "try it", "try it", "try it well")),
        )
    )


def some_settings(dice: Random) -> Settings:
    return Settings(
        checks=("test",) if dice.random() < 0.9 else ("test", "another"),
        agents=dice.choice((1, 2, 3)),
        max_turns=dice.choice((1, 2, 5)),
        max_cost=dice.choice((0.02, 0.1, 20.0, 20.0)),
        max_tokens=dice.choice((None, None, 50)),
        e2e=E2ESettings(run=dice.random() < 0.6),
        batch=dice.choice((1, 2, 8)),
        land=dice.random() < 0.3,
        policy=PolicySettings(
            checkpoint=dice.choice(("ask", "pass")),
            on_failure=dice.choice(("dialect", "block", "stop")),
            stage=dice.choice(("ask", "go", "retry", "stop")),
            flaky=dice.choice(("name", "ask")),
        ),
    )


def holds(command: str, files: Files) -> bool | None:
    """What a check says: of a task's own, that its file has that meaning."""
    if command == "another" and "shared" in files:
        return None
    if " is " in command:
        id_, _, text = command.partition(" is ")
        return text in files.get(id_, "")
    return not any(bad in text for text in files.values() for bad in ("RED", "<<<"))


class Mischief(MemoryInbox):
    """Somebody who says anything to a live run at any moment."""

    def __init__(self, dice: Random) -> None:
        super().__init__()
        self.dice = dice
        self.patience = 4

    def take(self):
        if self.patience and self.dice.random() < 0.02:
            self.patience -= 1
            rest = Message(command=self.dice.choice(("stop", "pause", "pause_now", "abort")))
            self.messages.append(rest if self.dice.random() < 0.1 else some_word(self.dice))
        return super().take()


def some_word(dice: Random) -> Message:
    said = ("retry", "approve", "answer", "reset", "take", "give", "give", "nonsense")
    text = dice.choice(("as you like", "undo"))
    return Message(command=dice.choice(said), task=dice.choice((*IDS, "e2e", "1", "2")), text=text)


def seen(files: Files) -> str:
    """What somebody saw, so that they can say so and be held to it."""
    return repr(sorted(files.items()))


class Witnesses(MemoryChecks):
    """Checks that say what they were run on."""

    def _result(self, command: str, commit: str) -> e.CheckResult:
        files = self.repository.files(commit)
        return replace(super()._result(command, commit), output=seen(files))


class MeteredAgent(MemoryAgent):
    """An agent each of whose requests is reserved, billed by a provider, and settled."""

    def __init__(self, of: MemoryAgent, anything: "Anything") -> None:
        super().__init__(of.repository, of.plays, coach=of.coach)
        self.anything = anything
        self.billed: dict[str, float] = {}
        """What the provider asks for each request that it answered."""

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        dice, runner = self.anything.dice, self.anything.world.runner
        for _ in range(dice.randint(1, 3)):
            most, least = Amount(usd=WORST, tokens=9), Amount(usd=WORST / 4, tokens=9)
            ask = Ask(task=brief.task, role=brief.role, model=brief.model, most=most, least=least)
            held = runner.reserve(ask)
            if isinstance(held, No):
                return Report(failure=e.Failure.BUDGET, message="the budget is used up")
            name, usd = held.id, dice.uniform(0, held.granted.usd)
            self.billed[name] = usd
            if dice.random() < 0.1:
                runner.stream(name, e.Usage(cost_usd=usd / 2, input_tokens=3, known=False))
            self.points.reach("agent:answered")
            luck = dice.random()
            if luck < 0.9:
                runner.settle(name, e.Usage(cost_usd=usd, input_tokens=7))
            elif luck < 0.95:
                runner.settle(name, e.Usage(cost_usd=usd / 3, known=False), broke_off=True)
            # else no one ever says what it came to
        # Its own account counts nothing where there is a meter.
        return replace(await super().work(brief, workspace, watch), usage=e.Usage())


class Anything:
    """A world in which anything happens, and the same again for the same seed."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = Random(seed)  # noqa: S311  nothing is secret about it
        self.world = World(
            some_plan(dice),
            {id_: self.player(id_) for id_ in (*IDS, "e2e")},
            rule=self.says,
            settings=some_settings(dice),
            inbox=Mischief(dice),
            coach=self.coach,
        )
        self.world.checks = Witnesses(self.world.repository, self.says)
        self.billed: dict[str, float] | None = None
        if dice.random() < 0.4:
            self.world.agent = MeteredAgent(self.world.agent, self)
            self.world.metered = True
            self.billed = self.world.agent.billed
        self.mains: list[str] = []
        """Where the user had their branch, besides where it landed."""

    def says(self, command: str, files: Files) -> bool | None:
        """What a check says: the truth, but for now and then a failure that is none."""
        return False if self.dice.random() < 0.02 else holds(command, files)

    def spec(self, id_: str) -> Task:
        return self.world.runner.state.specs[id_]

    def player(self, id_: str):
        def play(n: int, _turn: int, files: dict[str, str]) -> Report | None:
            luck = self.dice.random()
            self.world.clock.time += timedelta(seconds=self.dice.choice((0, 1, 3000)))
            if luck < 0.08:
                return None  # it lies: it has done nothing
            files[id_] = f"{self.spec(id_).text} {n}"
            if luck < 0.16:
                failure, later = (
                    self.dice.choice(FAILURES),
                    timedelta(hours=self.dice.randint(-1, 9)),
                )
                return Report(
                    failure=failure,
                    message="no",
                    usage=e.Usage(cost_usd=0.002),
                    retry_at=self.dice.choice((None, self.world.clock.time + later)),
                )
            if luck < 0.2:
                asks = PlayerAnswer(summary="", question="which?")
                return Report(answer=asks, usage=e.Usage(cost_usd=0.002, input_tokens=3))
            if luck < 0.3:
                files[id_] = "RED"
            elif luck < 0.5:
                files["shared"] = id_
            return None

        return play

    def coach(self, id_: str, _turn: int, files: dict[str, str]) -> Review | Report:
        luck = self.dice.random()
        if luck < 0.05:
            return Report(failure=self.dice.choice(FAILURES), message="no")
        if luck < 0.1:
            return Report(message="nothing by schema", usage=e.Usage(cost_usd=0.001))
        said = approval(Brief(task=id_, n=1, role="coach", prompt="", model="", criteria=("x",)))
        # A verdict says what it was given for and on what, so that one for another is seen.
        shown = tuple(replace(each, evidence=seen(files)) for each in said.evidence)
        said = replace(said, summary=self.spec(id_).text, evidence=shown)
        if luck < 0.25:
            return replace(said, decision="feedback", test_results=TestResults(passed=False))
        return replace(said, question="which?") if luck < 0.3 else said

    def between(self) -> None:
        """What people say while nothing runs, as `windlass retry` and its like record it."""
        for _ in range(self.dice.randint(0, 3)):
            world = self.world
            self.said(*spoken(some_word(self.dice), world.state, world.clock.now()))
        self.about_stale()

    def said(self, *facts: e.Event) -> None:
        if facts:
            self.world.journal.append(facts, expected=len(self.world.events))

    def about_stale(self) -> None:
        """The plan is edited at rest, as `windlass approve` finds it; what is stale is cured."""
        world, dice = self.world, self.dice
        plan = some_plan(dice) if dice.random() < 0.1 else None
        if plan is not None and not world.state.given_up and edited(world.state, plan):
            at = world.clock.now()
            edit = e.PlanRevised(at=at, plan=plan)
            rest = e.RunEnded(at=at, status=e.RunEnd.STOPPED, reason="for windlass approve")
            over = world.first(world.state, world.state.settings)
            self.said(*((edit,) if is_finished(world.state) else (over, edit, rest)))
        for id_ in world.state.stale:
            word = dice.choice(("approve", "approve", "retry", ""))
            if word:
                message = Message(command=word, task=id_)
                self.said(*spoken(message, world.state, world.clock.now()))

    def by_hand(self) -> None:
        """Whoever took a task works on it, or not; the user has a branch of their own."""
        world = self.world
        for task in world.state.tasks.values():
            files = world.repository.workspaces.get(task.id)
            if task.phase is Phase.TAKEN and files is not None and self.dice.random() < 0.7:
                files[task.id] = f"{world.state.specs[task.id].text} by hand"
                if self.dice.random() < 0.5:
                    prepared = (task.last.n, task.last.start, task.last.onto)
                    world.repository.prepared[task.id] = prepared
        if self.dice.random() < 0.2:
            main = world.repository.branches["main"]
            files = {**world.repository.files(main), "mine": str(self.dice.random())}
            mine = world.repository._commit(files, (main,), "mine")
            world.repository.branches["main"] = mine
            self.mains.append(mine)
        if self.dice.random() < 0.1:
            world.repository.workspaces.pop(self.dice.choice(IDS), None)
        world.clock.time += timedelta(days=self.dice.choice((0, 0, 0, 3, -2)))

    def process(self) -> None:
        world, dice = self.world, self.dice
        if world.events:
            self.by_hand()
        now = some_settings(dice) if dice.random() < 0.5 else world.settings
        crash = dice.randint(1, 90) if dice.random() < 0.6 else None
        plan = some_plan(dice) if world.events and dice.random() < 0.5 else None
        if plan is not None:
            edit_lines(world.state, plan)
            plan = plan if edited(world.state, plan) else None
        world.go(crash_at=crash, settings=now, revised=plan)
        assert crash is not None or world.state.ended is not None

    def go(self) -> None:
        for _ in range(self.dice.randint(2, 7)):
            if self.world.events:
                self.between()
                if is_finished(self.world.state):
                    break
            self.process()
        if not self.world.events or self.world.state.ended is None:
            self.world.go()
        if is_finished(self.world.state):
            self.once_more()

    def once_more(self) -> None:
        """Somebody resumes a run that is over, and has edited the plan and the settings, too."""
        recorded = list(self.world.journal.storage)
        self.world.go(settings=some_settings(self.dice), revised=some_plan(self.dice))
        assert self.world.journal.storage == recorded, "what is over is not taken up again"
