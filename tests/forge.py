"""A forge for tests: bare repositories behind `ssh`, and a fake gh with its pull requests."""

import json
import os
import shutil
import stat
import sys
from pathlib import Path

from desk import Desk
from finished_run import BRANCH

GH = """\
#!{python}
import json, os, sys
from pathlib import Path
home = Path({home!r})
args = sys.argv[1:]
prs = json.loads((home / "prs.json").read_text())
calls = home / "calls.json"
options = {{name[2:]: value for name, value in zip(args, args[1:]) if name.startswith("--")}}
body = Path(options["body-file"]).read_text() if "body-file" in options else None
silent = os.environ.get("GH_PROMPT_DISABLED")
log = json.loads(calls.read_text()) + [{{"argv": args, "body": body, "prompts": silent}}]
calls.write_text(json.dumps(log))
if (home / "logged-out").exists():
    print("To get started with GitHub CLI, please run: gh auth login", file=sys.stderr)
    sys.exit(4)
if args[:2] == ["auth", "status"]:
    sys.exit(0 if options["hostname"] in (home / "hosts").read_text().split() else 1)
if args[:2] == ["pr", "list"]:
    states = ["OPEN", "CLOSED", "MERGED"] if (home / "shows-all").exists() else ["OPEN"]
    found = [p for p in prs if p["headRefName"] == options["head"] and p["state"] in states]
    print(json.dumps([{{k: p.get(k) for k in options["json"].split(",")}} for p in found]))
elif args[:2] == ["pr", "create"]:
    if (home / "refuses").exists():
        print("pull request create failed: GraphQL: no\\nmore", file=sys.stderr)
        sys.exit(1)
    owner, _, head = options["head"].rpartition(":")
    n = len(prs) + 1
    prs.append({{"number": n, "url": f"https://github.com/acme/app/pull/{{n}}", "state": "OPEN",
        "title": options["title"], "body": body, "isDraft": "--draft" in args,
        "baseRefName": options["base"], "headRefName": head, "isCrossRepository": bool(owner),
        "headRepositoryOwner": {{"login": owner or "acme"}}}})
    (home / "prs.json").write_text(json.dumps(prs))
    if (home / "lies").exists():
        sys.exit(1)
    print("Creating pull request for x into main in acme/app", file=sys.stderr)
    print(prs[-1]["url"])
elif args[:2] == ["pr", "edit"]:
    one = next(p for p in prs if str(p["number"]) == args[2])
    one.update(title=options["title"], body=body)
    (home / "prs.json").write_text(json.dumps(prs))
    print(one["url"])
else:
    sys.exit(2)
"""
"""Behaves like gh in the calls that Windlass makes, and logs them."""

SSH = """\
#!/bin/sh
# Called as ssh would be: the last argument is the command to run.
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
        """Hide gh from now on, even if the machine has one."""
        (self.bin / "gh").unlink()
        for name in ("git", "git-receive-pack", "git-upload-pack", "sh"):
            (self.bin / name).symlink_to(shutil.which(name) or "")
        self.environment["PATH"] = str(self.bin)

    def _program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def remote(self, name: str = "origin", path: str = "acme/app.git", host: str = "github.com"):
        """Add a remote with the base on it, at a host or in a folder of this machine."""
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

    def branch_commit(self, bare: Path, branch: str = BRANCH) -> str:
        found = self.desk.git("ls-remote", str(bare), f"refs/heads/{branch}")
        return found.split("\t")[0]
