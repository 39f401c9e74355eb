"""Signed commits, with real gpg and ssh keys, verified by the user's own git."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from keys import KINDS, signing
from repositories import Run, User, author, inside_walls
from windlass.adapters.git import inspect
from windlass.adapters.git.commits import Commits
from windlass.adapters.git.repository import GitRepository
from windlass.adapters.git.signing import KEYS, VARIABLES, Signer
from windlass.core.settings import GitSettings, WorkspaceSettings
from windlass.errors import RepositoryError, SigningFailed
from windlass.ports import Merged


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.commit({"README": "hello\n"})
    return made


@pytest.fixture(params=KINDS)
def signer_user(user: User, request: pytest.FixtureRequest) -> Iterator[User]:
    with signing(user, request.param):
        yield user


def signer(user: User, *, patience: float = 30) -> Signer:
    git = inspect.UserGit(user.repo, user.environment)
    return Signer(git, inspect.identity(git), patience=patience)


def signed_run(user: User, *, sign: object = True, patience: float = 30) -> Run:
    """A run that signs, composed as wiring does it."""
    run = Run(user)
    settings = GitSettings(sign=sign)  # pyright: ignore[reportArgumentType]
    commits = Commits(
        run.store, run="r1", settings=settings, signer=signer(user, patience=patience)
    )
    run.repository = GitRepository(
        run.store,
        run.refs,
        setup=run.setup_cache,
        settings=WorkspaceSettings(),
        environment=user.environment,
        commits=commits,
    )
    return run


def is_signed(user: User, commit: str) -> bool:
    done = subprocess.run(
        ["git", "verify-commit", commit],
        cwd=user.repo,
        env=user.environment,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def merged(run: Run) -> tuple[str, str, str]:
    """A snapshot, the tip that has it, and the squashed commit of that tip."""

    async def go() -> tuple[str, str, str]:
        await run.open()
        saved = await run.play("1.1", {"one": "1\n"})
        tip, _ = await run.land("1.1", 1, saved.commit, run.base)
        made = await run.repository.squash(tip, run.base)
        assert isinstance(made, Merged)
        return saved.commit, tip, made.commit

    return anyio.run(go)


def landed(run: Run, tip: str) -> str:
    """The merge that a landing makes."""

    async def go() -> str:
        made = await run.repository.merge(author(""), 9, tip, run.base)
        assert isinstance(made, Merged)
        return made.commit

    return anyio.run(go)


@pytest.mark.parametrize("sign", [True, "all"])
def test_every_commit_is_signed(signer_user: User, sign: object) -> None:
    run = signed_run(signer_user, sign=sign)
    saved, tip, squashed = merged(run)
    assert [is_signed(signer_user, each) for each in (saved, tip, squashed)] == [True] * 3
    trailers = signer_user.git("log", "-1", "--format=%(trailers:only)", tip)
    assert "Windlass-Task: 1.1" in trailers
    assert signer_user.git("log", "-1", "--format=%an %ae", tip) == "Ann User ann@example.org"
    signer_user.git("fsck", "--strict")


def test_only_what_a_landing_writes_is_signed(signer_user: User) -> None:
    run = signed_run(signer_user, sign="land")
    saved, tip, squashed = merged(run)
    found = [is_signed(signer_user, each) for each in (saved, tip, squashed, landed(run, tip))]
    assert found == [False, False, True, True]


def test_nothing_is_signed_unless_it_is_asked_for(signer_user: User) -> None:
    """Even if the user's own git signs every commit."""
    signer_user.config("commit.gpgSign=true")
    saved, tip, squashed = merged(signed_run(signer_user, sign=False))
    assert not any(is_signed(signer_user, each) for each in (saved, tip, squashed))


def test_a_signed_merge_is_found_by_its_pin(signer_user: User) -> None:  # B4
    """A signature is never the same twice, and a killed process left the pin only."""
    run = signed_run(signer_user)
    saved, tip, squashed = merged(run)

    async def again() -> tuple[str, str, str]:
        later = signed_run(signer_user)
        await later.open()
        workspace = await later.repository.snapshot(author("1.1"), "snapshot", (later.base,))
        merge = await later.repository.merge(author("1.1"), 1, saved, later.base)
        squash = await later.repository.squash(tip, later.base)
        assert isinstance(merge, Merged)
        assert isinstance(squash, Merged)
        return getattr(workspace, "commit", ""), merge.commit, squash.commit

    assert anyio.run(again) == (saved, tip, squashed)


def test_the_key_is_named_and_tried_without_writing_anything(signer_user: User) -> None:
    before = signer_user.git("count-objects", "-v")
    found = signer(signer_user).try_out("sha1")
    kind = signer_user.git("config", "--default", "openpgp", "gpg.format")
    assert found.startswith(f"{kind}, ")
    assert signer(signer_user).try_out("sha256") == found
    assert signer_user.git("count-objects", "-v") == before


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (("user.signingKey=0123456789ABCDEF",), "No secret key"),
        (("gpg.program=/no/such/program",), "/no/such/program"),
        (("gpg.format=ssh", "user.signingKey=/no/such/key.pub"), "/no/such/key.pub"),
        (("gpg.format=nonsense",), "nonsense"),
    ],
    ids=["no key", "no program", "no file", "no such format"],
)
def test_a_key_that_does_not_work_is_said_with_the_cure(
    user: User, settings: tuple[str, ...], why: str
) -> None:
    user.config(*settings)
    with pytest.raises(RepositoryError) as error:
        signer(user).try_out("sha1")
    assert error.value.message.startswith("no commit can be signed (")
    assert why in error.value.message
    assert "[git] sign = false" in error.value.hint


def test_a_run_that_cannot_sign_loses_nothing(user: User) -> None:
    """The workspace stays, nothing is pinned, and the next process goes on once the key works."""
    user.config("user.signingKey=0123456789ABCDEF")
    run = signed_run(user)

    async def fail() -> None:
        await run.open()
        await run.play("1.1", {"one": "1\n"})

    with pytest.raises(SigningFailed):
        anyio.run(fail)
    assert not [ref for ref in user.refs("refs/windlass") if ref.endswith("/snapshot")]
    with signing(user, "ssh"):
        later = signed_run(user)

        async def go_on() -> str:
            await later.open()
            return (await later.save("1.1")).commit

        assert is_signed(user, made := anyio.run(go_on))
        assert user.files(made)["one"] == "1\n"


def program(user: User, text: str) -> Path:
    """A signing program of the user's own."""
    path = user.home / "sign"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    user.config(f"gpg.program={path}")
    return path


def test_a_program_that_waits_for_a_person_is_ended_with_all_that_it_started(user: User) -> None:
    pid = user.home / "pid"
    program(
        user,
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(pid)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n",
    )
    with pytest.raises(RepositoryError, match="not done after 1 s"):
        signer(user, patience=1).try_out("sha1")
    assert _is_gone(int(pid.read_text()))


def _is_gone(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


def test_the_program_gets_no_terminal_and_only_the_variables_that_signing_needs(
    user: User,
) -> None:
    seen = user.home / "seen"
    program(
        user,
        "import os, sys\n"
        "tty = 'tty'\n"
        "try:\n    os.open('/dev/tty', os.O_RDWR)\n"
        "except OSError:\n    tty = 'no tty'\n"
        f"open({str(seen)!r}, 'w').write('\\n'.join([tty, *os.environ]))\n"
        "sys.exit(1)\n",
    )
    user.environment |= {"ANTHROPIC_API_KEY": "sk-secret", "SSH_AUTH_SOCK": "/s", "EDITOR": "vi"}
    with pytest.raises(RepositoryError):
        signer(user).try_out("sha1")
    tty, *names = seen.read_text().splitlines()
    assert tty == "no tty"
    theirs = {name for name in names if not name.startswith(("GIT_", "LC_"))}
    assert theirs <= {*VARIABLES, "PATH"}
    assert "SSH_AUTH_SOCK" in theirs


def test_no_other_setting_of_the_user_is_passed_on(user: User) -> None:
    """A hardened git with the user's configuration would run what it names."""
    user.config("core.sshCommand=evil", "core.fsmonitor=evil", "gpg.minTrustLevel=ultimate")
    seen = user.home / "seen"
    program(
        user,
        "import os, sys\n"
        f"open({str(seen)!r}, 'a').write(''.join(f'{{v}}\\n' for n, v in os.environ.items()"
        " if n.startswith('GIT_CONFIG_KEY_')))\nsys.exit(1)\n",
    )
    with pytest.raises(RepositoryError):
        signer(user).try_out("sha1")
    assert set(seen.read_text().splitlines()) <= set(KEYS)
    assert "gpg.program" in seen.read_text()


def test_an_agent_in_its_sandbox_finds_neither_key_nor_agent(user: User) -> None:  # B5
    with signing(user, "openpgp"):
        run = Run(user)

        async def prepare() -> Path:
            await run.open()
            return await run.repository.prepare("1.1", 1, run.base, None)

        workspace = anyio.run(prepare)
        assert os.listdir(user.environment["GNUPGHOME"])  # noqa: PTH208
        home = user.environment["GNUPGHOME"]
        asked = f"env; ls -a {home} /run/user 2>&1; gpg --list-secret-keys 2>&1"
        tried = f"{asked}; git commit -S --allow-empty -m x 2>&1 || echo not signed"
        output = inside_walls(user, workspace, tried).stdout.decode()
        assert "not signed" in output
        assert "GNUPGHOME" not in output
        assert "SSH_AUTH_SOCK" not in output
        assert "private-keys" not in output
