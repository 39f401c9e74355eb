"""Names as they are told."""

import pytest

from windlass.plan.names import some


@pytest.mark.parametrize(
    ("count", "said"), [(0, ""), (1, "a"), (3, "a, a, a"), (4, "a, a, a and 1 more")]
)
def test_some_of_many(count: int, said: str):
    assert some(["a"] * count, 3) == said


def test_a_large_number_can_be_read():
    assert some(["a"] * 2_001, 1) == "a and 2,000 more"
