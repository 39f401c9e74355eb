"""Smoke gates of a feature: commands that must pass on the tip after a wave.

A gate that Windlass cannot keep as it is meant is noted, never dropped in silence.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from windlass.dialects.yaml_events import Data, Keys
from windlass.plan import Note

_READ = frozenset({"after_wave", "after_waves", "command", "expected_exit", "name", "description"})
_ZERO = re.compile(r"0+")


def gates(data: Keys, waves: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], list[Note]]:
    """The commands of each wave, and what is to be said of gates and their parts."""
    found: dict[str, list[str]] = defaultdict(list)
    notes: list[Note] = []
    line = data.lines.get("smoke_gates", 0)
    value = data.get("smoke_gates")
    for gate in value if isinstance(value, list) else [value] if value else []:
        if not isinstance(gate, Keys):
            notes.append(Note(line=line, text=f"the smoke gate {gate!r} has no 'command'"))
            continue
        command = gate.get("command")
        why = _why_not(gate)
        if why or not isinstance(command, str):
            notes.append(Note(line=gate.line, text=f"the smoke gate is not kept: {why}"))
            continue
        for wave in _after(gate, waves):
            if wave in waves:
                found[wave].append(command.strip())
            else:
                told = f"the smoke gate after wave {wave!r} is not kept: there is no such wave"
                notes.append(Note(line=gate.line, text=told))
        for key in (key for key in gate if key not in _READ):
            told = f"{key!r} of a smoke gate is not read; it is a check like any other"
            notes.append(Note(line=gate.lines[key], text=told))
    return {wave: tuple(dict.fromkeys(commands)) for wave, commands in found.items()}, notes


def _why_not(gate: Keys) -> str:
    command, wanted = gate.get("command"), gate.get("expected_exit")
    if not isinstance(command, str) or not command.strip():
        return "it has no command"
    if wanted is not None and not (isinstance(wanted, str) and _ZERO.fullmatch(wanted)):
        return f"it expects the exit code {wanted}, and a check passes with 0 only"
    if gate.get("after_wave", gate.get("after_waves")) is None:
        return "it does not say after which wave"
    return ""


def _after(gate: Keys, waves: Sequence[str]) -> Iterator[str]:
    said: Data = gate.get("after_wave", gate.get("after_waves"))
    if isinstance(said, str) and said.casefold() == "all":
        yield from waves or [said]
        return
    for each in said if isinstance(said, list) else [said]:
        yield each.strip() if isinstance(each, str) else "?"
