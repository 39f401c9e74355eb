"""What a check printed reaches the next Player, and a person, from where it matters."""  # B16

import pytest

import plans
from windlass.testing.model.script import Book
from windlass.testing.sample import playing, reviewing, write

pytestmark = pytest.mark.e2e

TEST = """\
import unittest

class Total(unittest.TestCase):
    def test_total(self):
        self.assertEqual(open("a.txt").read(), "right\\n")
"""
NOISY = (
    "for n in $(seq 2000); do echo compiling part $n; done; test ! -e a.txt || python3 -m unittest"
)


def test_the_next_player_is_shown_the_failure_and_not_the_noise(stage):
    wrong = playing(write("a.txt", "wrong\n"), summary="First try.")
    # This script is chosen only if the prompt has the failure; the book has no other for turn 2.
    right = playing(write("a.txt", "right\n"), summary="Read the failure, and mended it.")
    play = stage(
        {
            **plans.files({"a": ()}),
            "windlass.toml": f"checks = ['{NOISY}']\n",
            "test_total.py": TEST,
        },
        Book(
            scripts={
                "Role: Player|Turn: 1\n": wrong,
                "Role: Player|Turn: 2\n|FAIL: test_total|AssertionError: 'wrong": right,
                "Role: Coach": reviewing(),
            }
        ),
    )
    code, _, err = play.run("run", "plan.md")
    assert code == 0, err
    _, _, returned = err.partition("RETURNED  a Write a.txt · turn 1/5 · checks")
    assert returned.splitlines()[2].strip().startswith("FAIL: test_total")
    assert "compiling part 2000" not in err + play.run("log", "plan:a")[1]
    assert "AssertionError: 'wrong" in play.run("status", "plan:a")[1]
    prompts = [seen for seen in play.seen if "Turn: 2" in seen.key]
    assert prompts, "the second Player was asked"


def test_a_setup_that_fails_says_so_before_any_agent_is_paid(stage):
    toml = 'checks = ["true"]\n[workspace]\nsetup = ["uv-that-is-missing sync"]\n'
    play = stage({**plans.files({"a": ()}), "windlass.toml": toml}, plans.book({"a": ()}))
    code, _, err = play.run("run", "plan.md")
    assert code == 3
    for text in (err, play.run("log", "plan")[1], play.run("status", "plan")[1]):
        assert "setup command `uv-that-is-missing sync` failed with exit code 127" in text
        assert "uv-that-is-missing: not found" in text
    assert play.seen == []
