"""Money is counted at the wire: no agent holds the key, and the budget holds over restarts."""

import json
import os
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import plans
from money import billed
from waiting import eventually
from windlass.core.events import model as e
from windlass.testing.model.script import Answer, Book, Call, Drop, Flaky, Say, Script, Tokens
from windlass.testing.sample import playing, reviewing, write

pytestmark = pytest.mark.e2e

ONE = {"a": ()}
MODEL = "claude-sonnet-4-6"
"""One without a thinking budget, which would bound how far an answer is cut."""
DEAR = Tokens(input_tokens=0, output_tokens=30_000)
"""What a request of 45 cents uses, at the price of the default model."""


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
        return Answer(blocks=(call,), usage=DEAR)

    more = tuple(dear(write(f"a{i}.txt", "x\n")) for i in range(9))
    end = dear(Call("StructuredOutput", {"summary": "done"}))
    book = Book(scripts={"Role: Player": Script((*more, end)), "Role: Coach": reviewing()})
    play = stage(plans.files(ONE), book)
    code, _, err = play.run("run", "plan.md", "--max-cost", "3")
    assert code == 6, err
    assert "of the budget of $3.00" in err
    assert "the next request needs at least" in err
    assert "provider" not in err, "whose account has money enough"
    first = billed(play.seen)
    assert 2.4 <= first <= 3.0, "the limit is never crossed"
    assert play.spent() == pytest.approx(first, abs=1e-6)
    code, _, err = play.run("resume", "--max-cost", "3")
    assert code == 6, err
    assert billed(play.seen) == first, "nothing more was sent"
    code, _, err = play.run("resume", "--max-cost", "50")
    assert code == 0, err
    assert play.spent() == pytest.approx(billed(play.seen), abs=1e-6)


def test_a_limit_that_is_too_small_for_any_request_says_so_and_costs_nothing(stage):  # B6
    play = stage(plans.files(ONE), plans.book(ONE))
    code, _, err = play.run("run", "plan.md", "--max-cost", "0.006")
    assert code == 6, err
    assert "the budget of $0.0060 is too small for any request" in err
    assert "give more with --max-cost" in err
    assert "windlass resume plan.md --max-cost" in err
    assert billed(play.seen) == play.spent() == 0.0


def test_an_answer_that_was_cut_to_what_is_left_is_a_budget_failure_and_uses_no_turn(stage):  # B6
    long = Answer((write("a.txt", "x\n"),), Tokens(input_tokens=0, output_tokens=30_000))
    end = Call("StructuredOutput", {"summary": "done"})
    scripts = {"Role: Player": Script((long, end)), "Role: Coach": reviewing()}
    play = stage(plans.files(ONE), Book(scripts=scripts))
    code, _, err = play.run("run", "plan.md", "--max-cost", "0.5", "--model", MODEL)
    assert code == 6, err
    assert play.seen, err
    [cut] = [seen for seen in play.seen if seen.usage and seen.usage.output_tokens > 4096]
    assert cut.max_tokens == cut.usage.output_tokens < 30_000, "it was lowered, and reached"
    assert billed(play.seen) <= 0.5
    [failed] = [fact for fact in play.journal() if isinstance(fact, e.PlayerFailed)]
    assert failed.failure is e.Failure.BUDGET
    assert "cut short" in failed.message
    code, _, err = play.run("resume", "--max-cost", "5", "--model", MODEL)
    assert code == 0, err
    status = json.loads(play.run("status", "plan", "--json")[1])
    assert status["tasks"]["a"]["turns"] == 1, "no turn was used"
    assert play.spent() == pytest.approx(billed(play.seen), abs=1e-6)


def test_a_killed_agents_request_is_an_estimate_of_what_requests_cost(stage):  # B6
    slow = playing(write("a.txt", "x\n"), Answer((Say("..."),), delay=60), summary="never")
    play = stage(plans.files(ONE), plans.book(ONE, a=slow))
    with play.windlass("run", "plan.md") as process:
        eventually(lambda: any(seen.step == 1 for seen in play.asked()), timeout=100)
        flying = json.loads(play.run("status", "plan", "--json")[1])["metrics"]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
    assert 0 < flying["reserved_usd"] < 0.05 < flying["reserved_most_usd"]
    play.replace_book(plans.book(ONE))
    code, _, err = play.run("resume", "plan.md")
    assert code == 0, err
    assert "estimated of $20.00" in err
    assert "of it is an estimate: an agent was killed" in err
    told = json.loads(play.run("status", "plan", "--json")[1])["metrics"]
    paid = [f.usage.cost_usd for f in play.journal() if isinstance(f, e.SpendSettled)]
    assert told["estimated_usd"] == pytest.approx(max(paid[:2]), abs=1e-6)
    assert told["spent_usd"] == pytest.approx(sum(paid), abs=1e-6)
    assert told["cost_known"] is False
    costs = json.loads(play.run("costs", "--json")[1])["total"]
    names = ("cost_usd", "spent_usd", "estimated_usd", "reserved_usd", "reserved_most_usd")
    assert {name: costs[name] for name in names} == {name: told[name] for name in names}
    assert "estimated" in play.run("history")[1]


AMOUNTS = ("cost_usd", "spent_usd", "estimated_usd", "reserved_usd", "reserved_most_usd")


def _page(url: str) -> dict[str, float]:
    """The amounts on the page that Prometheus reads."""
    with urllib.request.urlopen(url, timeout=20) as page:  # noqa: S310  loopback
        families = {
            each.name: each for each in text_string_to_metric_families(page.read().decode())
        }
    by_type = {"spent": 0.0, "estimated": 0.0}
    for sample in families["orchestrator_cost_usd"].samples:
        if sample.name == "orchestrator_cost_usd_total":
            by_type[sample.labels["type"]] += sample.value
    gauges = {
        name: families[f"orchestrator_{name}"].samples[0].value
        for name in ("reserved_usd", "reserved_most_usd")
    }
    spent, estimated = by_type["spent"], by_type["estimated"]
    return {
        "cost_usd": spent + estimated,
        "spent_usd": spent,
        "estimated_usd": estimated,
        **gauges,
    }


def test_every_face_says_the_same_of_spent_and_estimated_after_a_stop_in_a_request(stage):  # B6
    first = Answer((write("a.txt", "x\n"),), Tokens(input_tokens=10_000))
    lost = Flaky((Drop(),), Answer((Say("..."),), delay=100))
    scripts = {"Role: Player": Script((first, lost))}
    play = stage(plans.files(ONE), Book(scripts=scripts))
    args = ("plan.md", "--metrics-port", "0", "--model", MODEL, "--json")
    with play.windlass("run", *args) as process:
        said = iter(process.stderr or ())
        url = next(line.split()[-1] for line in said if "metrics are at" in line)
        # The second request was lost, and the third has no byte of an answer yet.
        eventually(lambda: sum(seen.step == 1 for seen in play.asked()) >= 2, timeout=100)
        flying = json.loads(play.run("status", "plan", "--json")[1])["metrics"]
        page = _page(url)
        assert play.run("stop", "plan")[0] == 0
        out, err = process.communicate(timeout=100)
    paid = [f for f in play.journal() if isinstance(f, e.SpendSettled)]
    price = paid[0].usage.cost_usd
    assert [f.broke_off for f in paid] == [False, True, True], err
    assert [f.usage.cost_usd for f in paid[1:]] == [0.0, 0.0], "no byte was seen"
    assert page == pytest.approx({name: flying[name] for name in AMOUNTS}, abs=1e-6)
    assert flying["estimated_usd"] == pytest.approx(price, abs=1e-6)
    assert flying["reserved_usd"] == pytest.approx(price, abs=1e-6)
    assert flying["reserved_most_usd"] > flying["reserved_usd"]

    after = {"cost_usd": 3 * price, "spent_usd": price, "estimated_usd": 2 * price}
    expected = pytest.approx({**after, "reserved_usd": 0.0, "reserved_most_usd": 0.0}, abs=1e-6)
    result = json.loads(out.splitlines()[-1])
    documents = {
        "the result": {**result, "cost_usd": result["total_cost_usd"]},
        "status": json.loads(play.run("status", "plan", "--json")[1])["metrics"],
        "costs": json.loads(play.run("costs", "--json")[1])["total"],
        "history": json.loads(play.run("history", "--json")[1])["runs"][0],
    }
    for name, document in documents.items():
        assert {each: document[each] for each in AMOUNTS} == expected, name
    words = f"${price:.2f} spent · ${2 * price:.2f} estimated"
    shown = {
        "status": play.run("status", "plan")[1],
        "history": play.run("history")[1],
        "report": play.run("report", "plan", "--format", "markdown", "--output", "-")[1],
        "page": play.run("report", "plan", "--output", "-")[1],
    }
    for name, text in shown.items():
        assert words in text, name


def test_an_agent_that_waits_for_reserved_money_is_not_stalled(stage):  # B6
    both = {"a": (), "b": ()}
    slow = {
        id_: Script(
            (
                Answer((write(f"{id_}.txt", "x\n"),), pace=2.0),
                Call("StructuredOutput", {"summary": "done"}),
            )
        )
        for id_ in both
    }
    files = plans.files(both)
    files["windlass.toml"] += "[agent]\nidle_timeout = 4\n"
    play = stage(files, plans.book(both, **slow))
    code, _, err = play.run("run", "plan.md", "--agents", "2", "--max-cost", "0.9")
    assert code == 0, err
    facts = play.journal()
    assert not [fact for fact in facts if isinstance(fact, e.PlayerFailed | e.CoachFailed)], err
    first, held = next(fact for fact in facts if isinstance(fact, e.SpendReserved)), 0
    [end] = [f for f in facts if isinstance(f, e.SpendSettled) and f.id == first.id]
    assert (end.at - first.at).total_seconds() > 8, "the other agent waited twice its idle timeout"
    for fact in facts:
        held += isinstance(fact, e.SpendReserved) - isinstance(fact, e.SpendSettled)
        assert held <= 1, "the money is enough for one request at a time"


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
    assert "of it is an estimate" in err
    code, out, err = play.run("costs", "--json")
    assert code == 0, err
    assert '"known":false' in out.replace(" ", "")
