"""A world in which anything happens, and whose journal is now and then lost as well."""

from memory_recovery import recover
from simulation.anything import Anything
from simulation.auditor import Auditor
from windlass.core.events import model as e
from windlass.core.plan import compare
from windlass.core.state import Phase, RunState


class Forgetful(Anything):
    """Between processes the journal is lost, and restored from its mirror in git."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.billed = None  # what was spent before is not known any more, and said so

    def process(self) -> None:
        super().process()
        world = self.world
        if world.events and self.dice.random() < 0.5:
            moved = (event for event in world.events if isinstance(event, e.BranchMoveStarted))
            self.mains += [event.new for event in moved]
            # What was recorded in its last instant a process may have had no time to mirror.
            mirrored = world.repository.mirror.stored == world.journal.storage
            self.lose(whole=mirrored)

    def lose(self, *, whole: bool) -> None:
        world = self.world
        before = world.state
        recover(world)
        after = world.state
        announced = {task.candidate_commit for task in after.all_tasks if task.moving_as}
        assert world.repository.tip in {after.tip, *announced}
        assert before.tip in world.repository.ancestry(world.repository.tip)
        # What an edit took away while the tip was on its way to it may be in the tip, or not.
        sure = whole and not any(task.moving_as for task in before.all_tasks)
        assert not sure or not compare(before.plan, after.plan), "the plan is what it was"
        for task in before.all_tasks:
            known = after.tasks.get(task.id) or after.withdrawn.get(task.id)
            numbers = len(known.attempts) if known is not None else 0
            assert numbers >= self._pinned(task.id), "no number is used twice"
            if task.phase is Phase.MERGED and task.candidate:
                assert known is not None
                merged = {known.merge_commit, known.candidate_commit if known.moving_as else None}
                assert task.merge_commit in merged or task.merge_before

    def _pinned(self, id_: str) -> int:
        names = (name.split("/") for name in self.world.repository.pins)
        return max((int(name[2]) for name in names if name[:2] == ["task", id_]), default=0)


class Historian(Auditor):
    """An auditor who knows that of what git tells nobody knows the settings of the day."""

    def begin(self) -> None:
        super().begin()
        self.journal = self.world.journal
        events = self.world.events
        self.left = sum(isinstance(event, e.RunRecovered) for event in events)
        """How often it will be said that what came before was read in git."""

    def catch_up(self, until: int) -> None:
        if self.world.journal is not self.journal:
            self.begin()  # it is another, and tells all anew
        super().catch_up(until)

    def always(self, event: e.Event, state: RunState) -> None:
        super().always(event, state)
        self.left -= isinstance(event, e.RunRecovered)

    def approved(self, event: e.TaskApproved, state: RunState) -> None:
        if not self.left:
            super().approved(event, state)
        self.approvals[event.task] = event.commit
        self.approved_ever.add(event.commit)
        last = state.tasks[event.task].last
        assert last.coachings[-1].commit == event.commit == last.commit

    def abandoned(self, event: e.TaskAbandoned, state: RunState) -> None:
        if not self.left:  # else some of its turns may have left nothing in git
            super().abandoned(event, state)

    def moving(self, event: e.TipMoveStarted, before: RunState) -> None:
        if not self.left:  # else git has it, and nobody knows what the checks had said
            super().moving(event, before)

    def afterwards(self, state: RunState) -> None:
        super().afterwards(state)
        calls = self.world.agent.calls
        assert len(calls) == len(set(calls)), "no number is used twice"
