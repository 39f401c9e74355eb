"""One JSON object per line on stdout, for programs: `init`, then every event, then `result`."""

from collections.abc import Mapping, Sequence
from typing import Self, TextIO

import msgspec

from windlass.app.screen import NoScreen, Screen
from windlass.core.events.model import Entry, RunResumed, RunStarted
from windlass.core.state import RunState
from windlass.ports import Activity
from windlass.views.cost import run_cost
from windlass.views.lines import Line
from windlass.views.outcome import exit_code, run_status
from windlass.views.progress import progress

SCHEMA = 1


class JsonScreen:
    """Writes events as they become durable; all else is for people, on a screen of theirs."""

    def __init__(self, stream: TextIO, people: Screen | None = None) -> None:
        self._stream = stream
        self._people = people or NoScreen()

    def remember(self, entry: Entry, state: RunState) -> None:
        """Programs are told what happens, not what happened."""

    def activity(self, activity: Activity) -> None:
        """What agents say is for people."""
        self._people.activity(activity)

    def say(self, word: str, text: str) -> None:
        """A warning is for people."""
        self._people.say(word, text)

    def closing(self, state: RunState, seq: int, lines: Sequence[Line]) -> None:
        """The last line, and the end of the story for people."""
        self.result(state, seq)
        self._people.closing(state, seq, lines)

    async def keep(self) -> None:
        """Let people see that time passes."""
        await self._people.keep()

    def __enter__(self) -> Self:
        """Begin."""
        self._people.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the people's screen as it was."""
        self._people.__exit__(*_)

    def entry(self, entry: Entry, state: RunState) -> None:
        """Tell the event; the first of a process is preceded by `init`."""
        event = entry.event
        if isinstance(event, RunStarted | RunResumed):
            self._write("init", entry.seq, event.at.isoformat(), state, {"plan": state.plan.id})
        fields = {k: v for k, v in msgspec.to_builtins(event).items() if k not in {"type", "at"}}
        self._write(type(event).__name__, entry.seq, event.at.isoformat(), state, fields)

    def result(self, state: RunState, seq: int) -> None:
        """The last line."""
        cost = run_cost(state)
        code = exit_code(state) if state.ended is not None else 1
        fields = {
            "status": run_status(state),
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
        self, kind: str, seq: int, ts: str, state: RunState, fields: Mapping[str, object]
    ) -> None:
        line = {"schema": SCHEMA, "seq": seq, "ts": ts, "type": kind, "run": state.run, **fields}
        self._stream.write(msgspec.json.encode(line).decode() + "\n")
        self._stream.flush()
