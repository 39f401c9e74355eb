"""What a box shows of the host: the system, the toolchains on PATH, and nothing private.

Law 1: a folder is shown because programs cannot run without it, not because it is harmless. `/opt`,
`/srv`, `/mnt` and `/var` are not listed; a toolchain there is shown if PATH leads to it.
Law 2: of the home and the repository only what PATH needs is shown. Keys and logins never are, even
if PATH, a link or a virtualenv leads to them; nor is the home, the repository, or a folder around
them as a whole. A missed toolchain costs a line in `[sandbox] read`; a shown key costs more, so in
doubt a folder is left out.
Law 3: of system folders a box shows what any user of the machine may see. Passwords, keys and their
backups are found by their modes, not by a list. Only root needs this: root owns these files, and in
a box it has the rights of an owner.
Law 4: sockets with a name in the file system are hidden. A network namespace does not hide them.
Most are in folders that are the box's own; the kernel lists the rest.
"""

import os
import stat
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePath

from windlass.core import other_tools
from windlass.errors import ConfigError

LOGINS = (
    *other_tools.LOGINS,
    ".aws", ".azure", ".boto", ".bundle/config", ".cargo/credentials",
    ".cargo/credentials.toml", ".config/chromium",
    ".config/containers", ".config/gcloud", ".config/gh", ".config/git", ".config/glab-cli",
    ".config/google-chrome", ".config/hub", ".config/op", ".config/pypoetry", ".config/rclone",
    ".config/sops", ".docker", ".gem/credentials", ".git-credentials", ".gnupg",
    ".gradle/gradle.properties", ".kube", ".local/share/keyrings", ".local/share/kwalletd",
    ".local/share/uv/credentials", ".m2/settings.xml", ".mozilla",
    ".my.cnf", ".netrc", ".npmrc", ".oci", ".password-store", ".pgpass", ".pypirc", ".s3cfg",
    ".ssh", ".terraform.d", ".thunderbird", ".vault-token", ".yarnrc.yml",
)  # fmt: skip
"""Keys and logins, as paths below a home."""

KNOWN: dict[str, tuple[str, ...]] = {
    ".asdf": (".asdf", ".tool-versions"),
    ".bun": (".bun/bin", ".bun/install"),
    ".cargo": (".cargo/bin", ".rustup"),
    ".deno": (".deno/bin",),
    ".goenv": (".goenv",),
    ".jenv": (".jenv",),
    ".local/bin": (
        ".local/bin",
        ".local/lib",
        ".local/share/pipx",
        ".local/share/uv/python",
        ".local/share/uv/tools",
    ),
    ".local/share/fnm": (".local/share/fnm",),
    ".local/share/mise": (".local/share/mise", ".tool-versions"),
    ".local/share/uv": (".local/share/uv/python", ".local/share/uv/tools"),
    ".nodenv": (".nodenv",),
    ".nvm": (".nvm",),
    ".pixi": (".pixi/bin", ".pixi/envs"),
    ".pyenv": (".pyenv",),
    ".rbenv": (".rbenv",),
    ".rustup": (".rustup",),
    ".rye": (".rye/shims", ".rye/py", ".rye/self", ".rye/tools"),
    ".sdkman": (".sdkman",),
    ".volta": (".volta",),
    "go/bin": ("go/bin",),
}
"""A PATH entry below the home, and what the tools there need."""

LINUXBREW = Path("/home/linuxbrew/.linuxbrew")
"""Homebrew on Linux: in /home, but not a user's home."""

PREFIX = ("lib", "lib64", "libexec", "include", "share", "jmods", "conf")
"""What a program in `X/bin` needs next to it; never all of X, which may hold its login."""

WHOLE = ("conda-meta", "pkg/tool", "lib/modules", "jmods")
"""Signs of a toolchain that is shown whole: conda, Go, Java."""

SHARED = Path("/opt")
"""Where a system keeps additional software; each folder there is one program's."""

LINKS = 512
"""Entries of one folder that are checked for links to other places."""


def is_login(path: PurePath, home: PurePath) -> bool:
    """Whether the path is, or is in, one of that home's keys and logins."""
    return any(path.is_relative_to(home / login) for login in LOGINS)


def readable(folder: Path, homes: Sequence[Path]) -> Path:
    """A folder that a person named to be read, `~` being the first home; raises for logins."""
    if folder.parts[:1] == ("~",):
        folder = homes[0].joinpath(*folder.parts[1:])
    names = (folder, folder.resolve())
    if any(is_login(name, home) or name == home for name in names for home in homes):
        message = f"[sandbox] read names {str(folder)!r}, which holds keys and logins"
        hint = "name a folder without them, or pass single values with [sandbox] env"
        raise ConfigError(message, hint=hint)
    return folder


def logins_in(folder: Path, home: Path) -> tuple[Path, ...]:
    """That home's keys and logins inside the folder."""
    held = (home / login for login in LOGINS)
    return tuple(login for login in held if login.is_relative_to(folder) and login.exists())


def toolchains(
    path: Sequence[Path], home: Path, repository: Path, system: Sequence[Path] = (Path("/"),)
) -> tuple[Path, ...]:
    """The existing folders and files that the programs on PATH need, in order.

    Paths in `system` are shown anyway, unless they are in the home or the repository.
    """
    search = _Search(home, repository, system)
    for entry in path:
        search.visit(entry)
    return tuple(sorted(search.kept))


_NEVER = frozenset((*(login for login in LOGINS if "/" not in login), ".git", ".windlass"))
"""Names that are left out at any depth."""


class _Search:
    """One walk from PATH; it remembers visited folders, so that circular links end."""

    def __init__(self, home: Path, repository: Path, system: Sequence[Path]) -> None:
        self._system = tuple(system)
        # Under both names: PATH may use one and a link lead to the other.
        self._homes = tuple(dict.fromkeys((home, home.resolve())))
        self._repositories = tuple(dict.fromkeys((repository, repository.resolve())))
        self._seen: set[Path] = set()
        self.kept: set[Path] = set()

    def visit(self, entry: Path) -> None:
        """Keep what the programs in this folder need."""
        if not entry.is_absolute() or entry in self._seen:
            return
        self._seen.add(entry)
        # What cannot be read here is of no use in the box (OSError); a link to itself is a
        # RuntimeError.
        with suppress(OSError, RuntimeError):
            if ".." in entry.parts:
                self.visit(entry.resolve())
            elif self._concerns(entry) and entry.is_dir():
                self._explore(entry)
            elif entry.resolve() != entry:
                # A link from outside may lead inside: fnm makes such links in /run.
                self.visit(entry.resolve())

    def _explore(self, entry: Path) -> None:
        kept = [self._keep(part) for part in self._needs(entry)]
        if not any(kept):
            # The folder of a known tool may itself be the repository, or contain it.
            for part in _plain(entry, self._homes):
                self._keep(part)
        for target in self._links_of(entry):
            if target.parent.name == "bin":
                self.visit(target.parent)
            else:
                self._keep(target)

    def _concerns(self, path: Path) -> bool:
        places = (*self._homes, *self._repositories, LINUXBREW)
        if any(path.is_relative_to(place) for place in places):
            return True
        return not any(path.is_relative_to(folder) for folder in self._system)

    def _needs(self, entry: Path) -> Iterator[Path]:
        root = entry.parent
        if entry.name == ".bin" and root.name == "node_modules":
            yield root
        elif (root / "pyvenv.cfg").is_file():
            yield root
            for base in _base_interpreters(root):
                self.visit(base)
        elif any((root / sign).exists() for sign in WHOLE):
            yield root
        elif entry.is_relative_to(LINUXBREW):
            yield LINUXBREW
        else:
            yield from self._known(entry)

    def _known(self, entry: Path) -> tuple[Path, ...]:
        for home in self._homes:
            for place, needs in KNOWN.items():
                if entry.is_relative_to(home / place):
                    return tuple(home / need for need in needs)
        return ()

    def _keep(self, path: Path) -> bool:
        # Check both names: a harmless one may lead to a login, and a login elsewhere.
        keep = (
            path.exists()
            and self._concerns(path)
            and self._allowed(path)
            and self._allowed(path.resolve())
        )
        if keep:
            self.kept.add(path)
        return keep

    def _allowed(self, path: Path) -> bool:
        """Refuse logins, folders with logins, and folders with a home or a repository."""
        if any(inner.is_relative_to(path) for inner in (*self._homes, *self._repositories)):
            return False
        if any(is_login(path, home) or logins_in(path, home) for home in self._homes):
            return False
        return not _NEVER.intersection(self._below(path))

    def _below(self, path: Path) -> tuple[str, ...]:
        """The path's parts below the repository, or else below the home."""
        # The repository first: a worktree inside an agent's folder is not a login.
        for place in (*self._repositories, *self._homes):
            if path.is_relative_to(place):
                return path.relative_to(place).parts
        return ()

    def _links_of(self, entry: Path) -> Iterator[Path]:
        """Programs elsewhere that links in the folder lead to, unless kept already."""
        for program in islice(entry.iterdir(), LINKS):
            target = _program_behind(program)
            if target is None or any(target.is_relative_to(kept) for kept in self.kept):
                continue
            if self._concerns(target):
                yield target


def _program_behind(link: Path) -> Path | None:
    # A broken or circular link must not stop the search.
    with suppress(OSError, RuntimeError):
        target = link.resolve()
        if link.is_symlink() and target.is_file():
            return target
    return None


def _base_interpreters(venv: Path) -> Iterator[Path]:
    """The folders of the interpreter that a virtualenv was made from."""
    for line in (venv / "pyvenv.cfg").read_text(errors="replace").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home" and value.strip():
            yield Path(value.strip())
    # The link's target is what runs, even if the file names another.
    yield (venv / "bin" / "python").resolve().parent


def _plain(entry: Path, homes: tuple[Path, ...]) -> tuple[Path, ...]:
    if entry.name != "bin" or entry.parent in homes:
        return (entry,)
    if entry.parent != SHARED and entry.is_relative_to(SHARED):
        return (entry.parent,)
    return (entry, *(entry.parent / part for part in PREFIX))


SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
    "/sys/devices/system/cpu", "/sys/devices/system/node",
)  # fmt: skip
"""Folders; those that are links are shown as links."""

ETC = (
    "alpine-release", "alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf",
    "crypto-policies", "debian_version", "dotnet", "fedora-release", "fonts", "gai.conf", "ghc",
    "host.conf", "java*", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias",
    "locale.conf", "lsb-release", "mailcap", "maven", "mime.types", "nodejs", "openssl",
    "os-release", "perl", "php", "php.d", "php.ini", "pki/ca-trust", "pki/java",
    "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf", "profile", "profile.d",
    "protocols", "python*", "redhat-release", "services", "ssl/cert.pem", "ssl/certs",
    "ssl/openssl.cnf", "terminfo", "timezone", "vulkan", "xdg",
)  # fmt: skip
"""Patterns below /etc. Users and groups are not included: a box has its own."""

DEPTH = 16


def private_paths(named: Container[Path], places: Iterable[Path]) -> Iterator[Path]:
    """What only root may see in these folders; paths that are named themselves are left out."""
    if os.geteuid() != 0:
        return  # other users cannot read them outside or inside
    for place in places:
        if place.is_dir():
            yield from _closed(place, DEPTH, named)


def _closed(folder: Path, depth: int, named: Container[Path]) -> Iterator[Path]:
    for entry in _entries(folder):
        path = Path(entry.path)
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:  # deleted meanwhile
            continue
        if stat.S_ISLNK(found.st_mode) or path in named:
            continue
        is_folder = stat.S_ISDIR(found.st_mode)
        if found.st_mode & (stat.S_IXOTH if is_folder else stat.S_IROTH):
            if is_folder and depth > 1:
                yield from _closed(path, depth - 1, named)
        # An empty entry hides nothing, and each cover takes time.
        elif _is_ours(found) and (_entries(path) if is_folder else found.st_size):
            yield path


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_ours(found: os.stat_result) -> bool:
    """Whether we have its owner's or group's rights without any capability."""
    if found.st_uid == os.geteuid():
        return True
    return found.st_gid in {os.getegid(), *os.getgroups()}


_TABLE = Path("/proc/net/unix")
_COLUMNS = 8
"""The last column is the name, if there is one."""


def host_sockets() -> Iterator[Path]:
    """The sockets that exist now; one bound by a relative name is not found."""
    try:
        lines = _TABLE.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return
    names = {line.split(maxsplit=_COLUMNS - 1)[-1] for line in lines if " /" in line}
    for path in map(Path, sorted(names)):
        try:
            if stat.S_ISSOCK(path.stat().st_mode):
                yield path.resolve()
        except OSError:  # gone, or in another mount namespace
            continue
