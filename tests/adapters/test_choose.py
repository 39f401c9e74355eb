"""What is asked for is what is given, or the run does not start."""

from pathlib import Path

import pytest

from windlass.adapters.sandbox.box import Sandbox, choose
from windlass.adapters.sandbox.plain import Plain
from windlass.core.settings import Level
from windlass.errors import ConfigError, NoWalls
from windlass.views.outcome import error_code


class Walls(Plain):
    """Walls that work here, or do not for this reason."""

    def __init__(self, level: Level, reason: str | None) -> None:
        super().__init__(level, home=Path("/nonexistent"), environment={}, marker="test")
        self.reason = reason

    def probe(self) -> str | None:
        return self.reason


def chosen(asked, *, bwrap: str | None = None, seatbelt: str | None = None) -> Sandbox:
    return choose(
        asked,
        bubblewrap=Walls("bwrap", bwrap),
        seatbelt=Walls("seatbelt", seatbelt),
        plain=lambda level: Walls(level, None),
    )


@pytest.mark.parametrize("level", ["bwrap", "seatbelt", "checkout", "none"])
def test_a_level_that_works_is_given(level: Level):
    assert chosen(level).level == level


def test_auto_takes_the_strongest_that_works():  # B5
    assert chosen("auto").level == "bwrap"
    assert chosen("auto", bwrap="missing").level == "seatbelt"


def test_auto_settles_for_nothing_without_walls():  # B5
    with pytest.raises(
        NoWalls, match=r"bwrap: missing; seatbelt: no Mac.*--sandbox checkout"
    ) as no:
        chosen("auto", bwrap="missing", seatbelt="no Mac")
    assert error_code(type(no.value)) == 3


@pytest.mark.parametrize(
    ("level", "cure"), [("bwrap", "apt install bubblewrap"), ("seatbelt", "elsewhere use bwrap")]
)
def test_walls_that_were_asked_for_settle_for_nothing(level: Level, cure: str):  # B5
    with pytest.raises(ConfigError, match=f"{level}.*does not work here: broken.*{cure}"):
        chosen(level, **{level: "broken"})
