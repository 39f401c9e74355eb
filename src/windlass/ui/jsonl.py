"""One JSON object per line on stdout, for programs: `init`, then every event, then `result`."""

from collections.abc import Mapping
from typing import TextIO

import msgspec

from windlass.events.model import Entry, RunResumed, RunStarted
from windlass.state import RunState
from windlass.views.cost import run_cost
from windlass.views.outcome import exit_code, run_status
from windlass.views.progress import progress

SCHEMA = 1


class JsonScreen:
    """Writes events as they become durable."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

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
            "total_cost_usd": cost.usd,
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
