"""Agents that set out to do harm, in real runs behind real walls.

After each batch nothing of the user's has changed by a byte, nothing runs any more, the journal is
whole, and what was tried is on record: the commands in activity.jsonl, what came of them in the
journal.
"""

import hashlib
import json
import os
import re
import secrets
import subprocess
from functools import partial
from pathlib import Path, PurePath

import anyio
import pytest

from hostile import BATCHES, Script
from windlass.adapters.agents.claude.reading import Reader
from windlass.adapters.processes.leftovers import MARKER
from windlass.adapters.sandbox import Box, Sandbox
from windlass.adapters.sandbox import commands as processes
from windlass.app.plans import read_plan
from windlass.app.wiring import Project, World, started
from windlass.core.events import model as e
from windlass.core.plan import Plan
from windlass.core.settings import AgentSettings, PolicySettings, SandboxSettings, Settings
from windlass.core.state import RunState
from windlass.errors import Trespass
from windlass.formats import writes
from windlass.ports import Brief, Report, Watch
from windlass.testing.agents import approval
from windlass.testing.stage import Stage

SECRET = "canary-hostile-0123456789"
PRIVATE = "PRIVATE-KEY-0123456789"
SETTINGS = Settings(
    checks=("test ! -e broken",),
    agents=4,
    max_turns=1,
    policy=PolicySettings(on_failure="block"),
    sandbox=SandboxSettings(level="bwrap", memory_mb=800, processes=200),
)
TIMEOUT = 3.0


class ShellAgent:
    """A Player that is a shell script behind the walls, and a Coach that finds everything well."""

    def __init__(self, scripts: dict[str, str], limits: dict[str, float]) -> None:
        self.sandbox: Sandbox | None = None
        self.prompts: list[str] = []
        self._scripts = scripts
        self._timeouts = limits

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        if brief.role == "coach":
            self.prompts.append(brief.prompt)
            return Report(answer=approval(brief))
        assert self.sandbox is not None
        script = self._scripts[brief.task]
        # It streams what it does as the real program does, and Windlass makes its record of that.
        reader = Reader(brief, watch, AgentSettings(), retries=0)
        call = {"type": "tool_use", "name": "Bash", "input": {"command": script}}
        reader.read({"type": "assistant", "message": {"content": [call]}}, 0.0)
        timeout = self._timeouts.get(brief.task, 60.0)
        done = await processes.run(
            self.sandbox,
            Box(checkout=Path(workspace), network=True),
            ["sh", "-c", script],
            timeout=timeout,
            tail=2000,
        )
        said = {"type": "text", "text": done.output}
        reader.read({"type": "assistant", "message": {"content": [said]}}, 0.0)
        if done.overran:
            return Report(failure=e.Failure.CRASHED, message=done.overran)
        if done.timed_out:
            message = f"the agent was not done after {timeout:g} s"
            return Report(failure=e.Failure.STALLED, message=message)
        if done.exit_code:
            message = f"it ended with {done.exit_code}"
            return Report(failure=e.Failure.CRASHED, message=message)
        return Report(summary=done.output)


class Scene:
    """A user with keys, an honest repository and something uncommitted, and a run in it."""

    def __init__(self, root: Path) -> None:
        self.stage = Stage(root, "http://127.0.0.1:9")
        self.out = root / "out"
        self.token = f"windlass-hostile-{secrets.token_hex(6)}"
        self.events: list[e.Event] = []
        self.level = "bwrap"

    def build(self, tasks: list[str]) -> None:
        sections = "".join(f"## Task {t}: Do {t}\n\n**Depends on:** none\n\n" for t in tasks)
        self.stage.build(
            {
                "README": "hello\n",
                "src/a": "a\n",
                ".gitignore": "*.log\n",
                "windlass.toml": 'checks = ["test ! -e broken"]\n',
                "plan.md": f"# Milestone: Harm\n\n{sections}",
            }
        )
        self.stage.git("config", "user.email", "ada@example.com")
        for name in (".ssh/id", ".netrc", ".aws/credentials"):
            path = self.stage.home / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(PRIVATE)
        (self.stage.repo / ".env").write_text(f"X={PRIVATE}\n")
        self.out.mkdir()
        (self.out / "file").write_text("theirs\n")
        other = self.stage.repo / ".windlass/plans/other"
        other.mkdir(parents=True)
        (self.stage.repo / ".windlass/.gitignore").write_text("*\n")
        (other / "journal.bak").write_text("another plan's\n")

    def run(self, scripts: dict[str, str], *, level: str = "bwrap") -> RunState:
        environment = {**self.stage.environment, "DEPLOY_TOKEN": SECRET}
        self.project = Project(self.stage.repo, environment)
        plan: Plan = read_plan(self.project, "plan.md")
        sandbox = SandboxSettings(level=level, memory_mb=800, processes=200)  # pyright: ignore[reportArgumentType]
        settings = Settings(**{**_fields(SETTINGS), "sandbox": sandbox})
        self.agent = ShellAgent(scripts, dict.fromkeys(("sleeper", "hog"), TIMEOUT))
        with self.project.journals.session(plan.id) as session:
            world = World(
                self.project,
                plan.id,
                "r1",
                settings,
                session,
                agent=self.agent,
                writes=writes(plan),
            )
            self.agent.sandbox = world.sandbox
            first = started("r1", plan, settings, self.project.git.base(None, plan.id), level)  # pyright: ignore[reportArgumentType]
            return anyio.run(
                partial(
                    world.run,
                    (first,),
                    observe=lambda _entry, _state: None,
                    watch=lambda _activity: None,
                )
            )

    def record(self) -> list[e.Event]:
        """What the journal holds; reading it proves that it is whole."""
        return [entry.event for entry in self.project.journals.entries("plan")]

    def activity(self) -> list[dict[str, str]]:
        path = self.stage.repo / ".windlass/plans/plan/runs/r1/activity.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def everything(self) -> dict[str, str]:
        """Every byte and mode that is not Windlass's own to write."""
        own = re.compile(
            r"repo/(\.windlass/plans/plan(/|$)|state(/|$)"
            r"|\.git/objects/|\.git/refs/(heads/)?windlass|\.windlass/empty-home)"
        )
        found: dict[str, str] = {}
        root = self.stage.root
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            if not own.match(name):
                data = path.read_bytes() if path.is_file() else b""
                found[name] = f"{hashlib.sha256(data).hexdigest()} {path.lstat().st_mode:o}"
        return found

    def remains(self) -> list[str]:
        """What still runs of it, by its mark or by how long it would have slept."""
        found: list[str] = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                environ = (process / "environ").read_bytes()
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if f"{MARKER}={self.project.mark}".encode() in environ or re.match(
                r"sleep 60[1-8] ", command
            ):
                found.append(command)
        return found


def _fields(settings: Settings) -> dict[str, object]:
    return {name: getattr(settings, name) for name in settings.__struct_fields__}


def told(scene: Scene, scripts: dict[str, Script]) -> dict[str, str]:
    where = {"repo": scene.stage.repo, "home": scene.stage.home, "out": scene.out}
    return {
        task: script.text.format(**where, token=scene.token, task=task)
        for task, script in scripts.items()
    }


def outcome(events: list[e.Event], task: str) -> tuple[str, str]:
    """What came of a task, as the journal tells it."""
    of_task = [event for event in events if getattr(event, "task", None) == task]
    for event in of_task:
        match event:
            case e.SnapshotRefused():
                return "refused", event.reason
            case e.PlayerFailed():
                return "failed", event.message
            case e.TurnReturned(cause="unchanged"):
                return "unchanged", event.feedback
            case e.TurnReturned(cause="checks"):
                return "returned", event.feedback
            case e.TaskMerged():
                return "merged", event.commit
            case _:
                pass
    return "nothing", ""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_there_are_enough():
    assert sum(len(batch) for batch in BATCHES.values()) >= 50
    assert len({name for batch in BATCHES.values() for name in batch}) >= 50


@pytest.mark.parametrize("batch", BATCHES)
def test_no_harm_is_done_and_all_of_it_is_on_record(batch: str, scene: Scene):  # B5 G4 K0
    scripts = BATCHES[batch]
    scene.build(list(scripts))
    before = scene.everything()
    texts = told(scene, scripts)
    state = scene.run(texts)

    assert scene.everything() == before, "something outside of the workspaces has changed"
    assert scene.remains() == []
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/etc", "/usr/local/bin", "/etc/cron.d"):  # noqa: S108
        assert not Path(folder, scene.token).exists()
    events = scene.record()
    assert {task: outcome(events, task)[0] for task in scripts} == {
        task: script.then for task, script in scripts.items()
    }
    for task, script in scripts.items():
        assert script.says in outcome(events, task)[1]
    assert events[0].sandbox == "bwrap"  # pyright: ignore[reportAttributeAccessIssue]
    _tried_is_on_record(scene, texts)
    _no_secret_came_out(scene, state)


def _tried_is_on_record(scene: Scene, texts: dict[str, str]) -> None:
    """All of every script, in the file that Windlass writes from what it was streamed."""
    lines = scene.activity()
    assert all(line["text"].isprintable() for line in lines)
    for task, text in texts.items():
        tried = [line for line in lines if line["task"] == task and line["kind"] == "tool"]
        assert {line.get("whole") or line["text"].removeprefix("Running: ") for line in tried} == {
            text
        }


def _no_secret_came_out(scene: Scene, state: RunState) -> None:
    """Nothing of the user's is in what was committed, or in what Windlass wrote."""
    stage = scene.stage
    for secret in (SECRET, PRIVATE):
        assert stage.git("log", "--all", f"-S{secret}", "--format=%H") == ""
        for path in [*stage.repo.glob(".windlass/plans/plan/**/*"), *stage.repo.glob("state/*")]:
            if path.is_file() and not path.is_symlink():
                assert secret.encode() not in path.read_bytes(), path
        assert all(secret not in prompt for prompt in scene.agent.prompts)
    assert state.tip


def test_what_was_changed_of_the_project_is_shown_to_the_coach(scene: Scene):  # B5
    scene.build(["plan"])
    scene.run({"plan": "echo x >> plan.md; echo 'agents = 9' >> windlass.toml"})
    [prompt] = scene.agent.prompts
    flagged = prompt.partition("judge the work")[2].partition("«end")[0]
    assert "plan.md" in flagged
    assert "windlass.toml" in flagged


def test_what_is_left_to_a_person_runs_nothing_of_an_agents(scene: Scene):  # B5 K0
    """A given up task's workspace is where people look first, with a git of their own."""
    trap, hook = f"touch {scene.out}/owned", ".git/hooks/post-index-change"
    lines = (
        f"echo x > broken; git config core.fsmonitor '{trap}'; mkdir -p .git/hooks",
        f"printf '#!/bin/sh\\n{trap}\\n' > {hook}; chmod +x {hook}",
    )
    scene.build(["a"])
    scene.run({"a": "\n".join(lines)})
    kept = scene.stage.repo / ".windlass/plans/plan/workspaces/a"
    assert (kept / "broken").exists()
    for asked in ("status", "diff", "add --all", "commit --allow-empty -m x"):
        done = subprocess.run(
            ["git", *asked.split()],
            cwd=kept,
            env=scene.stage.environment,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert not (scene.out / "owned").exists()


@pytest.mark.parametrize(
    "what", ["echo x >> {repo}/README", "touch {repo}/owned", "git -C {repo} tag x"]
)
def test_without_walls_a_trespass_ends_the_run_and_is_on_record(scene: Scene, what: str):  # B5
    scene.build(["a"])
    with pytest.raises(Trespass):
        scene.run({"a": what.format(repo=scene.stage.repo)}, level="checkout")
    last = scene.record()[-1]
    assert isinstance(last, e.RunEnded)
    assert last.status is e.RunEnd.STOPPED
    assert "changed while the Player of a ran" in last.reason
    assert any("Running: " in line["text"] for line in scene.activity())
    assert os.environ.get("DEPLOY_TOKEN") is None
