"""Which folders of a home and a repository PATH makes readable, and which it never does."""

from pathlib import Path

import pytest

from windlass.adapters.sandbox.host import LOGINS, toolchains


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return _folder(tmp_path / "home" / "ann")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return _folder(tmp_path / "srv" / "project")


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _program(path: Path) -> Path:
    _folder(path.parent)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def _venv(root: Path, base: Path) -> Path:
    """A virtualenv as `python -m venv` makes it, from an interpreter in `base`."""
    _folder(root / "bin")
    (root / "pyvenv.cfg").write_text(f"home = {base}\nversion = 3.11.7\n")
    (root / "bin" / "python").symlink_to(base / "python3")
    return root / "bin"


@pytest.mark.parametrize(
    ("entry", "made", "kept"),
    [
        (".pyenv/shims", [".pyenv/versions"], [".pyenv"]),
        (".cargo/bin", [".cargo/registry", ".rustup"], [".cargo/bin", ".rustup"]),
        (".nvm/versions/node/v22/bin", [], [".nvm"]),
        (".volta/bin", [], [".volta"]),
        ("go/bin", ["go/src", "go/pkg"], ["go/bin"]),
        (
            ".local/bin",
            [".local/share/uv/tools", ".local/share/pipx", ".local/lib", ".local/share/keyrings"],
            [".local/bin", ".local/lib", ".local/share/pipx", ".local/share/uv/tools"],
        ),
        (".sdkman/candidates/java/current/bin", [], [".sdkman"]),
        (".rbenv/shims", [], [".rbenv"]),
        (".asdf/shims", [], [".asdf"]),
        (".local/share/mise/shims", [], [".local/share/mise"]),
        (".deno/bin", [], [".deno/bin"]),
        (".bun/bin", [".bun/install"], [".bun/bin", ".bun/install"]),
        ("bin", ["lib", "share"], ["bin"]),
        (
            "apps/node/bin",
            ["apps/node/lib", "apps/node/.token"],
            ["apps/node/bin", "apps/node/lib"],
        ),
        ("miniconda3/bin", ["miniconda3/conda-meta"], ["miniconda3"]),
    ],
)
def test_a_known_tool_keeps_what_it_needs_and_no_more(
    home: Path, repository: Path, entry: str, made: list[str], kept: list[str]
):
    _folder(home / entry)
    for folder in made:
        _folder(home / folder)

    found = toolchains([home / entry], home, repository)

    assert found == tuple(home / path for path in sorted(kept))


def test_cargo_never_shows_its_login(home: Path, repository: Path):  # B5
    _program(home / ".cargo/bin/cargo")
    (home / ".cargo/credentials.toml").write_text("token")

    assert toolchains([home / ".cargo/bin"], home, repository) == (home / ".cargo/bin",)


@pytest.mark.parametrize("login", LOGINS)
def test_path_cannot_lead_into_a_login(home: Path, repository: Path, login: str):  # B5
    _program(home / login / "bin" / "tool")

    assert toolchains([home / login / "bin", home / login], home, repository) == ()


@pytest.mark.parametrize("login", [".ssh", ".aws", ".config/gh", ".claude"])
def test_links_cannot_lead_into_a_login(home: Path, repository: Path, login: str):  # B5
    key = _program(home / login / "id")
    _folder(home / "bin")
    (home / "bin" / "id").symlink_to(key)
    (home / "tools").symlink_to(home / login)

    found = toolchains([home / "bin", home / "tools", home / "x/../tools"], home, repository)

    assert found == (home / "bin",)


def test_what_contains_a_login_is_left_out(home: Path, repository: Path):  # B5
    _folder(home / ".config" / "gh")
    _folder(home / ".local/share/keyrings")

    assert toolchains([home / ".config", home / ".local/share"], home, repository) == ()


def test_neither_home_nor_repository_nor_what_is_around_them_is_kept(tmp_path: Path):  # B5
    home = _folder(tmp_path / "ann")
    repository = _folder(home / "src" / "project")
    (home / "everything").symlink_to("/")
    _folder(repository / ".windlass" / "bin")
    _folder(repository / ".git" / "bin")
    wide = [tmp_path, home, home / "src", repository, home / "everything"]
    state = [repository / ".windlass/bin", repository / ".git/bin", Path("relative")]

    assert toolchains([*wide, *state], home, repository) == ()


def test_a_virtualenv_brings_its_base_interpreter(home: Path, repository: Path):
    base = home / ".pyenv/versions/3.11.7/bin"
    _program(base / "python3")

    found = toolchains([_venv(repository / ".venv", base)], home, repository)

    assert found == (home / ".pyenv", repository / ".venv")


def test_a_base_interpreter_of_no_known_tool_brings_its_library(home: Path, repository: Path):
    _program(home / "python311/bin/python3")
    _folder(home / "python311/lib")

    found = toolchains([_venv(home / "envs/a", home / "python311/bin")], home, repository)

    assert found == (home / "envs/a", home / "python311/bin", home / "python311/lib")


def test_node_modules_are_kept_whole(home: Path, repository: Path):
    _program(repository / "node_modules/.bin/jest")

    found = toolchains([repository / "node_modules/.bin"], home, repository)

    assert found == (repository / "node_modules",)


def test_links_bring_the_programs_they_lead_to(home: Path, repository: Path):
    binary = _program(home / ".local/share/claude/versions/2.1")
    node = _program(home / "apps/node/bin/node")
    _folder(home / "apps/node/lib")
    _folder(home / "bin")
    (home / "bin/claude").symlink_to(binary)
    (home / "bin/node").symlink_to(node)
    (home / "bin/loop").symlink_to(home / "bin/loop")

    found = toolchains([home / "bin"], home, repository)

    assert set(found) == {binary, home / "apps/node/bin", home / "apps/node/lib", home / "bin"}


def test_a_link_outside_the_home_that_leads_inside_counts(tmp_path: Path, repository: Path):
    home = _folder(tmp_path / "ann")
    _program(home / ".local/share/fnm/node-versions/v22/installation/bin/node")
    _folder(tmp_path / "run")
    shell = tmp_path / "run" / "multishell"
    shell.symlink_to(home / ".local/share/fnm/node-versions/v22/installation")

    assert toolchains([shell / "bin"], home, repository) == (home / ".local/share/fnm",)


def test_a_repository_that_is_a_tools_own_folder_stays_covered(home: Path):
    repository = _folder(home / ".pyenv")
    _program(repository / "shims/python")

    assert toolchains([repository / "shims"], home, repository) == (repository / "shims",)


def test_a_repository_below_a_folder_named_like_a_login_has_its_tools(home: Path):
    repository = _folder(home / "src/project/.claude/worktrees/one")
    _program(repository / "node_modules/.bin/jest")

    found = toolchains([repository / "node_modules/.bin"], home, repository)

    assert found == (repository / "node_modules",)


def test_entries_that_are_no_folders_are_passed_over(home: Path, repository: Path):
    (home / "loop").symlink_to(home / "loop")
    _program(home / "file")
    entries = [home / "loop", home / "loop/bin", home / "file", home / "missing/bin"]

    assert toolchains([*entries, Path()], home, repository) == ()
