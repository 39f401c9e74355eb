"""What a run started with stays in force; a complete run starts nothing: the real command line."""

import signal

import pytest

import plans
from windlass.core.events.model import CheckpointPassed, RunResumed, RunStarted
from windlass.core.settings import Settings
from windlass.testing.sample import playing, write

pytestmark = pytest.mark.e2e


def resumed_with(play) -> Settings:
    return [fact for fact in play.journal() if isinstance(fact, RunResumed)][-1].settings


def test_limits_and_models_stay_until_an_option_or_a_file_says_otherwise(stage):  # B14
    play = stage(plans.files(plans.SEQUENCE), plans.book(plans.SEQUENCE))
    given = ("--max-cost", "3.5", "--model", "claude-opus-4-5", "--max-turns", "2")
    code, said = play.killed_at("PLAYER  1.2", "run", "plan.md", *given, "--red-base", "go")
    assert code == -signal.SIGKILL, said

    code, said = play.killed_at("PLAYER  1.2", "resume", "plan.md")
    assert code == -signal.SIGKILL, said
    kept = resumed_with(play)
    assert (kept.max_cost, kept.model, kept.max_turns) == (3.5, "claude-opus-4-5", 2)
    assert kept.policy.red_base == "go"
    assert "SETTING" not in said, "nothing changed"

    toml = play.repo / "windlass.toml"
    toml.write_text(f"max_turns = 4\n{toml.read_text()}")
    code, said = play.killed_at("PLAYER  1.2", "resume", "plan.md", "--max-cost", "5")
    assert code == -signal.SIGKILL, said
    assert "SETTING  max_cost 3.50 → 5.00 (option --max-cost)" in said
    assert "SETTING  max_turns 2 → 4 (windlass.toml)" in said
    changed = resumed_with(play)
    assert (changed.max_cost, changed.model, changed.max_turns) == (5, "claude-opus-4-5", 4)

    code, _, err = play.run("resume", "plan.md")
    assert code == 0, err
    assert "SETTING" not in err, "what was changed is what stays"
    assert resumed_with(play).max_cost == 5
    models = {seen.model for seen in play.seen if not seen.side}
    assert models == {"claude-opus-4-5"}


def in_force(settings: Settings) -> dict[str, object]:
    names = ("agents", "max_tokens", "max_turns", "max_cost", "checks")
    return {
        **{name: getattr(settings, name) for name in names},
        "sandbox": settings.sandbox.level,
        "red_base": settings.policy.red_base,
    }


def complex_second_task() -> dict[str, str]:
    """A plan whose second task waits for a person, or for `--yes`."""
    files = plans.files(plans.SEQUENCE)
    heading = next(line for line in files["plan.md"].splitlines() if line.startswith("## Task 1.2"))
    files["plan.md"] = files["plan.md"].replace(heading, f"{heading}\n\n**Complexity:** 8\n")
    return files


def test_whatever_resumes_a_run_it_keeps_its_settings_and_only_restart_takes_new_ones(
    stage,
):  # B14
    play = stage(complex_second_task(), plans.book(plans.SEQUENCE))
    toml = play.repo / "windlass.toml"
    toml.write_text(f"max_cost = 9\nmax_turns = 4\n{toml.read_text()}")
    given = ("--agents", "2", "--max-tokens", "9000000", "--sandbox", "checkout")
    variables = {"WINDLASS_MAX_COST": "2", "WINDLASS_POLICY_RED_BASE": "go"}
    code, _, err = play.run("run", "plan.md", *given, **variables)
    assert code == 3, err
    [first] = [fact for fact in play.journal() if isinstance(fact, RunStarted)]
    kept = in_force(first.settings)
    assert kept == {
        "agents": 2,
        "max_tokens": 9_000_000,
        "max_turns": 4,
        "max_cost": 2,
        "checks": ("test ! -e broken",),
        "sandbox": "checkout",
        "red_base": "go",
    }

    # From here on the variables are not set, and the file has only one key left.
    toml.write_text("max_cost = 9\n")
    again = playing(write("1.1.txt", "again\n"), summary="Wrote 1.1.txt.")
    play.replace_book(plans.book(plans.SEQUENCE, **{"1.1": again}))
    ways = (
        (3, ("resume", "plan.md")),
        (3, ("run", "plan.md", "--resume")),
        (0, ("retry", "plan:1.1", "--yes")),
        (3, ("resume", "plan.md")),
        (0, ("run", "plan.md", "--yes")),
    )
    for expected, args in ways:
        code, _, err = play.run(*args)
        assert code == expected, err
        assert in_force(resumed_with(play)) == kept, args
        assert "SETTING" not in err, "nothing changed"
        if args[0] != "retry":
            assert "WARNING  max_cost 2.00 kept (WINDLASS_MAX_COST is no longer set)" in err
            assert "WARNING  max_turns 4 kept (no longer in windlass.toml)" in err
            assert 'WARNING  checks ["test ! -e broken"] kept (no longer in windlass.toml)' in err
    assert play.conversations("1.1") == 2, "it was retried"

    code, _, err = play.run("run", "plan.md", "--restart")
    assert code == 3, err
    assert "kept" not in err
    fresh = [fact for fact in play.journal() if isinstance(fact, RunStarted)][-1]
    assert in_force(fresh.settings) == {
        "agents": 3,
        "max_tokens": None,
        "max_turns": 5,
        "max_cost": 9,
        "checks": (),
        "sandbox": "auto",
        "red_base": "ask",
    }


def test_yes_passes_checkpoints_and_changes_no_setting(stage):  # G8 B14
    play = stage(complex_second_task(), plans.book(plans.SEQUENCE))
    code, _, err = play.run("run", "plan.md")
    assert code == 3, err
    assert "may it start?" in err
    code, _, err = play.run("resume", "plan.md", "--yes")
    assert code == 0, err
    assert resumed_with(play).policy.checkpoint == "ask"
    [passed] = [fact for fact in play.journal() if isinstance(fact, CheckpointPassed)]
    assert (passed.task, passed.by) == ("1.2", "--yes")


def test_a_complete_run_starts_nothing_until_its_plan_asks_for_more(stage):
    play = stage(plans.files(plans.SEQUENCE), plans.book(plans.SEQUENCE))
    assert play.run("run", "plan.md")[0] == 0
    facts, asked = len(play.journal()), len(play.seen)

    # It needs no key, and no agent: there is nothing to do.
    code, out, err = play.run("run", "plan.md", ANTHROPIC_API_KEY="")
    assert (code, out) == (0, ""), err
    assert "is complete: 3 tasks merged, not landed yet" in err
    assert "windlass land plan.md" in err
    assert "windlass run plan.md --restart" in err
    assert (len(play.journal()), len(play.seen)) == (facts, asked)

    assert play.run("land", "plan")[0] == 0
    code, _, err = play.run("run", "plan.md")
    assert code == 0, err
    assert "3 tasks merged, landed" in err
    assert "windlass land" not in err

    code, _, err = play.run("resume", "plan.md")
    assert code == 2
    assert "run it all again: windlass run plan.md --restart" in err

    plan = play.repo / "plan.md"
    more = {**plans.SEQUENCE, "1.4": ("1.3",)}
    plan.write_text(plans.files(more)["plan.md"])
    play.replace_book(plans.book(more))
    code, _, err = play.run("run", "plan.md")
    assert code == 0, err
    starts = [fact for fact in play.journal() if isinstance(fact, RunStarted)]
    assert len(starts) == 1, "the new task is run as part of the same run"
    assert play.conversations("1.1") == 1
    assert play.conversations("1.4") == 1
    assert "4 tasks: 4 completed" in err
