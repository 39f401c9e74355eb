"""Real keys that sign commits, made for a test and gone with it."""

import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from repositories import User

KINDS = ("openpgp", "ssh")


@contextmanager
def signing(user: User, kind: str) -> Generator[None]:
    """Give the user a key of that kind, with which their own git signs and verifies."""
    # A path of gpg's socket must be short.
    with tempfile.TemporaryDirectory(prefix="wk-", dir="/tmp") as folder:
        if kind == "ssh":
            _make_ssh_key(user, Path(folder))
            yield
            return
        user.environment["GNUPGHOME"] = folder
        try:
            _make_gpg_key(user)
            yield
        finally:
            _call(user, "gpgconf", "--kill", "all")
            user.environment.pop("GNUPGHOME")


def _make_gpg_key(user: User) -> None:
    who = "Ann User <ann@example.org>"
    made = ("--quick-gen-key", who, "ed25519", "sign", "never")
    _call(user, "gpg", "--batch", "--passphrase", "", *made)


def _make_ssh_key(user: User, folder: Path) -> None:
    key = folder / "id"
    _call(user, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    signers = folder / "signers"
    signers.write_text(f"ann@example.org {key.with_suffix('.pub').read_text()}")
    user.config(
        "gpg.format=ssh",
        f"user.signingKey={key}.pub",
        f"gpg.ssh.allowedSignersFile={signers}",
    )


def _call(user: User, program: str, *args: str) -> None:
    path = shutil.which(program)
    assert path is not None, f"{program} is not installed (gnupg, openssh-client)"
    subprocess.run([path, *args], env=user.environment, check=True, capture_output=True)
