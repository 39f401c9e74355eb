"""Money is counted at the wire: no agent holds the key, and the budget holds over restarts."""

from pathlib import Path
from typing import Any

import pytest

import plans
from money import billed
from windlass.testing.model.script import Answer, Book, Call, Script, Tokens
from windlass.testing.sample import playing, reviewing, write

pytestmark = pytest.mark.e2e

ONE = {"a": ()}
DOLLAR = Tokens(input_tokens=0, output_tokens=66_667)
"""What a request of about a dollar uses, at the price of the default model."""


def test_the_bill_is_what_the_provider_charges(stage):  # K7 B6
    play = stage(plans.files(plans.DIAMOND), plans.book(plans.DIAMOND))
    code, _, err = play.run("run", "plan.md", "--agents", "2")
    assert code == 0, err
    assert play.spent() == pytest.approx(billed(play.seen), abs=1e-6)


def test_after_a_kill_the_bill_is_never_less_than_what_was_charged(stage):  # B6
    play = stage(plans.files(plans.DIAMOND), plans.book(plans.DIAMOND, pause=0.3))
    play.killed_at("b → ", "run", "plan.md", "--agents", "2")
    code, _, err = play.run("resume", "--agents", "2")
    assert code == 0, err
    assert play.spent() >= billed(play.seen) - 1e-6
    assert "not known" not in err, "the meter knows what a killed agent had spent"


def test_the_key_is_nowhere_an_agents_shell_can_read_it(stage, tmp_path: Path):  # B5
    # Wherever something is written while it works: all of a machine's disk can take minutes.
    places = f". ~ /tmp /run /var/tmp '{tmp_path}'"
    look = (
        "env > leak.txt; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' >> leak.txt; "
        "cat /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' >> leak.txt; "
        f"grep -rls 'dummy-ke[y]-for-the' {places} > files.txt; true"
    )
    steps = Call("Bash", {"command": look, "description": "look"})
    play = stage(
        plans.files(ONE), plans.book(ONE, a=playing(steps, write("a.txt", "x\n"), summary="s"))
    )
    code, _, err = play.run("run", "plan.md")
    assert code == 0, err
    leaked = play.git("show", "windlass/plan/integration:leak.txt")
    assert "ANTHROPIC_API_KEY" not in leaked, "not even the token of its program"
    assert "dummy-key" not in leaked
    assert play.git("show", "windlass/plan/integration:files.txt") == ""


def test_the_budget_holds_over_restarts(stage):  # B6
    def dear(call: Call) -> Answer:
        return Answer(blocks=(call,), usage=DOLLAR)

    more = tuple(dear(write(f"a{i}.txt", "x\n")) for i in range(6))
    end = dear(Call("StructuredOutput", {"summary": "done"}))
    book = Book(scripts={"Role: Player": Script((*more, end)), "Role: Coach": reviewing()})
    play = stage(plans.files(ONE), book)
    code, _, err = play.run("run", "plan.md", "--max-cost", "3")
    assert code == 6, err
    assert "the budget of $3.00 is used up" in err
    assert "provider" not in err, "whose account has money enough"
    first = billed(play.seen)
    assert 3.0 <= first <= 4.1, "under the budget plus one request"
    code, _, err = play.run("resume", "--max-cost", "3")
    assert code == 6, err
    assert billed(play.seen) == first, "nothing more was sent"
    code, _, err = play.run("resume", "--max-cost", "50")
    assert code == 0, err
    assert play.spent() == pytest.approx(billed(play.seen), abs=1e-6)


def _told(**more: Any) -> Book:
    """A Player whose first answer tells this of its usage, and a Coach."""
    first = Answer((write("a.txt", "x\n"),), Tokens(input_tokens=5000), usage_more=more)
    end = Call("StructuredOutput", {"summary": "done"})
    scripts = {"Role: Player": Script((first, end)), "Role: Coach": reviewing()}
    return Book(scripts=scripts)


def test_an_answer_in_fast_mode_costs_six_times_as_much(stage):  # B6
    play = stage(plans.files(ONE), _told(speed="fast"))
    code, _, err = play.run("run", "plan.md")
    assert code == 0, err
    fast = next(seen for seen in play.seen if seen.usage and seen.usage.input_tokens == 5000)
    assert play.spent() == pytest.approx(billed(play.seen) + 5 * billed([fast]), abs=1e-6)
    assert "not known" not in err


def test_what_has_no_known_price_is_counted_at_its_worst_and_said_so(stage):  # B6
    play = stage(plans.files(ONE), _told(tokens_of_a_later_day=1000))
    code, _, err = play.run("run", "plan.md")
    assert code == 0, err
    assert play.spent() == pytest.approx(billed(play.seen) + 0.075, abs=1e-6)
    assert "+ some of it is not known" in err
    code, out, err = play.run("costs", "--json")
    assert code == 0, err
    assert '"known":false' in out.replace(" ", "")
