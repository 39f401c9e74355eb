"""Writes the golden journals of the schema that is current: `python tests/replay/make_golden.py`.

Law: what is there is never written again, for what was written by a released Windlass must be
readable for as long as there are journals. Only what no golden journal of this schema holds yet is
written beside it, until there is a fact of every kind, or the maker fails. The facts of
the smallest are kept in a journal's own file, too.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from replay.stories import STORIES
from simulation.anything import Anything
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.core.events import codec
from windlass.core.events import model as e
from windlass.core.secrets import Redactor
from windlass.core.state import RunState, fold
from windlass.runner import loop
from windlass.views.progress import progress

HERE = Path(__file__).parent / "golden"
KINDS: frozenset[type[e.Event]] = frozenset(get_args(e.Event))
SEEDS = range(400)


def told(state: RunState | None, seq: int) -> bytes:
    """What a journal amounts to, as others read it."""
    assert state is not None
    return msgspec.json.format(msgspec.json.encode(progress(state, seq)), indent=1)


def read(journal: Path) -> list[e.Event]:
    """The facts of a golden journal."""
    return [codec.decode(line) for line in journal.read_bytes().splitlines()]


def of_schema(folder: Path, schema: int) -> list[Path]:
    """The golden journals of one schema, in order."""
    return sorted(folder.glob(f"schema-{schema}-*.jsonl"))


def kinds(records: Iterable[bytes]) -> set[type[e.Event]]:
    """What there is a fact of."""
    return {type(codec.decode(record)) for record in records}


def make(folder: Path) -> int:
    """Write what is missing there; returns how many journals that took."""
    there = of_schema(folder, codec.SCHEMA)
    missing = set(KINDS).difference(*(map(type, read(path)) for path in there))
    number = first = max((int(path.stem.split("-")[-1]) for path in there), default=0)
    for records in _journals(missing):
        if held := missing & kinds(records):
            missing -= held
            number += 1
            _write(folder / f"schema-{codec.SCHEMA}-{number:02d}", records)
    if missing:
        names = ", ".join(sorted(kind.__name__ for kind in missing))
        sys.exit(f"nothing leads to {names}: tell a story of it in tests/replay/stories.py")
    if not list(folder.glob(f"schema-{codec.SCHEMA}-*.db")):
        small = min(of_schema(folder, codec.SCHEMA), key=lambda path: path.stat().st_size)
        with SqliteJournal.open(small.with_suffix(".db"), Redactor({})) as journal:
            journal.append(read(small), expected=0)
    return number - first


def _journals(missing: set[type[e.Event]]) -> Iterator[list[bytes]]:
    """Stories told for what is missing, then whatever happens, for as long as something is."""
    for story, shows in STORIES.items():
        if missing & set(shows):
            with TemporaryDirectory() as folder:
                records = story(Path(folder))
            assert kinds(records) >= set(shows), f"{story.__name__} is told for more than it shows"
            yield records
    for seed in SEEDS:
        if not missing:
            return
        anything = Anything(seed)
        anything.go()
        yield anything.world.journal.storage


def _write(name: Path, records: list[bytes]) -> None:
    """The records of a journal, and what they amount to."""
    name.with_suffix(".jsonl").write_bytes(b"".join(record + b"\n" for record in records))
    state = fold(codec.decode(record) for record in records)
    name.with_suffix(".json").write_bytes(told(state, len(records)) + b"\n")


if __name__ == "__main__":
    loop.INBOX_SECONDS = 0
    sys.stdout.write(f"{make(HERE)} journals written\n")
