"""Ways in which a tree, its `.git` or a configuration can make git run a program, as data.

Each has what is planted, and a plain git command that it works on: without one the vector would
prove nothing. `{c}` stands for the canary, a program that leaves a trace when it runs.
"""

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

ATTRIBUTES = "* filter=evil diff=evil merge=evil\n"
CLASH = (
    "git commit -qam mine; git checkout -qb other HEAD~1; echo theirs > README; "
    "git commit -qam theirs; git merge -q work"
)
SIGNED = (
    "git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n"
    " -----END PGP SIGNATURE-----' | git hash-object -t commit -w --stdin | xargs git log -1"
)


class Vector(NamedTuple):
    """What is planted where, and a command that it works on."""

    falls: str
    """A shell script for a planted checkout with a changed README; it starts the canary."""
    config: str = ""
    """Added to the checkout's own configuration."""
    files: Mapping[str, str] = {}
    """Files in the tree."""
    git: Mapping[str, str] = {}
    """Files in the checkout's `.git`; those in hooks/ are made executable."""
    swap: str = ""
    """What replaces `.git`: a file, link or commondir that leads to the attacker's repository."""
    nested: str = ""
    """A folder that becomes a repository of the attacker."""
    user: str = ""
    """Added to the user's own configuration, whose names a tree may use."""
    user_hook: str = ""
    """A hook of the user's own repository."""


def _hook(name: str, falls: str) -> Vector:
    return Vector(falls, git={f"hooks/{name}": "#!/bin/sh\n{c}\n"})


def _driver(config: str, falls: str, **more: Mapping[str, str]) -> Vector:
    return Vector(falls, config=config, files={".gitattributes": ATTRIBUTES}, **more)


VECTORS: dict[str, Vector] = {
    "fsmonitor": Vector("git status", config="[core]\nfsmonitor = {c}\n"),
    "hooksPath into the tree": Vector(
        "git add -A",
        config="[core]\nhooksPath = .evil\n",
        files={".evil/post-index-change": "#!/bin/sh\n{c}\n"},
    ),
    "hook pre-commit": _hook("pre-commit", "git commit -qam x"),
    "hook prepare-commit-msg": _hook("prepare-commit-msg", "git commit -qam x"),
    "hook commit-msg": _hook("commit-msg", "git commit -qam x"),
    "hook post-commit": _hook("post-commit", "git commit -qam x"),
    "hook post-rewrite": _hook("post-rewrite", "git commit -qa --amend -m x"),
    "hook post-checkout": _hook("post-checkout", "git checkout -qb x"),
    "hook post-index-change": _hook("post-index-change", "git add -A"),
    "hook reference-transaction": _hook("reference-transaction", "git update-ref refs/x HEAD"),
    "hook pre-merge-commit": _hook(
        "pre-merge-commit",
        "git commit -qam x; git checkout -qb o HEAD~1; git commit -q --allow-empty -m y;"
        "git merge -q --no-edit work",
    ),
    "hook post-merge": _hook(
        "post-merge", "git commit -qam x; git checkout -qb o HEAD~1; git merge -q work"
    ),
    "hook pre-rebase": _hook("pre-rebase", "git commit -qam x; git rebase -q -f HEAD~1"),
    "hook pre-push": _hook("pre-push", "git init -q --bare ../up; git push -q ../up HEAD"),
    "filter clean": _driver('[filter "evil"]\nclean = {c}; cat\n', "git add -A"),
    "filter smudge": _driver(
        '[filter "evil"]\nsmudge = {c}; cat\n', "rm README; git checkout -- README"
    ),
    "filter process": _driver('[filter "evil"]\nprocess = {c}\n', "git add -A"),
    "textconv": _driver('[diff "evil"]\ntextconv = {c}; cat\n', "git diff"),
    "diff driver": _driver('[diff "evil"]\ncommand = {c}\n', "git diff"),
    "external diff": Vector("git diff", config="[diff]\nexternal = {c}\n"),
    "merge driver": _driver('[merge "evil"]\ndriver = {c}\n', CLASH),
    "info/attributes": Vector(
        "git add -A",
        config='[filter "evil"]\nclean = {c}; cat\n',
        git={"info/attributes": ATTRIBUTES},
    ),
    "attributesFile": Vector(
        "git add -A",
        config='[core]\nattributesFile = .evil-attributes\n[filter "evil"]\nclean = {c}; cat\n',
        files={".evil-attributes": ATTRIBUTES},
    ),
    "editor": Vector("git commit -qa", config="[core]\neditor = {c}\n"),
    "sequence editor": Vector(
        "git commit -qam x; git rebase -q -i HEAD~1", config="[sequence]\neditor = {c}\n"
    ),
    "gpg": Vector("git commit -qam x", config="[commit]\ngpgSign = true\n[gpg]\nprogram = {c}\n"),
    "gpg by ssh": Vector(
        "git commit -qam x",
        config="[commit]\ngpgSign = true\n[user]\nsigningKey = key::x\n"
        '[gpg]\nformat = ssh\n[gpg "ssh"]\nprogram = {c}\n',
    ),
    "signatures shown": Vector(
        SIGNED, config="[log]\nshowSignature = true\n[gpg]\nprogram = {c}\n"
    ),
    "ssh": Vector("git fetch ssh://x/y", config="[core]\nsshCommand = {c}\n"),
    "proxy": Vector("git fetch git://127.0.0.1:9/x", config="[core]\ngitProxy = {c}\n"),
    "credential helper": Vector(
        "printf 'protocol=https\\nhost=x\\n' | git credential fill",
        config="[credential]\nhelper = !{c}\n",
    ),
    "askPass": Vector(
        "printf 'protocol=https\\nhost=x\\n' | git credential fill",
        config="[core]\naskPass = {c}\n",
    ),
    "include": Vector(
        "git status",
        config="[include]\npath = ../.evil.inc\n",
        files={".evil.inc": "[core]\nfsmonitor = {c}\n"},
    ),
    "includeIf": Vector(
        "git status",
        config='[includeIf "gitdir:/"]\npath = ../.evil.inc\n',
        files={".evil.inc": "[core]\nfsmonitor = {c}\n"},
    ),
    "worktree configuration": Vector(
        "git status",
        config="[extensions]\nworktreeConfig = true\n",
        git={"config.worktree": "[core]\nfsmonitor = {c}\n"},
    ),
    ".git a file": Vector("git status", swap="file"),
    ".git a link": Vector("git status", swap="link"),
    ".git borrowed": Vector("git status", swap="commondir"),
    "a repository inside": Vector("git add -A; git status", nested="sub/.git"),
    "a bare repository inside": Vector("git -C evil.git --work-tree=. status", nested="evil.git"),
    "submodule update": Vector(
        "git add -A; git -C sub commit -q --allow-empty -m x; git submodule update",
        config='[submodule "sub"]\nactive = true\nurl = ./sub\nupdate = !{c}\n',
        files={".gitmodules": '[submodule "sub"]\npath = sub\nurl = ./sub\n'},
        nested="sub/.git",
    ),
    "remote ext::": Vector(
        "git fetch evil",
        config='[remote "evil"]\nurl = ext::{c}\n[protocol "ext"]\nallow = always\n',
    ),
    "upload-pack": Vector("git fetch evil", config='[remote "evil"]\nurl = .\nuploadpack = {c}\n'),
    "a promise to fetch": Vector(
        "git cat-file -p 1234567890123456789012345678901234567890",
        config="[core]\nrepositoryformatversion = 1\n[extensions]\npartialClone = evil\n"
        '[remote "evil"]\nurl = .\npromisor = true\nuploadpack = {c}\n',
    ),
    "trailer command": Vector(
        "echo x | git interpret-trailers --trailer x=y", config='[trailer "x"]\ncmd = {c}\n'
    ),
    "difftool": Vector("git difftool -y -t evil", config='[difftool "evil"]\ncmd = {c}\n'),
    "the user's own filter": Vector(
        "git add -A",
        files={".gitattributes": ATTRIBUTES},
        user='[filter "evil"]\nclean = {c}; cat\nsmudge = {c}; cat\n',
    ),
    "the user's own drivers": Vector(
        "git diff",
        files={".gitattributes": ATTRIBUTES},
        user='[diff "evil"]\ntextconv = {c}; cat\n[merge "evil"]\ndriver = {c}\n',
    ),
    "the user's own fsmonitor": Vector("git status", user="[core]\nfsmonitor = {c}\n"),
    "the user's own hook": Vector("git update-ref refs/x HEAD", user_hook="reference-transaction"),
    "a git on PATH": Vector(
        "chmod +x git; PATH=.:$PATH git status", files={"git": "#!/bin/sh\n{c}\n"}
    ),
}

SWAPPED = {name for name, v in VECTORS.items() if v.swap}
NESTED = {name for name, v in VECTORS.items() if v.nested}
USERS = {name for name, v in VECTORS.items() if v.user or v.user_hook}


class Planter:
    """Plants vectors whose canaries write into one folder."""

    def __init__(self, root: Path, attacker: Callable[[str], Path]) -> None:
        self._root = root
        self._attacker = attacker
        self.canaries = root / "canaries"
        self.canaries.mkdir()

    def canary(self, name: str) -> str:
        """A program that gives itself away, and a word for a configuration to name it by."""
        slug = "".join(char if char.isalnum() else "-" for char in name)
        script = self._root / f"evil-{slug}"
        script.write_text(f"#!/bin/sh\ntouch '{self.canaries}/{slug}'\n")
        script.chmod(0o755)
        return str(script)

    @property
    def sprung(self) -> list[str]:
        return sorted(path.name for path in self.canaries.iterdir())

    def forget(self) -> None:
        for path in self.canaries.iterdir():
            path.unlink()

    def plant(self, checkout: Path, *names: str) -> None:
        """Plant these in a checkout, in addition to earlier ones."""
        for name in names:
            vector, c = VECTORS[name], self.canary(name)
            for path, text in vector.files.items():
                self._write(checkout / path, text.replace("{c}", c))
            git = checkout / ".git"
            for path, text in vector.git.items():
                self._write(git / path, text.replace("{c}", c))
            if vector.config:
                with (git / "config").open("a") as file:
                    file.write(vector.config.replace("{c}", c))
            if vector.nested:
                target = checkout / vector.nested
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(self._attacker(c), target)
                (target.parent / "file").write_text("x\n")
        for name in names:
            if VECTORS[name].swap:
                self._swap(checkout / ".git", VECTORS[name].swap, self.canary(name))

    def plant_in_user(self, repo: Path, *names: str) -> None:
        """Plant the user's part of these in the user's repository."""
        for name in names:
            vector, c = VECTORS[name], self.canary(name)
            with (repo / ".git/config").open("a") as file:
                file.write(vector.user.replace("{c}", c))
            if vector.user_hook:
                self._write(repo / ".git/hooks" / vector.user_hook, f"#!/bin/sh\n{c}\n")

    def _swap(self, git: Path, how: str, c: str) -> None:
        attacker = self._attacker(c)
        if how == "commondir":
            (git / "commondir").write_text(f"{attacker}\n")
            return
        shutil.rmtree(git)
        if how == "file":
            git.write_text(f"gitdir: {attacker}\n")
        else:
            git.symlink_to(attacker)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if "hooks" in path.parts or text.startswith("#!"):
            path.chmod(0o755)


def attackers_repository(root: Path, environment: Mapping[str, str], c: str) -> Path:
    """A repository of the attacker with one commit, which starts the canary on `git status`."""
    place = root / f"attacker-{len(list(root.glob('attacker-*')))}"
    script = (
        f"git init -q '{place}' && cd '{place}' && echo x > README && git add -A && "
        f"git -c user.name=e -c user.email=e@e commit -qm x && git config core.fsmonitor '{c}'"
    )
    subprocess.run(["sh", "-c", script], env=dict(environment), check=True)
    return place / ".git"
