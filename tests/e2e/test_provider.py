"""A provider in trouble, and agents that do not end: waited out or ended, and no turn is used."""

import json
import re
from datetime import datetime

import pytest

import plans
from windlass.testing.model.script import (
    Answer,
    Book,
    Call,
    Drop,
    Fault,
    Flaky,
    Hang,
    Limit,
    Script,
    Status,
    Tokens,
)
from windlass.testing.sample import playing, reviewing, write

pytestmark = pytest.mark.e2e

ONE = {"a": ()}
TWO = {"a": (), "b": ()}
AT_ONCE = {"x-should-retry": "false"}
"""Has the agent's program give up without its own half minute of retries."""
LOOK = Call("Bash", {"command": "cat README.md", "description": "look"})
PLAYER, COACH = "Role: Player", "Role: Coach"
UNTIL = r"until (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\dZ, in \d"


def troubled(*faults: Fault) -> Book:
    """A Player and a Coach that meet these faults in the middle of their conversations."""
    trouble = Flaky(faults, Answer((LOOK,)))
    return Book(
        scripts={
            PLAYER: playing(LOOK, trouble, write("a.txt", "by a\n"), summary="Wrote a.txt."),
            COACH: reviewing(LOOK, trouble),
        }
    )


def files(tasks=ONE, more: str = "") -> dict[str, str]:
    return {**plans.files(tasks), "windlass.toml": f'checks = ["test ! -e broken"]\n{more}'}


def events(play, kind: str) -> list[dict]:
    lines = play.run("log", "plan", "--json")[1].splitlines()
    told = [json.loads(line)["event"] for line in lines]
    return [event for event in told if event["type"] == kind]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def begun(play, role: str) -> int:
    """How many conversations there were: each begins with an answer that no fault touches."""
    return sum(seen.step == 0 and seen.key == role for seen in play.seen if not seen.side)


def assert_done_in_one_turn(play, code: int, err: str) -> None:
    assert code == 0, err
    assert play.merges() == ["a"]
    assert {event["turn"] for event in events(play, "PlayerStarted")} == {1}
    assert events(play, "TurnReturned") == []


def test_a_short_wait_is_the_agents_own_and_repeats_nothing(stage):  # G13
    busy = Status(429, "rate_limit_error", {"retry-after": "1"})
    play = stage(files(), troubled(busy, Status(529, "overloaded_error")))
    code, _, err = play.run("run", "plan.md")
    assert_done_in_one_turn(play, code, err)
    assert err.count("Retry 1 in 1.0 s (rate_limit, HTTP 429)") == 2, "the Player's, the Coach's"
    assert err.count("(overloaded, HTTP 529)") == 2
    assert (begun(play, PLAYER), begun(play, COACH)) == (1, 1)


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        (Status(429, "rate_limit_error", {"retry-after": "1", **AT_ONCE}), "usage_limit"),
        (Limit(1), "usage_limit"),
        (Status(529, "overloaded_error", {"retry-after": "2", **AT_ONCE}), "transient"),
        (Status(500, headers=AT_ONCE), "transient"),
    ],
    ids=["429", "usage limit", "529", "500"],
)
def test_a_longer_one_is_shown_waited_out_and_uses_no_turn(stage, fault, failure):  # G13 B6
    play = stage(files(), troubled(fault))
    code, _, err = play.run("run", "plan.md")
    assert_done_in_one_turn(play, code, err)
    if failure == "usage_limit":
        # One that is over by the time it is recorded is not worth a line.
        limits = re.findall(r"LIMIT  claude quota until \S+Z; a waits, no turn spent", err)
        lasting = [moment(w["until"]) > moment(w["at"]) for w in events(play, "WaitStarted")]
        assert len(limits) == sum(lasting), err
        assert "FAILED" not in err
    else:
        assert "FAILED  a Write a.txt · transient · turn 1 goes on" in err
        assert "the Coach, transient · turn 1 goes on" in err
        words = f"WAIT  a Write a.txt · for the provider to recover · {UNTIL}"
        assert len(re.findall(words, err)) == 2, err
    assert {e["failure"] for e in events(play, "WaitStarted")} == {failure}
    assert (begun(play, PLAYER), begun(play, COACH)) == (2, 2), "no more than the one that failed"
    waits = [wait["until"] for wait in events(play, "WaitStarted")]
    failed = [*events(play, "PlayerFailed"), *events(play, "CoachFailed")]
    if isinstance(fault, Status) and "retry-after" not in fault.headers:
        assert not any("retry_at" in event for event in failed), "how long is ours to guess"
    else:
        named = [max(moment(e["at"]), moment(e["retry_at"])) for e in failed]
        assert [moment(until) for until in waits] == named, "the provider's own word"


def test_a_provider_that_cannot_be_reached_is_waited_for(stage):  # G13
    """The Coach's first conversation fails for good, all retries of the program's own included."""
    scripts = troubled().scripts
    play = stage(files(), Book(scripts={**scripts, f"{COACH}|Review: 1\n": Script((Drop(),) * 30)}))
    code, _, err = play.run("run", "plan.md")
    assert_done_in_one_turn(play, code, err)
    assert "the Coach, transient · turn 1 goes on" in err
    assert len(events(play, "TaskApproved")) == 1
    assert begun(play, PLAYER) == 1


def test_a_long_limit_is_seen_at_a_glance_and_is_over_sooner_for_nobody(stage):  # B6
    """Stopped in the middle of it and resumed, the run still waits for the same moment."""
    play = stage(files(), troubled(Limit(90_000)))
    with play.windlass("run", "plan.md") as process:
        line = next(line for line in process.stderr if " LIMIT " in line)
        shown = play.run("status", "plan")[1]
        told = json.loads(play.run("status", "plan", "--json")[1])["tasks"]["a"]
        assert play.run("stop", "plan")[0] == 0
        assert process.wait(timeout=60) == 4
    until = re.search(r"until (\d{4}-\d\d-\d\d \d\d:\d\d)Z; a waits, no turn spent", line)
    assert until is not None, line
    assert re.search(
        rf"waits for the provider's usage limit to end · until {until[1]}:\d\dZ", shown
    )
    assert told["waits_for"] == "usage_limit"
    assert told["waits_until"].replace("T", " ").startswith(until[1])
    with play.windlass("resume") as process:
        again = next(line for line in process.stderr if " LIMIT " in line)
        assert play.run("stop", "plan")[0] == 0
        process.wait(timeout=60)
    assert until[1] in again
    assert begun(play, PLAYER) == 1, "nobody asked while it lasted"
    assert play.none_left()


def test_a_refused_key_pauses_everything_until_it_is_mended(stage):  # G13
    refused = Script((Status(401, "authentication_error", AT_ONCE),))
    play = stage(files(TWO), plans.book(TWO, a=refused, b=refused))
    code, _, err = play.run("run", "plan.md", "--agents", "1")
    assert code == 6, err
    assert "the provider refused the credentials" in err
    assert "windlass resume" in err
    assert [event["task"] for event in events(play, "PlayerStarted")] == ["a"]
    assert play.none_left()
    play.replace_book(plans.book(TWO))
    code, _, err = play.run("resume", "--agents", "1")
    assert code == 0, err
    assert sorted(play.merges()) == ["a", "b"]
    assert {event["turn"] for event in events(play, "PlayerStarted")} == {1}


def test_a_stream_that_stalls_is_ended_and_tried_again(stage):  # G13
    play = stage(files(more="[agent]\nidle_timeout = 2\n"), troubled(Hang("middle")))
    code, _, err = play.run("run", "plan.md")
    assert_done_in_one_turn(play, code, err)
    assert err.count("the model sent nothing for 2 seconds") == 2, "the Player's, the Coach's"
    assert (begun(play, PLAYER), begun(play, COACH)) == (2, 2)
    assert play.none_left()


@pytest.mark.parametrize(
    ("limit", "code", "requests"),
    [(("--max-turns", "1"), 1, 4), (("--max-cost", "1.2"), 6, 2)],
    ids=["steps", "money"],
)
def test_an_agent_that_runs_in_circles_is_ended(stage, limit, code, requests):  # G13 B6
    dear = Tokens(input_tokens=0, output_tokens=30_000)
    circle = Script((Answer((LOOK,), usage=dear),) * 50)
    play = stage(
        files(more="[agent]\nmax_steps = 4\n"), Book(scripts={PLAYER: circle, COACH: reviewing()})
    )
    got, _, err = play.run("run", "plan.md", *limit)
    assert got == code, err
    assert "nothing was merged" in err
    assert begun(play, PLAYER) == 1
    assert sum(seen.usage is not None and not seen.side for seen in play.seen) == requests
    assert play.none_left()
