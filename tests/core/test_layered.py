"""Layered mappings read as the dicts they stand for, and are never changed."""

from hypothesis import given
from hypothesis import strategies as st

from windlass.core.state.layered import having

CHANGES = st.lists(st.tuples(st.integers(0, 60), st.integers()), max_size=200)


@given(st.dictionaries(st.integers(0, 60), st.integers()), CHANGES)
def test_a_layered_mapping_reads_as_the_dict_of_the_same_changes(
    start: dict[int, int], changes: list[tuple[int, int]]
):
    plain, layered = dict(start), having(start, 0, start.get(0, 7))
    plain.setdefault(0, 7)
    for key, value in changes:
        before, was = layered, list(layered.items())
        plain[key] = value
        layered = having(layered, key, value)
        assert list(before.items()) == was
        assert list(layered) == list(plain)
        assert list(layered.items()) == list(plain.items())
        assert list(layered.values()) == list(plain.values())
        assert len(layered) == len(plain)
        assert layered == plain
        assert repr(layered) == repr(plain)
        assert all(layered[each] == plain[each] for each in plain)
        assert all((each in layered) == (each in plain) for each in range(61))
        assert layered.get(61, "none") == "none"


@given(CHANGES, CHANGES)
def test_mappings_are_equal_when_they_say_the_same_however_they_came_to(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
):
    last: dict[int, int] = dict((*one, *other))
    first = having({}, 100, 100)
    for key, value in (*one, *other):
        first = having(first, key, value)
    second = having(last, 100, 100)
    assert first == second
    assert first != having(second, 100, 101)
