"""`windlass doctor`: what is well, what is not, and the cure; never a secret, never a change."""

import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from desk import NO_MODEL, Desk
from ways import ForwardingProxy, private_ca, tls_to
from windlass.adapters.git.inspect import NO_FILTERS, NO_SUBMODULES
from windlass.adapters.locks import PlanLock
from windlass.core.events.model import RunEnd, RunEnded
from windlass.core.plan import Task
from windlass.testing.model.script import Book
from windlass.testing.stage import scripted_model
from worlds import NOON, World, plan_of, writes

INSTALL = "install bubblewrap: `apt install bubblewrap`, `dnf install bubblewrap`, …"
walled = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


def diagnosis(desk: Desk, code: int = 0, **more: Any) -> dict[str, Any]:
    """What programs read; that nothing changed, and that the exit code says the same."""
    before = desk.everything()
    answer = desk.call("doctor", "--json", **more)
    assert (answer.code, answer.err) == (code, ""), answer
    assert desk.everything() == before
    told = json.loads(answer.out)
    assert told["usable"] == (code == 0)
    return told


def of(told: dict[str, Any], name: str) -> list[tuple[str, str, str]]:
    return [(f["level"], f["said"], f["cure"]) for f in told["findings"] if f["name"] == name]


@contextmanager
def refusing(status: int) -> Generator[str]:
    """A provider that answers everything with this status."""

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


class TestMachine:
    def test_all_is_well(self, desk: Desk):
        told = diagnosis(desk)
        assert [f["name"] for f in told["findings"]] == [
            "git",
            "python",
            "agent",
            "key",
            "sandbox",
            "limits",
            "provider",
            "root",
            "identity",
            "signing",
            "base",
        ]
        assert {f["level"] for f in told["findings"]} <= {"ok", "warn"}
        assert of(told, "root") == [("ok", str(desk.repo), "")]
        assert of(told, "identity") == [("ok", "Ada <ada@example.com>", "")]
        head = desk.git("rev-parse", "HEAD")[:10]
        assert of(told, "base") == [("ok", f"main at {head}", "")]

    def test_the_agent_is_found_and_not_started(self, desk: Desk):
        (level, said, _), *_ = of(diagnosis(desk), "agent")
        assert level == "ok"
        assert said.startswith("claude ")
        assert said.endswith("/claude")

    def test_a_key_is_named_and_never_shown(self, desk: Desk):
        key = desk.environment["ANTHROPIC_API_KEY"]
        desk.write("windlass.toml", f'checks = ["curl -H {key} x"]\n')
        for args in (["doctor"], ["doctor", "--json"]):
            answer = desk.call(*args)
            assert answer.code == 0
            assert key not in answer.out
            assert "curl -H [redacted ANTHROPIC_API_KEY] x" in answer.out
        assert of(diagnosis(desk), "key") == [
            ("ok", "ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL set", "")
        ]

    @pytest.mark.parametrize("key", ["", "  "])
    def test_no_key(self, desk: Desk, key: str):
        assert of(diagnosis(desk, 2, ANTHROPIC_API_KEY=key), "key") == [
            (
                "bad",
                "no key for the agent in the environment",
                "set ANTHROPIC_API_KEY, or try `windlass demo`, which needs none",
            )
        ]

    def test_no_git(self, desk: Desk, tmp_path: Path):
        told = diagnosis(desk, 2, PATH=str(tmp_path))
        assert of(told, "git") == [("bad", "no git is on PATH", "install git 2.38 or newer")]
        assert of(told, "root") == [("bad", "git is not installed", "install git 2.38 or newer")]

    def test_an_old_git(self, desk: Desk, tmp_path: Path):
        old = tmp_path / "git"
        old.write_text("#!/bin/sh\necho git version 2.25.1\n")
        old.chmod(0o755)
        told = diagnosis(desk, 2, PATH=f"{tmp_path}:{desk.environment['PATH']}")
        assert of(told, "git") == [
            ("bad", "git version 2.25.1 is on PATH", "install git 2.38 or newer")
        ]

    def test_a_weaker_sandbox_by_choice(self, desk: Desk):
        assert of(diagnosis(desk, WINDLASS_SANDBOX_LEVEL="checkout"), "sandbox") == [
            ("warn", "level checkout, as set: agents are not sandboxed", "")
        ]

    def test_no_sandbox_by_habit(self, desk: Desk):
        """A run refuses it as well: only its own command line may say so."""
        assert of(diagnosis(desk, 2, WINDLASS_SANDBOX_LEVEL="none"), "sandbox") == [
            (
                "bad",
                "level none, as set: agents are not sandboxed",
                "set another level, or use `--sandbox none` each time",
            )
        ]

    def test_a_folder_that_must_not_be_read(self, desk: Desk):
        desk.write("windlass.toml", '[sandbox]\nread = ["~/.ssh"]\n')
        ((level, said, cure),) = of(diagnosis(desk, 2), "sandbox")
        assert level == "bad"
        assert "which holds keys and logins" in said
        assert cure.startswith("name a folder without them")

    @walled
    def test_no_bubblewrap(self, desk: Desk):
        desk.without_bubblewrap()
        why = "level bwrap does not work here (bubblewrap (`bwrap`) is not installed)"
        instead = "; a run asks on a terminal, and refuses elsewhere"
        without = "; or run without walls: `--sandbox checkout`"
        assert of(diagnosis(desk, 2), "sandbox") == [("bad", why + instead, INSTALL + without)]
        told = diagnosis(desk, 2, WINDLASS_SANDBOX_LEVEL="bwrap")
        assert of(told, "sandbox") == [("bad", why, INSTALL)]

    @walled
    def test_no_box_in_a_box(self, desk: Desk, tmp_path: Path):
        real = shutil.copy(shutil.which("bwrap") or "", tmp_path / "real")
        shim = tmp_path / "bwrap"
        inner = '*"bwrap --dev-bind"*|*"unshare --user"*) exit 1;;'
        shim.write_text(f'#!/bin/sh\ncase "$*" in {inner} esac\nexec {real} "$@"\n')
        shim.chmod(0o755)
        laid = ("--ro-bind", str(shim), "/usr/bin/bwrap")
        desk.under = ("bwrap", "--dev-bind", "/", "/", *laid, "--")
        ((level, said, _),) = of(diagnosis(desk), "sandbox")
        assert level == "ok"
        assert "a Coach runs no commands, because no nested sandbox works here" in said

    @walled
    def test_walls_outside_of_any_repository(self, desk: Desk):
        desk.directory = desk.root
        told = diagnosis(desk, 2, GIT_CEILING_DIRECTORIES=str(desk.root.parent))
        assert of(told, "sandbox") == [("ok", "level bwrap: agents are sandboxed", "")]
        ((level, said, cure),) = of(told, "root")
        assert level == "bad"
        assert said.startswith(f"{desk.root} is not in a git repository")
        assert cure == "run this inside one, or create one with `git init`"
        assert len(told["settings"]) > 20


class TestRepository:
    def test_nobody_to_commit_as(self, desk: Desk):
        desk.git("config", "--unset", "user.name")
        desk.git("config", "--unset", "user.email")
        ((level, said, cure),) = of(diagnosis(desk, 2, GIT_CONFIG_NOSYSTEM="1"), "identity")
        assert (level, said) == ("bad", "git has no name and email for commits here")
        assert cure.startswith("set them: git config user.name")

    def test_no_commit(self, desk: Desk):
        desk.git("update-ref", "-d", "HEAD")
        assert of(diagnosis(desk, 2), "base") == [
            (
                "bad",
                "this repository has no commit yet",
                "make a first one: git commit --allow-empty",
            )
        ]

    def test_a_submodule(self, desk: Desk):
        head = desk.git("rev-parse", "HEAD").strip()
        desk.git("update-index", "--add", "--cacheinfo", f"160000,{head},lib")
        desk.git("commit", "--quiet", "--message", "Add a submodule")
        ((level, said, cure),) = of(diagnosis(desk, 2), "base")
        assert (level, said) == ("bad", "the repository has a submodule at 'lib'")
        assert cure == NO_SUBMODULES

    def test_large_file_storage(self, desk: Desk):
        desk.commit(".gitattributes", "*.png filter=lfs diff=lfs merge=lfs -text\n")
        ((level, said, cure),) = of(diagnosis(desk, 2), "base")
        assert (level, said) == ("bad", "the repository uses the filter 'lfs' (gitattributes)")
        assert cure == NO_FILTERS

    def test_whether_commits_are_signed(self, desk: Desk, tmp_path: Path):
        """Tried with the user's own program and key."""
        said = [("ok", "commits are not signed", "")]
        assert of(diagnosis(desk), "signing") == said
        desk.git("config", "commit.gpgSign", "true")
        ((level, said, _),) = of(diagnosis(desk), "signing")
        assert (level, "[git] sign = true" in said) == ("warn", True)
        desk.write("windlass.toml", "[git]\nsign = true\n")
        desk.git("config", "gpg.format", "ssh")
        desk.git("config", "user.signingKey", str(tmp_path / "id.pub"))
        ((level, said, cure),) = of(diagnosis(desk, 2), "signing")
        assert (level, said.startswith("no commit can be signed (ssh, key")) == ("bad", True)
        assert "[git] sign = false" in cure
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "id")]
        subprocess.run(made, check=True)
        ((level, said, _),) = of(diagnosis(desk), "signing")
        assert (level, said.startswith("every commit is signed (ssh, key")) == ("ok", True)

    def test_a_detached_head_and_changes_are_warnings(self, desk: Desk):
        desk.git("checkout", "--quiet", "--detach")
        desk.write("new.txt", "new")
        told = of(diagnosis(desk), "base")
        assert [level for level, _, _ in told] == ["ok", "warn", "warn"]
        assert told[0][1].startswith("no branch at ")
        assert told[1][1].startswith("HEAD is detached")
        assert told[2][1].startswith("1 uncommitted change is not part of the run")

    def test_a_lock_that_some_git_left(self, desk: Desk):
        desk.write(".git/index.lock", "")
        why = "another git is running, or one that died left it"
        lock = f"{desk.repo}/.git/index.lock is there: {why}"
        assert of(diagnosis(desk), "lock") == [("warn", lock, "remove it if no git is running")]


def story() -> World:
    world = World(
        plan_of(Task(id="a", title="A"), Task(id="b", title="B", depends_on=("a",))),
        {"a": writes("a", "1"), "b": writes("b", "2")},
    )
    world.go()
    return world


class TestPlans:
    def test_a_run_that_is_over(self, desk: Desk):
        desk.record("p", story().events)
        assert of(diagnosis(desk), "p") == [("ok", "run r1 is completed, 2 of 2 tasks merged", "")]

    def test_a_run_that_died(self, desk: Desk):
        desk.record("p", story().events[:5])
        assert of(diagnosis(desk), "p") == [
            ("warn", "run r1 is interrupted, 0 of 2 tasks merged", "windlass resume p")
        ]

    def test_a_run_that_was_stopped(self, desk: Desk):
        stopped = RunEnded(at=NOON, status=RunEnd.STOPPED)
        desk.record("p", [*story().events[:5], stopped])
        assert of(diagnosis(desk), "p") == [
            ("warn", "run r1 is stopped, 0 of 2 tasks merged", "windlass resume p")
        ]

    def test_a_run_that_goes_on(self, desk: Desk):
        desk.record("p", story().events[:5])
        with PlanLock(desk.repo / ".windlass/plans/p/lock"):
            ((level, said, _),) = of(diagnosis(desk), "p")
        assert level == "ok"
        assert said.startswith("run r1 is live (PID ")

    def test_a_plan_that_was_never_run(self, desk: Desk):
        desk.record("p", [])
        assert of(diagnosis(desk), "p") == [("ok", "never run", "")]

    def test_a_journal_that_cannot_be_read(self, desk: Desk):
        desk.write(".windlass/plans/p/journal.db", "this is no journal")
        ((level, said, _),) = of(diagnosis(desk), "p")
        assert level == "warn"
        assert "journal" in said


class TestSettings:
    def test_every_setting_with_its_source_and_bounds(self, desk: Desk):
        desk.write("windlass.toml", "agents = 2\n")
        told = diagnosis(desk, WINDLASS_MAX_TURNS="7")["settings"]
        by_key = {setting["key"]: setting for setting in told}
        assert by_key["agents"] == {
            "key": "agents",
            "value": 2,
            "source": "windlass.toml",
            "bounds": "≥ 1, ≤ 64",
        }
        assert by_key["max_turns"]["source"] == "WINDLASS_MAX_TURNS"
        assert by_key["model"]["value"] == "claude-sonnet-4-5"
        assert by_key["model"]["source"] == "default"

    def test_a_file_that_cannot_be_used(self, desk: Desk):
        desk.write("windlass.toml", "agent = 3\n")
        told = diagnosis(desk, 2)
        assert of(told, "file") == [
            (
                "bad",
                "windlass.toml:1: agent: expected `object`, got `int`",
                "`windlass doctor` lists every key and its bounds",
            )
        ]
        assert {setting["source"] for setting in told["settings"]} == {"default"}

    def test_a_variable_that_nobody_reads(self, desk: Desk):
        told = diagnosis(desk, WINDLASS_AGENT="3", WINDLASS_DEBUG="1", WINDLASS_AGENTS="3")
        ((level, said, cure),) = of(told, "variable")
        assert (level, said) == ("warn", "unknown: WINDLASS_AGENT")
        assert cure.startswith("a variable is WINDLASS_ and a key")

    def test_a_variable_that_a_setting_names_is_read(self, desk: Desk):
        desk.write("windlass.toml", '[sandbox]\nenv = ["WINDLASS_OWN"]\n')
        assert of(diagnosis(desk, WINDLASS_OWN="1"), "variable") == []

    @pytest.mark.parametrize(
        ("name", "file", "variables"),
        [
            ("notify", '[notify]\ncommand = ["x"]\n', {}),
            ("outside", '[notify]\nwebhook = "nothing"\n', {}),
            ("outside", '[telemetry]\nprometheus = "foo:bar"\n', {}),
            ("workspace", '[workspace]\nkeep = ["../x"]\n', {}),
            ("key", "", {"ANTHROPIC_BASE_URL": "notaurl"}),
            ("key", "", {"ANTHROPIC_BASE_URL": "http://[::1"}),
        ],
    )
    def test_what_a_run_refuses(self, desk: Desk, name: str, file: str, variables: dict[str, str]):
        """The same words, and nothing is left behind by either."""
        desk.write("windlass.toml", file)
        ((level, said, cure),) = of(diagnosis(desk, 2, **variables), name)
        before = desk.everything()
        answer = desk.call("run", "plan.md", **variables)
        assert (level, answer.code) == ("bad", 2)
        assert answer.err.splitlines()[-1] == f"windlass: {said}; {cure}"
        assert desk.everything() == before


class TestPeople:
    def test_what_is_well(self, desk: Desk):
        desk.record("p", story().events)
        answer = desk.call("doctor")
        assert (answer.code, answer.err) == (0, "")
        lines = answer.out.splitlines()
        headings = [line for line in lines if line and not line.startswith(" ")]
        assert headings == [
            "Machine",
            "Repository",
            "Plans",
            "Settings",
            "A run can start.",
        ]
        assert "  ok    key       ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL set" in lines
        assert "  ok    p         run r1 is completed, 2 of 2 tasks merged" in lines
        assert "  agents                3                      default  (≥ 1, ≤ 64)" in lines

    def test_every_setting_fits_the_usual_columns(self, desk: Desk):
        lines = desk.call("doctor").out.partition("\nSettings\n")[2].splitlines()
        assert [line for line in lines if len(line) > 80] == []
        assert any(line.startswith("  sandbox.level ") for line in lines)

    def test_what_must_be_mended(self, desk: Desk):
        answer = desk.call("doctor", ANTHROPIC_API_KEY="")
        assert answer.code == 2
        assert (
            "  bad   key       no key for the agent in the environment\n"
            "                  set ANTHROPIC_API_KEY, or try `windlass demo`, which needs none\n"
        ) in answer.out
        assert answer.out.endswith("\n1 problem to fix first.\n")


class TestProvider:
    """Whether the provider answers, over the user's own way to it."""

    def test_one_that_refuses_is_a_warning_with_the_reason(self, desk: Desk):
        place = NO_MODEL.removeprefix("http://")
        [(level, said, cure)] = of(diagnosis(desk), "provider")
        assert (level, said) == ("warn", f"cannot reach {place}: connection refused")
        assert "HTTPS_PROXY" in cure
        assert "--offline" in cure

    def test_a_name_that_leads_nowhere(self, desk: Desk):
        told = diagnosis(desk, ANTHROPIC_BASE_URL="http://provider.invalid")
        [(level, said, _)] = of(told, "provider")
        assert level == "warn"
        assert said.startswith("cannot reach provider.invalid: name not found")

    def test_offline_asks_nothing(self, desk: Desk):
        answer = desk.call("doctor", "--offline", "--json")
        assert answer.code == 0, answer
        assert of(json.loads(answer.out), "provider") == []

    def test_without_a_key_it_is_not_asked(self, desk: Desk):
        told = diagnosis(desk, 2, without=["ANTHROPIC_API_KEY"])
        assert of(told, "provider") == []

    def test_one_that_answers_costs_nothing(self, desk: Desk, tmp_path: Path):
        with scripted_model(Book(), tmp_path / "model.log") as url:
            [(level, said, _)] = of(diagnosis(desk, ANTHROPIC_BASE_URL=url), "provider")
        assert level == "ok"
        assert said == f"{url.removeprefix('http://')} answers (HTTP 404)"
        [line] = (tmp_path / "model.log").read_text().splitlines()
        seen = json.loads(line)
        assert (seen["method"], seen["path"]) == ("GET", "/v1/models")

    def test_a_proxy_and_a_private_ca_are_used(self, desk: Desk, tmp_path: Path):
        authority, server = private_ca(tmp_path / "ca")
        with (
            ForwardingProxy().serving() as proxy,
            scripted_model(Book(), tmp_path / "model.log") as model,
            tls_to(model, server) as url,
        ):
            more = {"ANTHROPIC_BASE_URL": url, "HTTPS_PROXY": proxy.url}
            [(level, said, _)] = of(diagnosis(desk, **more), "provider")
            assert level == "warn"
            assert "certificate not trusted" in said
            trusting = {**more, "SSL_CERT_FILE": str(authority)}
            [(level, said, _)] = of(diagnosis(desk, **trusting), "provider")
            assert level == "ok"
            assert f"through the proxy 127.0.0.1:{proxy.port} (HTTPS_PROXY), answers" in said
            assert len(proxy.asked) == 2
            [(level, said, _)] = of(diagnosis(desk, **trusting, NO_PROXY="127.0.0.1"), "provider")
            assert level == "ok"
            assert len(proxy.asked) == 2

    def test_a_key_that_it_refuses_stops_a_run(self, desk: Desk):
        with refusing(401) as url:
            [(level, said, cure)] = of(diagnosis(desk, 2, ANTHROPIC_BASE_URL=url), "provider")
        place = url.removeprefix("http://")
        said_of_key = f"{place} refuses the credentials in ANTHROPIC_API_KEY (HTTP 401)"
        assert (level, said, cure) == ("bad", said_of_key, "correct the key")

    def test_one_that_says_nothing_is_left_alone(self, desk: Desk):
        """It took the connection, and never answers."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            began = time.monotonic()
            [(level, said, _)] = of(diagnosis(desk, ANTHROPIC_BASE_URL=url), "provider")
        assert level == "warn"
        assert "timed out" in said
        assert time.monotonic() - began < 40
