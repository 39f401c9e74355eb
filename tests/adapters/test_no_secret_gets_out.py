"""Twenty secrets in environment, files and what agents say: none is in anything Windlass writes.

Journal, logs, activity, state files, prompts, reports of checks, the box's own /proc.
"""

import subprocess
import sys
import urllib.request
import zipfile
from functools import partial
from pathlib import Path, PurePath

import anyio
import pytest
from msgspec.structs import replace

from receiver import receiving
from windlass.adapters import processes
from windlass.adapters.sandbox import Box, Sandbox
from windlass.adapters.sandbox.plain import Plain
from windlass.cli.finding import read_plan
from windlass.cli.wiring import Outside, Project, World, started
from windlass.dialects import writes
from windlass.events.model import Failure
from windlass.events.review import PlayerAnswer
from windlass.ports import Activity, Brief, Report, Watch
from windlass.secrets import Redactor
from windlass.settings import (
    NotifySettings,
    PolicySettings,
    SandboxSettings,
    Settings,
    TelemetrySettings,
)
from windlass.testing.agents import approval
from windlass.testing.stage import Stage

ENVIRONMENT = {
    "ANTHROPIC_API_KEY": "sk-ant-canary-01-aaaaaaaa",
    "GITHUB_TOKEN": "ghp_canary02bbbbbbbb",
    "AWS_SECRET_ACCESS_KEY": "canary03/cccc+cccc==",
    "DB_PASSWORD": "canary04 with spaces",
    "PGPASSWORD": "canary05\"with'quotes",
    "npm_config__authToken": "canary06-dddddddd",
    "MY_SECRET_THING": "canary07\\back\\slash",
    "SLACK_TOKEN": "canary08-ünïcödé",
    "MULTI_LINE_KEY": "-----BEGIN canary09-----\nline one\nline two\n-----END-----",
    "STRIPE_KEY": "  canary10-padded  ",
    "LONG_TOKEN": "canary11-" + "x" * 700,
    "PREFIX_KEY": "canary12-abc",
    "PREFIX_LONGER_KEY": "canary12-abc-and-more",
    "TWILIO_AUTH_TOKEN": "canary13%2Furl%20encoded",
}
FILES = {
    ".ssh/id_ed25519": "canary14-private-key",
    ".netrc": "canary15-netrc-login",
    ".aws/credentials": "canary16-aws-file",
    ".config/gh/hosts.yml": "canary17-gh-login",
    ".claude/.credentials.json": "canary18-claude-login",
    ".npmrc": "canary19-npm-login",
    "repo/.env": "canary20-dot-env",
}
CANARIES = [value.strip() for value in (*ENVIRONMENT.values(), *FILES.values())]
SAID = "\n".join(value.strip() for value in ENVIRONMENT.values())
"""All that Windlass can know for a secret, as an agent or a check would say it."""
PLAN = "# Milestone: Talk\n\n## Task 1.1: Talk\n\n**Acceptance Criteria:**\n- [ ] said\n"


class Leaky:
    """A Player that looks everywhere, and says and writes all that it was told elsewhere."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sandbox: Sandbox | None = None
        self.prompts: list[str] = []
        self.seen = ""

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        self.prompts.append(brief.prompt)
        for line in (*SAID.splitlines(), SAID):
            watch(Activity(task=brief.task, kind="text", text=line))
        if brief.role == "coach":
            return Report(answer=approval(brief.prompt), summary=SAID)
        assert self.sandbox is not None
        look = (
            "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; cat ~/.ssh/* ~/.netrc ~/.npmrc "
            "~/.aws/* ~/.config/gh/* ~/.claude/.cred*; "
            f"find '{self.root}' -name .env -exec cat '{{}}' +"
        )
        box = Box(checkout=Path(workspace), network=True)
        done = await processes.run(
            self.sandbox, box, ["sh", "-c", look], timeout=60, tail=1_000_000
        )
        self.seen = done.output
        # A program that prints them: a check runs it, its feedback comes back to the next Player.
        Path(workspace, "said.txt").write_text(SAID)
        return Report(summary=f"I know {SAID}", message=SAID)


def test_none_of_twenty_secrets_is_in_what_windlass_writes(tmp_path: Path):  # S13 B5
    assert len(CANARIES) >= 20
    stage = Stage(tmp_path, "http://127.0.0.1:9")
    check = "cat said.txt 2>/dev/null; cat said.txt >&2; test $(ls | wc -l) -lt 99"
    stage.build({"plan.md": PLAN, "README.md": "hello\n", "AGENTS.md": f"Use {SAID}\n"})
    for name, value in FILES.items():
        path = tmp_path / name if name.startswith("repo/") else stage.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"token={value}\n")
    project = Project(stage.repo, {**stage.environment, **ENVIRONMENT})
    plan, agent = read_plan(project, "plan.md"), Leaky(tmp_path)
    # A command may name one itself; and the first turn is sent back, so that feedback is made.
    failing = f"test -e never; echo '{ENVIRONMENT['GITHUB_TOKEN']}'; cat said.txt; exit 1"
    settings = Settings(
        checks=(check, failing),
        max_turns=2,
        policy=PolicySettings(red_base="go"),
        sandbox=SandboxSettings(level="bwrap"),
    )
    with project.holding(plan.id) as journal:
        world = World(project, plan.id, "r1", settings, journal, agent=agent, writes=writes(plan))
        agent.sandbox = world.sandbox
        first = started("r1", plan, settings, project.base(None, plan.id), "bwrap")
        shown: list[str] = []
        anyio.run(
            partial(
                world.haul,
                (first,),
                None,
                observe=lambda entry, _state: shown.append(repr(entry)),
                watch=lambda activity: shown.append(activity.text),
            )
        )

    written = {
        str(path): path.read_bytes()
        for path in [*stage.repo.glob(".windlass/**/*"), *stage.repo.glob("state/*")]
        if path.is_file() and "workspaces" not in path.parts
    }
    assert {Path(name).name for name in written} >= {"journal.db", "state.json", "activity.jsonl"}
    assert any(name.endswith(".log") and b"redacted" in data for name, data in written.items())
    assert any("redacted DB_PASSWORD" in line for line in shown)
    assert any("[redacted GITHUB_TOKEN]" in prompt for prompt in agent.prompts)
    texts = {**{n: d.decode(errors="replace") for n, d in written.items()}, "seen": agent.seen}
    texts |= {f"prompt {n}": prompt for n, prompt in enumerate(agent.prompts)}
    texts |= {f"screen {n}": line for n, line in enumerate(shown)}
    texts |= bundled(stage) | bundled(stage, "--with-texts")
    leaks = [
        (name, canary) for name, text in texts.items() for canary in CANARIES if canary in text
    ]
    assert leaks == []


def bundled(stage: Stage, *options: str) -> dict[str, str]:
    """All that a bundle holds, made by a process of its own that knows the same secrets."""  # B13
    path = stage.root / "bundle.zip"
    done = subprocess.run(
        [sys.executable, "-m", "windlass", "bundle", "--output", str(path), *options],
        cwd=stage.repo,
        env={**stage.environment, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=True,
    )
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name).decode() for name in archive.namelist()}
    assert {Path(name).name for name in held} >= {"journal.jsonl", "state.json", "doctor.txt"}
    if not options:
        assert "I know" not in held["windlass-bundle/plans/plan/journal.jsonl"]
    return held | {"bundle's own words": done.stdout + done.stderr}


class Talker:
    """A Player that fails with all it knows, then works and says it; a Coach that says it too."""

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        if brief.role == "coach":
            return Report(answer=replace(approval(brief.prompt), summary=SAID))
        if brief.n == 1:
            return Report(failure=Failure.STALLED, message=f"{SAID} ")
        if brief.task == "1.2":
            return Report(answer=PlayerAnswer(summary=SAID, question=f"May I use {SAID}"))
        Path(workspace, "said.txt").write_text("done")
        return Report(summary=SAID, answer=PlayerAnswer(summary=SAID))


def test_nor_in_what_leaves_by_telemetry_or_notices(tmp_path: Path):  # B5 K9 K10
    """Attributes, error texts, labels, titles; also where a title is cut in the middle of one."""
    told = ENVIRONMENT["GITHUB_TOKEN"]
    title = f"Talk {told} {'x' * 270} {ENVIRONMENT['LONG_TOKEN']}"
    plan_text = (
        f"# Milestone: Talk {told}\n\n## Task 1.1: {title}\n\n**Acceptance Criteria:**\n- [ ] a\n"
        f"\n## Task 1.2: Ask {told}\n\n**Depends on:** none\n"
    )
    stage = Stage(tmp_path, "http://127.0.0.1:9")
    stage.build({"plan.md": plan_text, "README.md": "hello\n"})
    said: list[str] = []
    with receiving() as receiver:
        hook = f"{receiver.url}/canary21-hook"
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
            "OTEL_EXPORTER_OTLP_HEADERS": "x-auth=canary22-header",
            "OTEL_RESOURCE_ATTRIBUTES": f"who={told}",
            "SLACK_WEBHOOK_URL": hook,
        }
        project = Project(stage.repo, {**stage.environment, **ENVIRONMENT, **variables})
        plan = read_plan(project, "plan.md")
        settings = Settings(
            telemetry=TelemetrySettings(prometheus="127.0.0.1:0", contents=True),
            notify=NotifySettings(webhook="SLACK_WEBHOOK_URL"),
            model=f"model-{told}",
        )
        outside = Outside(project, plan.id, settings, notify=None, say=said.append)
        with project.holding(plan.id) as journal:
            world = World(project, plan.id, "r1", settings, journal, agent=Talker())
            first = started("r1", plan, settings, project.base(None, plan.id), world.sandbox.level)
            outside.open(tuple)
            observed = partial(
                world.haul, (first,), None, observe=outside.follow, watch=lambda _activity: None
            )
            anyio.run(observed)
        page = said[0].split()[-1]
        with urllib.request.urlopen(page, timeout=20) as answer:  # noqa: S310  loopback
            metrics = answer.read().decode()
        outside.close()
        names = {span.name for span in receiver.spans}
        got = enumerate(receiver.got)
        sent = {f"{n} {each.path}": each.body.decode(errors="replace") for n, each in got}
    assert names >= {"orchestrator.milestone", "orchestrator.turn", "invoke_agent Coach"}
    assert {got.path for got in receiver.got} >= {"/v1/traces", "/v1/metrics", "/canary21-hook"}
    assert 'orchestrator_tasks_total{milestone="plan"' in metrics
    spans = "".join(text for name, text in sent.items() if name.endswith("traces"))
    assert "[redacted LONG_TOKEN]" in spans
    assert "[redacted GITHUB_TOKEN]" in "".join(str(each) for each in receiver.documents)
    everything = {**sent, "metrics": metrics, "screen": "\n".join(said)}
    hidden = [*CANARIES, "canary21", "canary22", ENVIRONMENT["LONG_TOKEN"][:30]]
    leaks = [(name, c) for name, text in everything.items() for c in hidden if c in text]
    assert leaks == []


@pytest.mark.parametrize("tail", [10, 30, 4000])
def test_a_secret_is_taken_out_before_anything_is_cut(tail: int, tmp_path: Path):  # S13
    """Else the end of what was printed would begin with the end of a secret."""
    secret = "canary-cut-0123456789"
    redactor = Redactor({"A_TOKEN": secret})
    plain = Plain("none", home=tmp_path, environment={"PATH": "/usr/bin:/bin"}, marker="cut")
    box, log = Box(checkout=tmp_path, network=False), tmp_path / "log"
    # In two writes, so that it comes in two pieces.
    script = f"import sys, time; sys.stdout.write('x' * 50 + '{secret[:9]}'); sys.stdout.flush();"
    script += f"time.sleep(.2); sys.stdout.write('{secret[9:]}')"
    job = partial(processes.run, plain, box, [sys.executable, "-c", script], timeout=20, tail=tail)
    done = anyio.run(partial(job, log=log, redactor=redactor))
    assert done.output == f"{'x' * 50}[redacted A_TOKEN]"[-tail:]
    assert log.read_text() == f"{'x' * 50}[redacted A_TOKEN]"
