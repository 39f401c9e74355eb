"""The profile for macOS, read as its kernel reads it: the last rule that fits counts.

Nothing here needs a Mac: rules and command lines are judged by a small reading of their own, and a
stand-in for `sandbox-exec` shows that a box comes up around them.
"""

import re
import shutil
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest

from windlass.adapters.sandbox.box import Box
from windlass.adapters.sandbox.commands import run
from windlass.adapters.sandbox.seatbelt import Seatbelt
from windlass.errors import ConfigError

KEYS = (".ssh/id", ".aws/credentials", ".netrc", ".claude/x", "Library/Keychains/login.keychain-db")


class Mac:
    """A user with keys and tools, a repository, and a checkout of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "Users/ann"
        self.repo = self.home / "project"
        self.checkout = self.repo / ".windlass/plans/p/workspaces/t"
        self.checkout.mkdir(parents=True)
        for key in KEYS:
            (self.home / key).parent.mkdir(parents=True, exist_ok=True)
            (self.home / key).write_text("private")
        (self.home / ".pyenv/shims").mkdir(parents=True)
        self.outside = root / "out"
        self.outside.mkdir()

    def sandbox(self, **more: object) -> Seatbelt:
        given: dict[str, object] = {
            "home": self.home,
            "repository": self.repo,
            "path": f"{self.home}/.pyenv/shims:/opt/homebrew/bin:/usr/bin:/bin:.",
            "environment": {"HOME": str(self.home), "GITHUB_TOKEN": "ghp-secret", "LANG": "C"},
            "marker": "run",
            "places": self.repo / ".windlass/boxes",
            **more,
            "read": (self.repo / ".git/objects", *more.get("read", ())),
        }
        return Seatbelt(**given)  # pyright: ignore[reportArgumentType]

    def box(self, *, network: bool = False, **more: object) -> Box:
        return Box(checkout=self.checkout, network=network, **more)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def mac(tmp_path: Path) -> Mac:
    return Mac(tmp_path)


def rules(profile: str) -> list[list]:
    """The profile as nested lists; a string keeps its quotes, so that none is taken for a word."""
    tokens = re.findall(r'#?"(?:\\.|[^"\\])*"|[()]|[^\s()"]+', profile)
    stack: list[list] = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    assert len(stack) == 1, "the brackets do not agree"
    return stack[0]


def allowed(profile: str, operation: str, subject: str, extension: str = "") -> bool:
    """Whether the profile lets this be done with that path, service or address.

    `extension` is the mark that the kernel has given the box for it, if any.
    """
    verdict = False
    for head, *rest in rules(profile):
        if head not in {"allow", "deny"}:
            continue
        operations = [item for item in rest if isinstance(item, str)]
        filters = [item for item in rest if isinstance(item, list)]
        if any(_covers(each, operation) for each in operations) and (
            not filters or any(_fits(each, subject, extension) for each in filters)
        ):
            verdict = head == "allow"
    return verdict


def _covers(rule: str, operation: str) -> bool:
    return rule in {"default", operation} or (
        rule.endswith("*") and operation.startswith(rule.removesuffix("*"))
    )


def _fits(filter_: list, subject: str, extension: str) -> bool:
    kind, *values = filter_
    if kind == "require-all":
        return all(_fits(each, subject, extension) for each in values)
    text = re.sub(r"\\(.)", r"\1", values[-1].removeprefix("#")[1:-1]) if values else ""
    match kind:
        case "subpath":
            return subject == text or subject.startswith(f"{text}/")
        case "extension":
            return extension == text
        case "literal" | "global-name":
            return subject == text
        case "regex":
            return re.search(text, subject) is not None
        case "remote" | "local":
            return subject == values[0]
        case "target":
            return subject == values[0]
    raise AssertionError(filter_)


def test_only_the_checkout_and_the_boxs_own_place_can_be_written(mac: Mac):  # B5 G4
    sandbox, box = mac.sandbox(), mac.box()
    profile, environment = sandbox.profile(box), sandbox.environment(box)
    for inside in (mac.checkout / "a/b", Path(environment["HOME"], "x"), environment["TMPDIR"]):
        assert allowed(profile, "file-write-create", str(inside))
        assert allowed(profile, "file-read-data", str(inside))
    outside = (
        mac.repo / "src/a.py",
        mac.repo / ".git/objects/ab",
        mac.repo / ".windlass/plans/p/journal.db",
        mac.checkout.with_name("other"),
        mac.checkout.with_name("t2"),
        mac.home / ".zshrc",
        "/usr/local/bin/x",
        "/private/tmp/x",
        "/Library/LaunchDaemons/x",
    )
    assert [path for path in outside if allowed(profile, "file-write-create", str(path))] == []


def test_keys_and_the_repository_cannot_be_read(mac: Mac):  # B5
    profile = mac.sandbox(read=(mac.root / "Users",)).profile(mac.box(read=(mac.home / ".aws",)))
    hidden = [str(mac.home / key) for key in KEYS]
    hidden += ["/private/etc/master.passwd", "/Library/Keychains/System.keychain"]
    assert [path for path in hidden if allowed(profile, "file-read-data", path)] == []
    narrow = mac.sandbox().profile(mac.box())
    for path in ("src/a.py", ".env", ".git/config", ".windlass/plans/p/journal.db"):
        assert not allowed(narrow, "file-read-data", str(mac.repo / path))
    for path in (mac.repo / ".git/objects/ab/cd", mac.home / ".pyenv/shims/python", "/usr/bin/git"):
        assert allowed(narrow, "file-read-data", str(path))


@pytest.mark.parametrize("network", [False, True])
def test_network_only_where_it_is_allowed_and_never_the_hosts_sockets(mac: Mac, network: bool):  # noqa: FBT001  # B5
    profile = mac.sandbox().profile(mac.box(network=network))
    assert allowed(profile, "network-outbound", "ip") is network
    assert allowed(profile, "network-bind", "ip") is network
    for socket in ("/private/var/run/docker.sock", "/private/tmp/ssh-agent"):
        assert not allowed(profile, "network-outbound", socket)


def test_only_terminals_of_its_own_can_be_used(mac: Mac):  # B5
    profile = mac.sandbox().profile(mac.box())
    for operation in ("file-read-data", "file-write-data", "file-ioctl"):
        assert allowed(profile, operation, "/dev/ptmx")
        assert allowed(profile, operation, "/dev/ttys004", "com.apple.sandbox.pty")
        assert not allowed(profile, operation, "/dev/ttys000")
        assert not allowed(profile, operation, "/dev/disk0", "com.apple.sandbox.pty")
    assert allowed(profile, "file-read-data", "/dev/fd/1")


def test_nobody_can_have_a_program_started_outside(mac: Mac):  # B5
    profile = mac.sandbox().profile(mac.box(network=True))
    for service in (
        "com.apple.coreservices.launchservicesd",
        "com.apple.coreservices.appleevents",
        "com.apple.xpc.launchd.domain.user",
        "com.apple.SecurityServer",
        "com.apple.securityd.xpc",
        "com.apple.pasteboard.1",
    ):
        assert not allowed(profile, "mach-lookup", service)
    assert allowed(profile, "mach-lookup", "com.apple.system.opendirectoryd.libinfo")
    assert not allowed(profile, "signal", "others")
    assert not allowed(profile, "appleevent-send", "x")
    assert not allowed(profile, "process-info-pidinfo", "others")


def test_a_path_cannot_end_its_own_quotation(mac: Mac):  # B5
    evil = mac.outside / 'x") (allow default) (allow file-read* (subpath "'
    evil.mkdir(parents=True)
    profile = mac.sandbox(read=(evil,)).profile(mac.box())
    assert not allowed(profile, "file-write-create", "/etc/passwd")
    assert allowed(profile, "file-read-data", f"{evil}/file")
    line = mac.outside / "a\nb"
    line.mkdir()
    with pytest.raises(ConfigError, match="cannot be written into a seatbelt profile"):
        mac.sandbox(read=(line,)).profile(mac.box())


@pytest.mark.parametrize("name", ["~/.ssh", "~"])
def test_logins_cannot_be_asked_for(mac: Mac, name: str):  # B5
    with pytest.raises(ConfigError, match=r"\[sandbox\] read"):
        mac.sandbox(read=(Path(name),))


def test_a_box_comes_up_with_a_home_of_its_own_and_no_secret(mac: Mac):  # B5
    """By a stand-in that takes the profile as `sandbox-exec` does and then starts the command."""
    stand_in = mac.outside / "sandbox-exec"
    stand_in.write_text('#!/bin/sh\n[ "$1" = -p ] || exit 64\nshift 2\nexec "$@"\n')
    stand_in.chmod(0o755)
    sandbox, box = mac.sandbox(program=stand_in), mac.box(env={"X_TOKEN": "given"})
    script = "pwd; ls -A ~ $TMPDIR; touch ~/left $TMPDIR/left; env"
    for _ in range(2):
        job = partial(run, sandbox, box, ["sh", "-c", script], timeout=20, tail=10_000)
        done = anyio.run(job)
        assert (done.started, done.exit_code) == (True, 0), done.output
        lines = done.output.splitlines()
        assert lines[0] == sandbox.inside(box) == str(mac.checkout)
        assert "left" not in lines, "what an earlier box left is gone"
        assert "X_TOKEN=given" in lines
        assert "ghp-secret" not in done.output
        assert not any(line == "." for line in lines)


def test_elsewhere_than_on_a_mac_it_says_so(mac: Mac):
    if sys.platform == "darwin":
        assert mac.sandbox().probe() is None
        return
    assert mac.sandbox().probe() == "seatbelt is a part of macOS"
    assert not (mac.repo / ".windlass/boxes").exists()
    assert shutil.which("sandbox-exec") is None
