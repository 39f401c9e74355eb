"""The Claude Code plugin, and its skills in a project: as the real program reads them."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from desk import NO_MODEL, Desk
from finished_run import InProcessDesk
from windlass import __version__
from windlass.app.wiring import machine
from windlass.testing.model import Book, Say, Script
from windlass.testing.stage import scripted_model

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "src" / "windlass" / "claude_code"
SPENDS_OR_MOVES = {"run", "feature-build", "answer", "land"}
SKILLS = {path.parent.name: path.read_text() for path in PLUGIN.glob("skills/*/SKILL.md")}


def claude(
    home: Path, *args: str, url: str = NO_MODEL, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    program = machine.agent_program()
    assert program is not None
    return subprocess.run(
        [program.path, *args],
        cwd=cwd,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "ANTHROPIC_API_KEY": "dummy",
            "ANTHROPIC_BASE_URL": url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def validated(path: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return claude(home, "plugin", "validate", "--strict", str(path))


@pytest.fixture
def project(tmp_path: Path) -> InProcessDesk:
    desk = InProcessDesk(tmp_path)
    desk.build({"README.md": "hello\n"})
    return desk


class TestPlugin:
    def test_claude_code_itself_finds_nothing_wrong(self, tmp_path: Path):
        for path in (PLUGIN, ROOT):
            done = validated(path, tmp_path)
            assert done.returncode == 0, done.stdout + done.stderr

    def test_and_would_have_found_it(self, tmp_path: Path):
        copy = tmp_path / "plugin"
        shutil.copytree(PLUGIN, copy)
        (copy / "skills" / "run" / "SKILL.md").write_text("---\nname: [\n---\nbroken\n")
        assert validated(copy, tmp_path).returncode != 0

    def test_what_spends_or_moves_branches_is_for_people_alone(self):
        kept = {
            name for name, text in SKILLS.items() if "\ndisable-model-invocation: true\n" in text
        }
        assert kept == SPENDS_OR_MOVES
        assert set(SKILLS) - kept == {"status", "plan"}
        for name in kept:
            assert "allowed-tools" not in SKILLS[name], "what spends is asked for each time"
        looking = re.findall(r"Bash\(windlass (\w+)", "".join(SKILLS.values()))
        assert set(looking) <= {"status", "log", "costs", "history", "diff", "plan"}

    def test_commands_and_options_that_it_names_are_there(self):
        from windlass.cli.main import COMMANDS

        text = "\n".join((*SKILLS.values(), (PLUGIN / "README.md").read_text()))
        named = set(re.findall(r"`windlass ([a-z-]+)", text))
        assert named <= set(COMMANDS)
        assert set(re.findall(r"/windlass:([a-z-]+)", text)) <= set(SKILLS)
        page = (ROOT / "docs" / "cli.md").read_text()
        for option in set(re.findall(r"`(--[a-z-]+)", text)):
            assert option in page, option

    def test_versions_agree_and_the_marketplace_leads_here(self):
        manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
        assert manifest["version"] == __version__
        market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text())
        [listed] = market["plugins"]
        assert (ROOT / listed["source"]).resolve() == PLUGIN
        assert listed["name"] == manifest["name"]
        server = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["windlass"]
        assert server == {"command": "windlass", "args": ["mcp"]}


def skill(desk: Desk, name: str) -> Path:
    return desk.repo / ".claude" / "skills" / name / "SKILL.md"


@pytest.mark.e2e
def test_the_real_program_knows_them_by_their_names(project, tmp_path: Path):
    """What is typed becomes the skill's text, with what was typed after it, in the request."""
    project.call("init", "--claude")
    book = Book(
        scripts={
            "# Build one task with Windlass|TASK-7 --max-turns 3": Script((Say("built"),)),
            "# Run a plan with Windlass|docs/plan.md": Script((Say("ran"),)),
        },
        default=Script((Say("nothing was known"),)),
    )
    with scripted_model(book, tmp_path / "log.jsonl") as url:
        where = {"url": url, "cwd": project.repo}
        own = claude(project.home, "-p", "/feature-build TASK-7 --max-turns 3", **where)
        plugin = ("--plugin-dir", str(PLUGIN))
        other = claude(project.home, *plugin, "-p", "/windlass:run docs/plan.md", **where)
    assert (own.stdout.strip(), other.stdout.strip()) == ("built", "ran")


class TestInit:
    def test_it_writes_skills_once_and_claude_code_reads_them(self, project, tmp_path: Path):
        answer = project.call("init", "--claude")
        assert answer.code == 0
        names = {f"windlass-{name}" for name in SKILLS} - {"windlass-feature-build"}
        names.add("feature-build")
        found = {path.parent.name for path in project.repo.glob(".claude/skills/*/SKILL.md")}
        assert found == names
        for name in names:
            text = skill(project, name).read_text()
            assert f"\nname: {name}\n" in text
            assert "/windlass:" not in text
        assert not (project.repo / "windlass.toml").exists()
        done = validated(project.repo / ".claude", tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr

        before = project.everything()
        again = project.call("init", "--claude")
        assert again.out.count("same") == len(names)
        assert project.everything() == before

    def test_an_edited_one_is_never_overwritten_unasked(self, project):
        project.call("init", "--claude")
        edited = skill(project, "feature-build")
        edited.write_text(edited.read_text().replace("background", "foreground"))
        theirs = skill(project, "windlass-run")
        theirs.write_text("mine\n")
        before = project.everything()
        answer = project.call("init", "--claude")
        assert answer.code == 0
        assert answer.out.count("    kept  ") == 2
        assert "--force" in answer.err
        assert project.everything() == before
        assert project.call("init", "--claude", "--force").out.count("replaced") == 2
        assert "background" in edited.read_text()
        assert "mine" not in theirs.read_text()

    def test_one_of_an_older_version_is_replaced(self, project):
        from windlass.app.skills import _stamp

        project.call("init", "--claude")
        path = skill(project, "windlass-status")
        old = "---\nname: windlass-status\n---\nold words\n"
        path.write_text(f"{old}\n{_stamp(old)}")
        assert "replaced  .claude/skills/windlass-status" in project.call("init", "--claude").out
        assert "old words" not in path.read_text()

    def test_links_that_lead_elsewhere_are_left_alone(self, project, tmp_path: Path):
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "SKILL.md").write_text("theirs\n")
        place = skill(project, "windlass-land")
        place.parent.mkdir(parents=True)
        place.symlink_to(outside / "SKILL.md")
        skill(project, "windlass-plan").parent.symlink_to(outside)
        answer = project.call("init", "--claude", "--force")
        assert answer.out.count("    kept  ") == 2
        assert (outside / "SKILL.md").read_text() == "theirs\n"
