"""Twenty secrets in environment, files and what agents say: none is in anything Windlass writes.

Journal, logs, activity, state files, prompts, reports of checks, the box's own /proc.
"""

import base64
import contextlib
import hashlib
import json
import re
import subprocess
import sys
import textwrap
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from urllib.parse import quote, unquote

import anyio
import pytest
from msgspec.structs import replace

from receiver import receiving
from windlass.adapters.sandbox import Box, Sandbox
from windlass.adapters.sandbox import commands as processes
from windlass.adapters.sandbox.plain import Plain
from windlass.app.plans import read_plan
from windlass.app.wiring import Observers, Project, World, started
from windlass.app.wiring.metering import RunLedger
from windlass.core.events.model import Failure, Usage
from windlass.core.events.review import Issue, PlayerAnswer
from windlass.core.events.values import Amount
from windlass.core.secrets import Redactor
from windlass.core.settings import (
    NotifySettings,
    PolicySettings,
    SandboxSettings,
    Settings,
    TelemetrySettings,
)
from windlass.formats import writes
from windlass.ports import Activity, Ask, Brief, Held, Report, Watch
from windlass.testing.agents import approval
from windlass.testing.stage import Stage

BODY = base64.b64encode(b"".join(hashlib.sha256(bytes([n])).digest() for n in range(40))).decode()
PEM_LINES = [
    "-----BEGIN CANARY26 PRIVATE KEY-----",
    *textwrap.wrap(BODY, 64),
    "-----END CANARY26 PRIVATE KEY-----",
]
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
    "GITHUB_PAT": "canary23-pat-eeeeeeee",
    "SENTRY_DSN": "https://canary24feedfacefeedface@sentry.example/1",
    "DATABASE_URL": "postgres://app:canary25%2Fpass@db.example/app",
    "DEPLOY_KEY": "\n".join(PEM_LINES) + "\n",
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
KEY_FILE = "keys/account.json"
"""What GOOGLE_APPLICATION_CREDENTIALS names: the path is no secret, what is in the file is."""
ACCOUNT = '{\n  "private_key_id": "canary27-account",\n  "project": "windlass"\n}\n'
CANARIES = [
    *(value.strip() for value in (*ENVIRONMENT.values(), *FILES.values())),
    *(line for line in PEM_LINES if len(line) >= 16),
    "canary24feed", "canary25/pass", "canary25%2Fpass", "canary27-account",
]  # fmt: skip
SAID = "\n".join((
    *(value.strip() for value in ENVIRONMENT.values()),
    *(f"+{line}" for line in PEM_LINES),
    *(f"  | {line}\\n" for line in PEM_LINES),
    "password canary25/pass", "key canary27-account",
    # As programs and models like to write them.
    *(json.dumps(json.dumps(value)) for value in ENVIRONMENT.values()),
    *(quote(value, safe="") for value in ENVIRONMENT.values()),
    *(base64.b64encode(f"{n}{value}".encode()).decode() for value in ENVIRONMENT.values()
      for n in ("", "a", "ab")),
    base64.encodebytes(ENVIRONMENT["DEPLOY_KEY"].encode()).decode(),
    *(value.encode().hex() for value in ENVIRONMENT.values()),
))  # fmt: skip
"""All that Windlass can know for a secret, as an agent or a check would say it."""
PLAN = "# Milestone: Talk\n\n## Task 1.1: Talk\n\n**Acceptance Criteria:**\n- [ ] said\n"


def undone(text: str) -> Iterator[str]:
    """A text, and what is in it once base64, hex, escapes and URLs are read, line by line."""
    yield text
    yield unquote(text)
    yield text.replace("\\\\", "\\").replace('\\"', '"')
    for decode in (base64.b64decode, bytes.fromhex):
        for word in re.findall(r"[A-Za-z0-9+/=]{16,}", text):
            with contextlib.suppress(ValueError):
                yield decode(word).decode(errors="replace")


def leaks(texts: Mapping[str, str], canaries: Sequence[str] = CANARIES) -> list[tuple[str, str]]:
    """Which secret is where, in any disguise."""
    return [
        (name, canary)
        for name, text in texts.items()
        for shown in undone(text)
        for canary in canaries
        if canary in shown
    ]


def pinned(repo: Path) -> dict[str, str]:
    """All that Windlass's refs hold, but for the trees, whose content is the agents' own."""

    def git(*args: str) -> str:
        done = subprocess.run(["git", *args], cwd=repo, capture_output=True, check=True)
        return done.stdout.decode(errors="replace")

    texts = {"refs": git("for-each-ref", "--format=%(refname)", "refs/windlass", "refs/heads")}
    for line in git("for-each-ref", "--format=%(objecttype) %(refname)", "refs/windlass").split(
        "\n"
    ):
        kind, _, ref = line.partition(" ")
        if kind == "blob":
            texts[ref] = git("cat-file", "blob", ref)
    for commit in git("rev-list", "--glob=refs/windlass/*", "--glob=refs/heads/*").split():
        texts[f"commit {commit}"] = git("cat-file", "commit", commit)
    return texts


def with_key_file(folder: Path) -> dict[str, str]:
    account = folder / KEY_FILE
    account.parent.mkdir()
    account.write_text(ACCOUNT)
    return {**ENVIRONMENT, "GOOGLE_APPLICATION_CREDENTIALS": str(account)}


class Leaky:
    """A Player that looks everywhere, and says and writes all that it was told elsewhere."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sandbox: Sandbox | None = None
        self.prompts: list[str] = []
        self.seen = ""
        self.ledger = RunLedger()

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        told = (*brief.criteria, *brief.checks, *brief.names, brief.feedback)
        self.prompts.append("\n".join((brief.prompt, *told)))
        cent = Amount(usd=0.01)
        model = f"claude {SAID}"
        ask = Ask(task=brief.task, role=brief.role, model=model, most=cent, least=cent)
        held = self.ledger.reserve(ask)
        assert isinstance(held, Held)
        self.ledger.settle(held.id, Usage())
        for line in (*SAID.splitlines(), SAID):
            watch(Activity(task=brief.task, kind="text", text=line))
        if brief.role == "coach":
            review = approval(brief)
            said = tuple(replace(each, evidence=SAID) for each in review.evidence)
            issue = Issue(severity="nice_to_have", category=SAID, description=SAID, file=SAID)
            answer = replace(review, summary=SAID, evidence=said, issues=(issue,))
            return Report(answer=answer, summary=SAID)
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
        if brief.n > 1:
            Path(workspace, "fixed.txt").write_text("so that a Coach gets to look at it")
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
    variables = with_key_file(tmp_path)
    project = Project(stage.repo, {**stage.environment, **variables})
    plan, agent = read_plan(project, "plan.md"), Leaky(tmp_path)
    # A command may name one itself; and the first turn is sent back, so that feedback is made.
    failing = f"echo '{ENVIRONMENT['GITHUB_TOKEN']}'; cat said.txt; test -e fixed.txt"
    settings = Settings(
        checks=(check, failing),
        max_turns=2,
        policy=PolicySettings(red_base="go"),
        sandbox=SandboxSettings(level="bwrap"),
    )
    with project.journals.session(plan.id) as session:
        world = World(project, plan.id, "r1", settings, session, agent=agent, writes=writes(plan))
        agent.sandbox = world.sandbox
        first = started("r1", plan, settings, project.git.base(None, plan.id), "bwrap")
        shown: list[str] = []
        anyio.run(
            partial(
                world.run,
                (first,),
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
    texts |= bundled(stage, variables) | bundled(stage, variables, "--with-texts")
    told = pinned(stage.repo)
    assert any("/verdict-" in ref and "redacted DEPLOY_KEY" in text for ref, text in told.items())
    for command in (
        ("report", "--output", "-"),
        ("log", "plan"),
        ("status", "--json"),
        ("doctor",),
    ):
        told[command[0]] = spoken(stage, variables, *command)
    assert leaks({**texts, **told}) == []


def spoken(stage: Stage, variables: Mapping[str, str], *command: str) -> str:
    """All that a command says, of a process of its own that knows the same secrets."""
    done = subprocess.run(
        [sys.executable, "-m", "windlass", *command],
        cwd=stage.repo,
        env={**stage.environment, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.stdout + done.stderr


def bundled(stage: Stage, variables: Mapping[str, str], *options: str) -> dict[str, str]:
    """All that a bundle holds, made by a process of its own that knows the same secrets."""  # B13
    path = stage.root / "bundle.zip"
    done = subprocess.run(
        [sys.executable, "-m", "windlass", "bundle", "--output", str(path), *options],
        cwd=stage.repo,
        env={**stage.environment, **variables},
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
            return Report(answer=replace(approval(brief), summary=SAID))
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
        variables |= with_key_file(tmp_path)
        project = Project(stage.repo, {**stage.environment, **variables})
        plan = read_plan(project, "plan.md")
        settings = Settings(
            telemetry=TelemetrySettings(prometheus="127.0.0.1:0", contents=True),
            notify=NotifySettings(webhook="SLACK_WEBHOOK_URL"),
            model=f"model-{told}",
        )
        observers = Observers(project, plan.id, settings, notify=None, report=said.append)
        with project.journals.session(plan.id) as session:
            world = World(project, plan.id, "r1", settings, session, agent=Talker())
            first = started(
                "r1", plan, settings, project.git.base(None, plan.id), world.sandbox.level
            )
            observers.open(tuple)
            observed = partial(
                world.run, (first,), observe=observers.follow, watch=lambda _activity: None
            )
            anyio.run(observed)
        page = said[0].split()[-1]
        with urllib.request.urlopen(page, timeout=20) as answer:  # noqa: S310  loopback
            metrics = answer.read().decode()
        observers.close()
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
    assert leaks(everything, hidden) == []


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
