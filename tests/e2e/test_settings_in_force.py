"""What a run started with stays in force; a complete run starts nothing: the real command line."""

import signal

import pytest

import plans
from windlass.core.events.model import CheckpointPassed, RunResumed, RunStarted
from windlass.core.settings import Settings

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


def test_yes_passes_checkpoints_and_changes_no_setting(stage):  # G8 B14
    tasks = plans.SEQUENCE
    files = plans.files(tasks)
    files["plan.md"] = files["plan.md"].replace("## Task 1.2", "## Task 1.2", 1)
    heading = next(line for line in files["plan.md"].splitlines() if line.startswith("## Task 1.2"))
    files["plan.md"] = files["plan.md"].replace(heading, f"{heading}\n\n**Complexity:** 8\n")
    play = stage(files, plans.book(tasks))
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
