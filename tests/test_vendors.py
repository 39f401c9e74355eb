"""One module for each vendor of agents: no other names it, and adding one changes no other."""

import re
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from quick import ENVIRONMENT
from windlass.adapters.agents import vendors
from windlass.app.doctor import doctor
from windlass.app.plans import read_plan
from windlass.app.run import RunRequest, run
from windlass.app.run_settings import RunSettings
from windlass.app.wiring import Project
from windlass.app.wiring.agents import refuse_without_credentials, vendor_of
from windlass.core.events import model as e
from windlass.core.settings import AgentSettings
from windlass.core.state import RunState
from windlass.errors import BadInput, ConfigError
from windlass.testing.stage import Stage

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src/windlass"

VENDORS = [vendors.find(name) for name in vendors.names()]
WORDS = {word for each in VENDORS for word in (each.name, each.provider, each.wire) if word}
NAMES = re.compile("|".join(map(re.escape, sorted(WORDS))), re.IGNORECASE)
"""The names of the vendors, of their providers and of their wire protocols."""

MAY_NAME = {
    "adapters/agents/claude/": "the vendor's own modules",
    "adapters/agents/vendors.py": "the list of vendors, a line for each",
    "adapters/meter/wire/anthropic/": "the wire protocol that the vendor's requests speak",
    "testing/model/anthropic_wire.py": "the same wire protocol, as a scripted model speaks it",
    "testing/model/__init__.py": "exports it",
    "testing/model/delivery.py": "sends it",
    "testing/model/server.py": "routes to it",
    "claude_code/": "the plugin for another tool, as data",
    "app/skills.py": "installs that plugin",
    "app/settings.schema.json": "generated; it has the list of vendors, as docs/configuration.md",
    "core/other_tools.py": "the one table of names that other tools gave to files and variables",
}


def test_no_other_module_names_a_vendor():
    """Identifiers, texts, comments and the names of files, in all that is shipped."""
    named: list[str] = []
    for path in sorted(SOURCES.rglob("*")):
        name = path.relative_to(SOURCES).as_posix()
        if not path.is_file() or "__pycache__" in name or name.startswith(tuple(MAY_NAME)):
            continue
        lines = [name, *path.read_text(encoding="utf-8", errors="replace").splitlines()]
        named += [f"{name}: {line.strip()[:80]}" for line in lines if NAMES.search(line)]
    assert named == [], "ask `app/wiring/agents.py` for the vendor's value"
    assert [name for name in MAY_NAME if not (SOURCES / name).exists()] == []


def test_every_vendor_has_the_name_that_it_is_listed_by():
    for name in vendors.names():
        vendor = vendors.find(name)
        assert vendor.name == name
        assert vendor.keys
        assert vendor.model
        assert bool(vendor.wire) <= bool(vendor.address and vendor.url)


PROGRAM = """\
#!{python}
import json, os, sys
asked = json.loads(sys.stdin.readline())
assert os.environ["PARROT_KEY"] == "polly", sorted(os.environ)
assert sys.argv[1] == "--model=parrot-1", sys.argv
if "decision" in asked["schema"]["properties"]:
    assert open("a.txt").read() == "by parrot", "a Coach sees the Player's work"
    seen = [{{"criterion": 1, "met": True, "evidence": "a.txt"}}]
    answer = {{"decision": "approve", "summary": "It is there.", "evidence": seen}}
    answer["test_results"] = {{"passed": None}}
else:
    print(json.dumps({{"does": "Writing a.txt"}}), flush=True)
    open("a.txt", "w").write("by parrot")
    answer = {{"summary": "Wrote a.txt."}}
print(json.dumps({{"answer": answer, "cost": 0.25, "tokens": 7}}), flush=True)
"""
PLAN = """\
# Milestone: A file

## Task 1: Write a.txt

**Acceptance Criteria:**
- [ ] it is there
"""
SETTINGS = """\
checks = ["test ! -f a.txt || grep -q parrot a.txt"]

[agent]
name = "parrot"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A repository whose agent is the one of the guide, registered by one line."""
    page = (ROOT / "docs/how-to/add-an-agent.md").read_text(encoding="utf-8")
    fences = [token for token in MarkdownIt().parse(page) if token.type == "fence"]
    [module] = [token.content for token in fences if token.info == "python"]
    (tmp_path / "parrot_of_the_guide.py").write_text(module, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "parrot_of_the_guide", raising=False)
    monkeypatch.setitem(vendors.MODULES, "parrot", "parrot_of_the_guide")
    program = tmp_path / "bin/parrot"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    path = f"{program.parent}:{ENVIRONMENT['PATH']}"
    monkeypatch.setenv("PATH", path)
    stage = Stage(tmp_path, "")
    stage.build({"plan.md": PLAN, "windlass.toml": SETTINGS})
    environment = {**ENVIRONMENT, "PATH": path, "PARROT_KEY": "polly"}
    return Project(stage.repo, environment)


def ran(project: Project) -> RunState:
    request = RunRequest(typed="plan.md", settings=RunSettings(sandbox="checkout"))
    return run(project, read_plan(project, "plan.md"), request).state


def test_the_vendor_of_the_guide_plays_a_whole_run(project: Project):
    state = ran(project)
    assert (state.ended, state.merged) == (e.RunEnd.COMPLETED, ("1",)), state.tasks["1"].feedback
    assert project.git.ask("show", f"{state.tip}:a.txt") == "by parrot"
    facts = [entry.event for entry in project.journals.entries("plan")]
    [begun] = [fact for fact in facts if isinstance(fact, e.RunStarted)]
    recorded = begun.settings
    assert (recorded.agent.name, recorded.model) == ("parrot", "parrot-1"), "by name"
    paid = [ev.usage for ev in facts if isinstance(ev, e.PlayerFinished | e.CoachAnswered)]
    assert [usage.cost_usd for usage in paid] == [0.25, 0.25]


def test_doctor_looks_at_the_vendor_that_is_set(project: Project, monkeypatch: pytest.MonkeyPatch):
    findings = {each.name: each for each in doctor(project.root, project.environment).findings}
    assert findings["agent"].said.startswith("parrot, ")
    assert findings["key"].said == "PARROT_KEY set"
    monkeypatch.setenv("PATH", "/nonexistent")
    bare = {**project.environment, "PARROT_KEY": ""}
    findings = {each.name: each for each in doctor(project.root, bare).findings}
    assert findings["agent"].cure == "install parrot, and put it on PATH"
    assert findings["key"].cure.startswith("set PARROT_KEY, or ")


def test_a_key_of_one_vendor_is_none_for_another(project: Project):
    name = next(iter(vendors.names()))
    with pytest.raises(BadInput):
        refuse_without_credentials(AgentSettings(name=name), project.environment)
    assert refuse_without_credentials(AgentSettings(name="parrot"), project.environment)


def test_a_vendor_that_a_newer_windlass_recorded_is_named():
    with pytest.raises(ConfigError, match="no agent 'dodo', only"):
        vendor_of(AgentSettings(name="dodo"))
