"""One JSON object per line on stdout, for programs: `init`, then every event, then `result`.

If the command fails, a line `error` comes before `result`.
"""

from collections.abc import Mapping, Sequence
from typing import Self, TextIO

import msgspec

from windlass.app.screen import NoScreen, Screen
from windlass.app.wiring import now
from windlass.core.events.model import Entry, RunResumed, RunStarted
from windlass.core.state import RunState
from windlass.ports import Activity
from windlass.views.cost import run_cost
from windlass.views.lines import Line
from windlass.views.outcome import Exit, exit_code, run_status
from windlass.views.problems import Problem
from windlass.views.progress import progress

SCHEMA = 1

_COSTS = (
    "total_cost_usd",
    "spent_usd",
    "estimated_usd",
    "reserved_usd",
    "reserved_most_usd",
)


class JsonScreen:
    """Writes events as they become durable; `people` shows everything else."""

    def __init__(self, stream: TextIO, people: Screen | None = None) -> None:
        self._stream = stream
        self._people = people or NoScreen()
        self._last: tuple[RunState, int] | None = None
        self._is_over = False

    def remember(self, entry: Entry, state: RunState) -> None:
        """Earlier events are not repeated."""

    def activity(self, activity: Activity) -> None:
        self._people.activity(activity)

    def say(self, word: str, text: str) -> None:
        self._people.say(word, text)

    def closing(self, state: RunState, seq: int, lines: Sequence[Line]) -> None:
        self.result(state, seq)
        self._people.closing(state, seq, lines)

    async def keep(self) -> None:
        await self._people.keep()

    def __enter__(self) -> Self:
        self._people.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._people.__exit__(*_)

    def entry(self, entry: Entry, state: RunState) -> None:
        """Write the event; `init` precedes the first of a process."""
        event = entry.event
        self._last = (state, entry.seq)
        if isinstance(event, RunStarted | RunResumed):
            self._write("init", entry.seq, event.at.isoformat(), state, {"plan": state.plan.id})
        fields = {k: v for k, v in msgspec.to_builtins(event).items() if k not in {"type", "at"}}
        self._write(type(event).__name__, entry.seq, event.at.isoformat(), state, fields)

    def failed(self, problem: Problem) -> None:
        """Write an error, and end the stream if it is not over."""
        state, seq = self._last or (None, 0)
        self._write("error", seq, now().isoformat(), state, {"error": problem})
        if self._is_over:
            return
        if state is not None:
            self.result(state, seq, "interrupted", problem.exit)
            return
        nothing = dict.fromkeys((*_COSTS, "num_turns"), 0)
        end = {"status": "not_started", **nothing, "is_error": True, "exit_code": problem.exit}
        self._write("result", 0, now().isoformat(), None, end)

    def result(
        self, state: RunState, seq: int, status: str | None = None, code: int | None = None
    ) -> None:
        """End the stream; of a run that an error cut short, with this status and exit code."""
        self._is_over = True
        cost = run_cost(state)
        if code is None:
            code = exit_code(state) if state.ended is not None else Exit.FAILED
        fields = {
            "status": status or run_status(state),
            "total_cost_usd": cost.cost_usd,
            "spent_usd": cost.spent_usd,
            "estimated_usd": cost.estimated_usd,
            "reserved_usd": cost.reserved_usd,
            "reserved_most_usd": cost.reserved_most_usd,
            "num_turns": progress(state, seq).metrics.turns,
            "is_error": code != 0,
            "exit_code": code,
        }
        self._write("result", seq, state.at.isoformat(), state, fields)

    def _write(
        self, kind: str, seq: int, ts: str, state: RunState | None, fields: Mapping[str, object]
    ) -> None:
        run = state.run if state is not None else ""
        line = {"schema": SCHEMA, "seq": seq, "ts": ts, "type": kind, "run": run, **fields}
        self._stream.write(msgspec.json.encode(line).decode() + "\n")
        self._stream.flush()
