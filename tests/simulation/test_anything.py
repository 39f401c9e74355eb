"""Whatever people and agents do, in any order, over any number of processes: nothing done is false.

What must hold is looked at after every fact, as it is recorded. A seed that fails fails again:
`Anything(seed)`.
"""  # B4 B7 K11

import pytest

from simulation.anything import Anything
from simulation.auditor import Auditor
from windlass.runner import loop

CHUNK = 25


@pytest.fixture(autouse=True)
def always_listening(monkeypatch):
    """In memory a run is over before anybody could look twice."""
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)


def whatever_happens(seeds: range) -> None:
    for seed in seeds:
        anything = Anything(seed)
        auditor = Auditor(anything)
        try:
            anything.go()
            auditor.audit()
        except BaseException as fault:
            fault.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("first", range(0, 500, CHUNK))
def test_nothing_done_is_false_whatever_happens(first: int):
    whatever_happens(range(first, first + CHUNK))


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(500, 10_500, CHUNK))
def test_nothing_done_is_false_in_ten_thousand_worlds(first: int):
    whatever_happens(range(first, first + CHUNK))
