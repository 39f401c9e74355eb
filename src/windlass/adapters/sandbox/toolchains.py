"""Which folders of the home and of the repository stay readable: those PATH needs, and no others.

Law: nothing that holds keys or logins is ever among them, by whatever way PATH, a link or a
virtualenv leads there; and neither the home, nor the repository, nor anything around them as a
whole. What this module forgets costs a line in `[sandbox] read`; what it gave away would cost
more, so in doubt it leaves out.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePath

LOGINS = (
    ".anthropic",
    ".aws",
    ".azure",
    ".boto",
    ".bundle/config",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude",
    ".claude.json",
    ".codex",
    ".config/chromium",
    ".config/containers",
    ".config/gcloud",
    ".config/gh",
    ".config/git",
    ".config/glab-cli",
    ".config/google-chrome",
    ".config/hub",
    ".config/op",
    ".config/pypoetry",
    ".config/rclone",
    ".config/sops",
    ".docker",
    ".gem/credentials",
    ".gemini",
    ".git-credentials",
    ".gnupg",
    ".gradle/gradle.properties",
    ".kube",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/opencode",
    ".local/share/uv/credentials",
    ".m2/settings.xml",
    ".mozilla",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".oci",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".ssh",
    ".terraform.d",
    ".thunderbird",
    ".vault-token",
    ".yarnrc.yml",
)
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
"""Where a PATH entry lies below the home, and what the tools there need of it."""

LINUXBREW = Path("/home/linuxbrew/.linuxbrew")
"""Homebrew on Linux: nobody's home, though it lies among them."""

PREFIX = ("lib", "lib64", "libexec", "include", "share", "jmods", "conf")
"""What a program in `X/bin` finds beside it; never the whole of X, which may hold its login."""

WHOLE = ("conda-meta", "pkg/tool", "lib/modules", "jmods")
"""Signs of a toolchain that is shown whole: conda, Go, Java."""

SHARED = Path("/opt")
"""Where a system keeps what it installed besides its own; each folder there is one program's."""

LINKS = 512
"""How many entries of one folder are looked at for links that lead elsewhere."""


def is_login(path: PurePath, home: PurePath) -> bool:
    """Tell whether the path is, or lies in, one of that home's keys and logins."""
    return any(path.is_relative_to(home / login) for login in LOGINS)


def logins_in(folder: Path, home: Path) -> tuple[Path, ...]:
    """List that home's keys and logins which lie inside the folder."""
    held = (home / login for login in LOGINS)
    return tuple(login for login in held if login.is_relative_to(folder) and login.exists())


def toolchains(
    path: Sequence[Path], home: Path, repository: Path, system: Sequence[Path] = (Path("/"),)
) -> tuple[Path, ...]:
    """List the existing folders and files that the programs on PATH need, in order.

    What lies in `system` is shown anyway, unless it is of the home or of the repository.
    """
    search = _Search(home, repository, system)
    for entry in path:
        search.visit(entry)
    return tuple(sorted(search.kept))


_NEVER = frozenset((*(login for login in LOGINS if "/" not in login), ".git", ".windlass"))
"""Names that are left out at any depth."""


class _Search:
    """One walk from PATH; remembers what it has seen, so links in a circle end."""

    def __init__(self, home: Path, repository: Path, system: Sequence[Path]) -> None:
        self._system = tuple(system)
        # Under both names, for PATH may use the one and a link lead to the other.
        self._homes = tuple(dict.fromkeys((home, home.resolve())))
        self._repositories = tuple(dict.fromkeys((repository, repository.resolve())))
        self._seen: set[Path] = set()
        self.kept: set[Path] = set()

    def visit(self, entry: Path) -> None:
        """Keep what the programs in this folder need."""
        if not entry.is_absolute() or entry in self._seen:
            return
        self._seen.add(entry)
        # What cannot be read out here is of no use in there: OSError; RuntimeError is a link
        # that leads to itself.
        with suppress(OSError, RuntimeError):
            if ".." in entry.parts:
                self.visit(entry.resolve())
            elif self._concerns(entry) and entry.is_dir():
                self._explore(entry)
            elif entry.resolve() != entry:
                # A link from outside may lead inside: fnm puts such a one in /run.
                self.visit(entry.resolve())

    def _explore(self, entry: Path) -> None:
        kept = [self._keep(part) for part in self._needs(entry)]
        if not any(kept):
            # The folder of a known tool may itself be the repository, or be around it.
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
        # Both names count: a harmless one may lead to a login, and a login elsewhere.
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
        """Refuse logins, what contains logins, and what contains a home or a repository."""
        if any(inner.is_relative_to(path) for inner in (*self._homes, *self._repositories)):
            return False
        if any(is_login(path, home) or logins_in(path, home) for home in self._homes):
            return False
        return not _NEVER.intersection(self._below(path))

    def _below(self, path: Path) -> tuple[str, ...]:
        """Give the path's parts below the repository, or else below the home."""
        # The repository first: one that lies in some `.claude/worktrees` is no login.
        for place in (*self._repositories, *self._homes):
            if path.is_relative_to(place):
                return path.relative_to(place).parts
        return ()

    def _links_of(self, entry: Path) -> Iterator[Path]:
        """Give the programs elsewhere that links in the folder lead to, unless kept already."""
        for program in islice(entry.iterdir(), LINKS):
            target = _program_behind(program)
            if target is None or any(target.is_relative_to(kept) for kept in self.kept):
                continue
            if self._concerns(target):
                yield target


def _program_behind(link: Path) -> Path | None:
    # One link that leads nowhere, or to itself, must not cost the others.
    with suppress(OSError, RuntimeError):
        target = link.resolve()
        if link.is_symlink() and target.is_file():
            return target
    return None


def _base_interpreters(venv: Path) -> Iterator[Path]:
    """Give the folders of the interpreter a virtualenv was made from."""
    for line in (venv / "pyvenv.cfg").read_text(errors="replace").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home" and value.strip():
            yield Path(value.strip())
    # The link is what really runs, wherever the file says it came from.
    yield (venv / "bin" / "python").resolve().parent


def _plain(entry: Path, homes: tuple[Path, ...]) -> tuple[Path, ...]:
    if entry.name != "bin" or entry.parent in homes:
        return (entry,)
    if entry.parent != SHARED and entry.is_relative_to(SHARED):
        return (entry.parent,)
    return (entry, *(entry.parent / part for part in PREFIX))
