"""The packages: built, checked, installed and run; and what `make demo` and the image install."""

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from importlib.metadata import PathDistribution, distribution
from pathlib import Path

import pytest

from dockerfile import CleanRoot, Dockerfile
from packages import ROOT, build, environment, install, run
from windlass.app.wiring.installation import add_command

MOST = 450_000_000
"""Bytes that `make demo` may install; the agent's own program has 366 million of them."""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source package and the wheel, each built from this checkout."""
    wheel, sdist = build(ROOT, tmp_path_factory.mktemp("dist"), "sdist", "wheel")
    return sdist, wheel


def test_the_packages_pass_the_checks_of_an_index(packages: tuple[Path, Path]):
    shown = run(sys.executable, "-m", "twine", "check", "--strict", *packages)
    assert shown.count("PASSED") == 2


def test_the_wheel_holds_the_package_and_the_source_builds_the_same(
    packages: tuple[Path, Path], tmp_path: Path
):
    sdist, wheel = packages
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    (again,) = build(unpacked, tmp_path / "dist", "wheel")
    names = zipfile.ZipFile(wheel).namelist()
    assert names == zipfile.ZipFile(again).namelist()
    tracked = run("git", "ls-files", "src", cwd=ROOT).splitlines()
    package = {name.removeprefix("src/") for name in tracked if (ROOT / name).exists()}
    assert package <= set(names), "prompts, templates, skills and schemas too"
    assert {name.partition("/")[0] for name in names} == {"windlass", "windlass-0.1.0.dist-info"}


@pytest.mark.e2e
def test_the_demo_runs_from_the_installed_wheel(packages: tuple[Path, Path], tmp_path: Path):
    programs = install(packages[1], tmp_path / "venv")
    env = environment(tmp_path / "home", programs)
    where = "import windlass; print(windlass.__file__)"
    assert str(tmp_path) in run(programs / "python", "-c", where, env=env, cwd=tmp_path)
    assert "0.1.0" in run("windlass", "--version", env=env, cwd=tmp_path)
    shown = run("windlass", "demo", "--into", tmp_path / "demo", env=env, cwd=tmp_path)
    assert "\x1b" not in shown, "plain lines without a terminal"
    assert re.search(r"^\d\d:\d\d:\d\dZ +START  Word counts · 5 tasks", shown, re.MULTILINE)
    assert "5 tasks: 5 completed" in shown
    assert "── What it cost" in shown


class TestExtras:
    """The command that adds an extra names the place that this copy came from."""

    @staticmethod
    def copy(tmp_path: Path, direct_url: object = None, installer: str = "pip") -> PathDistribution:
        info = tmp_path / "windlass-0.1.0.dist-info"
        info.mkdir()
        requires = "".join(
            f"Requires-Dist: {each}\n" for each in distribution("windlass").requires or ()
        )
        (info / "METADATA").write_text(f"Name: windlass\nVersion: 0.1.0\n{requires}")
        (info / "INSTALLER").write_text(f"{installer}\n")
        if direct_url is not None:
            (info / "direct_url.json").write_text(json.dumps(direct_url))
        return PathDistribution(info)

    def test_of_a_checkout(self, tmp_path: Path):
        here = tmp_path / "my checkout"
        here.mkdir()
        url = here.as_uri()
        copy = self.copy(tmp_path, {"url": url, "dir_info": {"editable": True}})
        wanted = f"/v/bin/python -m pip install --editable '{here}[mcp]'"
        assert add_command(copy, "mcp", tmp_path, "/v/bin/python") == wanted

    def test_of_a_wheel(self, tmp_path: Path):
        wheel = tmp_path / "windlass-0.1.0-py3-none-any.whl"
        wheel.touch()
        copy = self.copy(tmp_path, {"url": wheel.as_uri(), "archive_info": {}}, "uv")
        wanted = f"uv pip install --python /v/bin/python '{wheel}[mcp]'"
        assert add_command(copy, "mcp", tmp_path, "/v/bin/python") == wanted
        (tmp_path / "uv-receipt.toml").touch()
        wanted = f"uv tool install --force '{wheel}[mcp]'"
        assert add_command(copy, "mcp", tmp_path, "/v/bin/python") == wanted

    def test_of_a_repository(self, tmp_path: Path):
        vcs = {"vcs": "git", "commit_id": "abc"}
        copy = self.copy(tmp_path, {"url": "https://forge.example/w", "vcs_info": vcs})
        wanted = "python3 -m pip install 'windlass[mcp] @ git+https://forge.example/w@abc'"
        assert add_command(copy, "mcp", tmp_path, "python3") == wanted

    @pytest.mark.parametrize("direct_url", [None, {"url": "file:///gone", "dir_info": {}}])
    def test_of_a_place_that_is_unknown_or_gone(self, tmp_path: Path, direct_url: object):
        copy = self.copy(tmp_path, direct_url)
        wanted = "python3 -m pip install 'mcp>=2.3'"
        assert add_command(copy, "mcp", tmp_path, "python3") == wanted
        (tmp_path / "pipx_metadata.json").touch()
        assert add_command(copy, "mcp", tmp_path, "python3") == "pipx inject windlass 'mcp>=2.3'"

    def test_no_text_takes_windlass_from_an_index(self):
        tracked = run("git", "ls-files", "*.md", "src", "Dockerfile", "Makefile", cwd=ROOT).split()
        claims = re.compile(
            r"(pip|pipx|uv tool) install (-\S+ )*'?windlass\b(?!\S*[/@ ])|uvx windlass"
        )
        found = [
            f"{name}: {line.strip()}"
            for name in tracked
            if (ROOT / name).is_file()
            for line in (ROOT / name).read_text(errors="ignore").splitlines()
            if claims.search(line)
        ]
        assert found == []


def _pins(name: str) -> Iterator[str]:
    text = (ROOT / "requirements" / name).read_text()
    yield from re.findall(r"^([a-z0-9][\w.-]*)==[^;\n]*(?:\\|platform_python)", text, re.MULTILINE)


class TestMakeDemo:
    def test_it_says_something_first_and_installs_nothing_for_developers(self, tmp_path: Path):
        shown = run(
            "make",
            "--dry-run",
            "--no-print-directory",
            f"VENV={tmp_path / 'venv'}",
            "demo",
            cwd=ROOT,
        ).splitlines()
        assert shown[0].startswith("echo ")
        installs = [line for line in shown if "pip install" in line]
        assert all("dev.txt" not in line and "docs.txt" not in line for line in installs)
        assert "--quiet" not in installs[0], "the long one shows its progress"

    def test_what_it_installs_is_small_enough(self):
        files = {
            path.locate()
            for name in (*_pins("run.txt"), *_pins("build.txt"), "pip")
            for path in distribution(name).files or ()
        }
        size = sum(
            Path(os.fspath(path)).stat().st_size for path in files if Path(os.fspath(path)).exists()
        )
        assert 366_000_000 < size < MOST

    @pytest.mark.sweep
    @pytest.mark.timeout(1200)  # it downloads and unpacks 440 MB
    def test_in_a_fresh_clone_it_speaks_at_once_and_stays_small(self, tmp_path: Path):
        clone, home = tmp_path / "clone", tmp_path / "home"
        run("git", "clone", "--quiet", ROOT, clone)
        home.mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        env |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        begun = time.monotonic()
        with subprocess.Popen(
            ["make", "demo"], cwd=clone, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Installing Windlass")
            assert time.monotonic() - begun < 3
            rest = process.stdout.read()
        assert process.returncode == 0, rest[-3000:]
        assert "Collecting " in rest
        assert "5 tasks: 5 completed" in rest
        used = int(run("du", "--summarize", "--block-size=1", clone / ".venv").split()[0])
        assert 366_000_000 < used <= MOST


class TestDockerfile:
    def test_it_copies_what_there_is_and_ends_as_a_plain_user(self):
        image = Dockerfile()
        allowed = [
            line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"
        ]
        for line in image.of("COPY"):
            *sources, _ = line.split()
            assert all((ROOT / source).exists() for source in sources)
            assert all(any(fnmatch.fnmatch(each, rule) for rule in allowed) for each in sources)
        assert image.of("USER") == ["windlass"]
        last_run = max(n for n, (word, _) in enumerate(image.steps) if word == "RUN")
        assert image.steps.index(("USER", "windlass")) > last_run
        assert {"git", "bubblewrap", "python3-venv", "ca-certificates"} <= set(image.packages)

    @pytest.mark.sweep
    @pytest.mark.timeout(1200)  # the same
    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can make the user of the image")
    @pytest.mark.skipif(shutil.which("dpkg") is None, reason="not Debian")
    def test_its_steps_run_in_a_clean_root_and_the_demo_runs_there(self, tmp_path: Path):
        """Everything but the base image and apt itself: the packages are those of this machine."""
        image = Dockerfile()
        run("dpkg-query", "--show", *image.packages)
        root = CleanRoot(tmp_path)
        for word, rest in image.steps:
            if word == "COPY":
                root.copy(rest)
            elif word == "RUN" and "apt-get" not in rest:
                run(*root.command, "sh", "-ec", rest)
        assert "5 tasks: 5 completed" in run(*root.as_user(image))
