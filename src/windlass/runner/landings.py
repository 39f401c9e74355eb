"""The effects of a landing: looking at the base branch, merging with it, moving it."""

from collections.abc import Awaitable, Callable
from typing import Any

from windlass.errors import RepositoryError
from windlass.events import model as e
from windlass.ports import Authorship, Conflict
from windlass.runner.surroundings import Ports
from windlass.state import RunState


class Landings:
    """Carries the intents of a landing out."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.table: dict[type[e.Event], Callable[[Any, RunState], Awaitable[e.Event]]] = {
            e.BaseLookStarted: self._look,
            e.BaseMergeStarted: self._merge,
            e.BranchMoveStarted: self._move,
        }

    async def _look(self, intent: e.BaseLookStarted, _state: RunState) -> e.Event:
        seen = await self._ports.repository.look(intent.branch, intent.tip)
        return e.BaseSeen(
            at=self._ports.clock.now(),
            branch=intent.branch,
            commit=seen.commit,
            relation=seen.relation,
            rewound=seen.rewound,
        )

    async def _merge(self, intent: e.BaseMergeStarted, state: RunState) -> e.Event:
        author = Authorship(task="", title=self._ports.redact(state.plan.title), n=0, turn=0)
        made = await self._ports.repository.merge(author, intent.candidate, intent.tip, intent.base)
        now = self._ports.clock.now()
        if isinstance(made, Conflict):
            return e.BaseMergeConflicted(
                at=now, candidate=intent.candidate, files=made.files, detail=made.detail
            )
        return e.BaseMergeBuilt(
            at=now, candidate=intent.candidate, commit=made.commit, tree=made.tree
        )

    async def _move(self, intent: e.BranchMoveStarted, _state: RunState) -> e.Event:
        try:
            await self._ports.repository.move_branch(intent.branch, intent.old, intent.new)
        except RepositoryError as refusal:
            now = self._ports.clock.now()
            return e.LandRefused(at=now, branch=intent.branch, reason=str(refusal))
        return e.Landed(at=self._ports.clock.now(), branch=intent.branch, commit=intent.new)
