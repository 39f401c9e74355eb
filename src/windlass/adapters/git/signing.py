"""Signed commits: Windlass signs with the user's own program and key; no agent ever can.

Law: the hardened git reads no configuration of the user's. For a signature, and for nothing else,
it gets exactly the keys in `KEYS` and the variables in `VARIABLES`, as the user's own git has them
in their repository. No sandbox gets them. A program that asks a person cannot take the terminal
from a live run: it has its own session, and is ended when it takes too long.

Signing is safe to repeat: a commit counts once it is pinned, and a pinned one is found by its pin.
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from windlass.adapters.git.git import Git, absolute, run_uncancelled
from windlass.adapters.git.inspect import UserGit
from windlass.adapters.git.store import Store, printable
from windlass.errors import GitFailed, RepositoryError, SigningFailed

KEYS = (
    "user.signingkey",
    "gpg.format",
    "gpg.program",
    "gpg.openpgp.program",
    "gpg.x509.program",
    "gpg.ssh.program",
    "gpg.ssh.defaultkeycommand",
)
"""The user's settings that say with which program and key to sign."""

VARIABLES = (
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "TMPDIR",
    "GNUPGHOME",
    "PINENTRY_USER_DATA",
    "SSH_AUTH_SOCK",
    "SSH_ASKPASS",
    "SSH_ASKPASS_REQUIRE",
    "SSH_SK_PROVIDER",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
)
"""The user's variables by which such a program finds its key, its agent and a window to ask in."""

PATIENCE = 120
"""Seconds for one signature: a person may have to touch a token, or type a passphrase."""

_FORMAT = "openpgp"
_PROGRAMS = {_FORMAT: "gpg", "x509": "gpgsm"}
"""Programs that are called in the same way; ssh says itself what is wrong."""
_CURE = (
    "make `git commit -S` work here (user.signingKey, gpg.format, an unlocked key),"
    " or set [git] sign = false"
)
_EMPTY = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The tree without files, which every git knows."""


_ASIDE = ("[GNUPG:]", "fatal: failed to write commit", "error: gpg failed to sign")


class Signer:
    """Writes signed commits in one repository."""

    def __init__(
        self, git: UserGit, identity: Mapping[str, str], *, patience: float = PATIENCE
    ) -> None:
        self._git = git
        self._identity = identity
        self._patience = patience

    @property
    def name(self) -> str:
        """The kind of key, and which: `ssh key ~/.ssh/id_ed25519.pub`."""
        key = self._settings.get("user.signingkey", "")
        by_default = f"the key of {self._identity['GIT_COMMITTER_EMAIL']}"
        which = f"key {printable(key)}" if key else by_default
        return f"{self._settings.get('gpg.format', _FORMAT)}, {which}"

    async def commit(
        self, store: Store, tree: str, parents: Sequence[str], message: str, date: str = ""
    ) -> str:
        """Write a signed commit; gc may remove it until it is pinned. Raises SigningFailed."""
        objects = {"GIT_OBJECT_DIRECTORY": str(store.origin.objects[0])}
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
        git = self._hardened(store.folders.git, {**objects, **dates})
        return await run_uncancelled(lambda: self._commit(git, tree, parents, message))

    def try_out(self, object_format: str) -> str:
        """Sign a commit that is thrown away; return the key. Raises RepositoryError."""
        tty = {"GPG_TTY": tty} if (tty := self._git.environment.get("GPG_TTY")) else {}
        with tempfile.TemporaryDirectory(prefix="windlass-sign-") as folder:
            here = Path(folder)
            for name in ("objects", "refs"):
                (here / name).mkdir()
            (here / "HEAD").write_text("ref: refs/heads/none\n", encoding="utf-8")
            version = "1\n[extensions]\n\tobjectFormat = sha256\n"
            config = version if object_format == "sha256" else "0\n"
            (here / "config").write_text(f"[core]\n\trepositoryformatversion = {config}", "utf-8")
            try:
                self._commit(self._hardened(here, tty), _EMPTY[object_format], (), "a try\n")
            except SigningFailed as failure:
                raise RepositoryError(failure.message, hint=failure.hint) from failure
        return self.name

    @cached_property
    def _settings(self) -> dict[str, str]:
        names = "|".join(key.replace(".", r"\.") for key in KEYS)
        listed = self._git.ask("config", "--null", "--get-regexp", f"^({names})$", ok=(0, 1))
        return dict(entry.split("\n", 1) for entry in listed.fields if "\n" in entry)

    @property
    def _theirs(self) -> dict[str, str]:
        theirs = self._git.environment
        found = {name: theirs[name] for name in VARIABLES if name in theirs}
        return {**found, "PATH": absolute(theirs.get("PATH", os.defpath)), "LC_ALL": "C"}

    def _hardened(self, git_dir: Path, more: Mapping[str, str]) -> Git:
        configured = {"GIT_CONFIG_COUNT": str(len(self._settings))}
        for i, (key, value) in enumerate(self._settings.items()):
            configured |= {f"GIT_CONFIG_KEY_{i}": key, f"GIT_CONFIG_VALUE_{i}": value}
        return Git(
            git_dir,
            ceiling=git_dir.parent,
            environment={
                **self._theirs,
                **self._identity,
                **configured,
                **more,
            },
            timeout=self._patience,
            own_session=True,
        )

    def _commit(self, git: Git, tree: str, parents: Sequence[str], message: str) -> str:
        onto = (part for parent in parents for part in ("-p", parent))
        try:
            return git.run("commit-tree", "-S", *onto, tree, stdin=message).text
        except GitFailed as failure:
            why = _said(failure.stderr) or self._said_by_program() or failure.message
            what = f"no commit can be signed ({self.name}): {why}"
            raise SigningFailed(what, _CURE) from failure

    def _said_by_program(self) -> str:
        """What the user's program says when it is asked as git asks it: an old git hides that."""
        kind = self._settings.get("gpg.format", _FORMAT)
        if kind not in _PROGRAMS:
            return ""
        named = self._settings.get(f"gpg.{kind}.program")
        if kind == _FORMAT:
            named = named or self._settings.get("gpg.program")
        who = self._identity
        by_default = f"{who['GIT_COMMITTER_NAME']} <{who['GIT_COMMITTER_EMAIL']}>"
        key = self._settings.get("user.signingkey", by_default)
        try:
            done = subprocess.run(
                [named or _PROGRAMS[kind], "--status-fd=2", "-bsau", key],
                env={"PATH": os.defpath, **self._theirs},
                input=b"",
                capture_output=True,
                check=False,
                timeout=self._patience,
                start_new_session=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        return _said(done.stderr.decode(errors="replace"))


def _said(output: str) -> str:
    """The lines in which a program says why it failed; git's own say only that it did."""
    lines = (line.strip() for line in printable(output).splitlines())
    said = (line for line in lines if line and not line.startswith(_ASIDE))
    return " · ".join(dict.fromkeys(said))
