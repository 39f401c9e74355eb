"""A project with a run that is over, made once and copied for each test: real git, real checks."""

import json
import os
import shutil
import stat
import sys
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import mkdtemp
from unittest.mock import patch

import anyio

from desk import Answer, Desk
from windlass.app.plans import read_plan
from windlass.app.wiring import Project, World, started
from windlass.cli.main import call
from windlass.core.settings import PolicySettings, SandboxSettings, Settings
from windlass.formats import writes
from windlass.testing.agents import Play, ScriptedAgent

PLAN = """\
# Milestone: Health "check" $(touch owned)

## Task 1.1: Add the endpoint

**Acceptance Criteria:**
- [ ] answers @everyone with 200, fixes #1

## Task 1.2: Document it

**Acceptance Criteria:**
- [ ] README.md names it
"""
TITLE = 'Health "check" $(touch owned)'
BRANCH = "windlass/plan/integration"


class Near(Desk):
    """A desk whose commands are called in this very process, which is much quicker."""

    def call(self, *args: str, without: Iterable[str] = (), **more: str) -> Answer:
        env = {k: v for k, v in {**self.environment, **more}.items() if k not in set(without)}
        # Over bytes, for some commands print those.
        out, err = (TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2))
        here = [*args, "--repo", str(self.directory)]
        with patch.dict(os.environ, env, clear=True), redirect_stdout(out), redirect_stderr(err):
            code = call(here)
        return Answer(code, *(each.buffer.getvalue().decode() for each in (out, err)))


def finished(root: Path, *, failing: str = "") -> Near:
    """A desk of its own with that run in it; the second task is given up where it fails."""
    shutil.copytree(_made(failing), root, dirs_exist_ok=True, symlinks=True)
    return Near(root)


@cache
def _made(failing: str) -> Path:
    root = Path(mkdtemp(prefix="windlass-tests-"))
    desk = Desk(root)
    desk.build({"plan.md": PLAN, "README.md": "hello\n"})
    project = Project(desk.repo, desk.environment)
    plan = read_plan(project, "plan.md")
    settings = Settings(
        checks=("test ! -e bad",),
        max_turns=1,
        policy=PolicySettings(red_base="go"),
        sandbox=SandboxSettings(level="checkout"),
    )
    agent = ScriptedAgent({
        "1.1": Play(edits={"health.py": "ok\n"}, summary="# Done\n<b>@octocat</b> closes #12"),
        "1.2": Play(edits={failing or "docs.md": "see health\n"}, summary="Documented."),
    })  # fmt: skip
    with project.journals.session(plan.id) as session:
        world = World(project, plan.id, "r1", settings, session, agent=agent, writes=writes(plan))
        first = started("r1", plan, settings, project.git.base(None, plan.id), "checkout")
        nothing = lambda *_: None  # noqa: E731
        anyio.run(partial(world.run, (first,), observe=nothing, watch=nothing))
    desk.git("add", "--all")
    desk.git("commit", "--quiet", "--allow-empty", "--message", "What state files say")
    desk.git("reset", "--quiet", "--hard", "HEAD~1")
    return root


GH = """\
#!{python}
import json, os, sys
from pathlib import Path
home = Path({home!r})
args = sys.argv[1:]
prs = json.loads((home / "prs.json").read_text())
calls = home / "calls.json"
said = {{name[2:]: value for name, value in zip(args, args[1:]) if name.startswith("--")}}
body = Path(said["body-file"]).read_text() if "body-file" in said else None
silent = os.environ.get("GH_PROMPT_DISABLED")
log = json.loads(calls.read_text()) + [{{"argv": args, "body": body, "prompts": silent}}]
calls.write_text(json.dumps(log))
if (home / "logged-out").exists():
    print("To get started with GitHub CLI, please run: gh auth login", file=sys.stderr)
    sys.exit(4)
if args[:2] == ["auth", "status"]:
    sys.exit(0 if said["hostname"] in (home / "hosts").read_text().split() else 1)
if args[:2] == ["pr", "list"]:
    all_ = (home / "shows-all").exists()
    found = [p for p in prs if p["headRefName"] == said["head"] and (all_ or p["state"] == "OPEN")]
    print(json.dumps([{{k: p.get(k) for k in said["json"].split(",")}} for p in found]))
elif args[:2] == ["pr", "create"]:
    if (home / "refuses").exists():
        print("pull request create failed: GraphQL: no\\nmore", file=sys.stderr)
        sys.exit(1)
    owner, _, head = said["head"].rpartition(":")
    n = len(prs) + 1
    prs.append({{"number": n, "url": f"https://github.com/acme/app/pull/{{n}}", "state": "OPEN",
        "title": said["title"], "body": body, "isDraft": "--draft" in args,
        "baseRefName": said["base"], "headRefName": head, "isCrossRepository": bool(owner),
        "headRepositoryOwner": {{"login": owner or "acme"}}}})
    (home / "prs.json").write_text(json.dumps(prs))
    if (home / "lies").exists():
        sys.exit(1)
    print("Creating pull request for x into main in acme/app", file=sys.stderr)
    print(prs[-1]["url"])
elif args[:2] == ["pr", "edit"]:
    one = next(p for p in prs if str(p["number"]) == args[2])
    one.update(title=said["title"], body=body)
    (home / "prs.json").write_text(json.dumps(prs))
    print(one["url"])
else:
    sys.exit(2)
"""
"""Behaves like gh as far as it is called, and writes down how it was."""

SSH = """\
#!/bin/sh
# Called as ssh would be: what to run there is the last word.
for last; do :; done
cd {root!r} && exec sh -c "$last"
"""


class Forge:
    """Bare repositories behind an `ssh`, and a gh that keeps pull requests in a file."""

    def __init__(self, desk: Desk, root: Path) -> None:
        self.desk, self.root, self.home = desk, root, root / "gh-home"
        self.bin = root / "bin"
        self.home.mkdir(parents=True)
        self.bin.mkdir()
        (self.home / "prs.json").write_text("[]")
        (self.home / "calls.json").write_text("[]")
        (self.home / "hosts").write_text("git.example.com")
        self._program("gh", GH.format(python=sys.executable, home=str(self.home)))
        self._program("fake-ssh", SSH.format(root=str(root)))
        self.environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "GIT_SSH_COMMAND": str(self.bin / "fake-ssh"),
        }

    def without_gh(self) -> None:
        """From now on there is none, wherever the machine may have one."""
        (self.bin / "gh").unlink()
        for name in ("git", "git-receive-pack", "git-upload-pack", "sh"):
            (self.bin / name).symlink_to(shutil.which(name) or "")
        self.environment["PATH"] = str(self.bin)

    def _program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def remote(self, name: str = "origin", path: str = "acme/app.git", host: str = "github.com"):
        """A remote at a host, with the base on it; without a host, a folder of this machine."""
        bare = self.root / path
        self.desk.git("init", "--quiet", "--bare", str(bare))
        url = f"git@{host}:{path}" if host else str(bare)
        self.desk.git("remote", "add", name, url)
        self.desk.git("push", "--quiet", str(bare), "main")
        return bare

    @property
    def prs(self) -> list[dict[str, object]]:
        return json.loads((self.home / "prs.json").read_text())

    def calls(self, what: str = "") -> list[dict[str, object]]:
        every = json.loads((self.home / "calls.json").read_text())
        return [call for call in every if not what or call["argv"][1] == what]

    def set(self, name: str) -> None:
        (self.home / name).write_text("")

    def stands(self, bare: Path, branch: str = BRANCH) -> str:
        found = self.desk.git("ls-remote", str(bare), f"refs/heads/{branch}")
        return found.split("\t")[0]
