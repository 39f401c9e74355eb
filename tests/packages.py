"""Build Windlass's packages, and install them where a test can run them."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, **options: object) -> str:
    """Run a command and return its output; fails with all of it."""
    done = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,  # pyright: ignore[reportCallIssue, reportArgumentType]
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


def build(source: Path, into: Path, *targets: str) -> list[Path]:
    """Build these packages of a source folder: `sdist`, `wheel`."""
    wanted = [part for target in targets for part in ("-t", target)]
    run(sys.executable, "-m", "hatchling", "build", "-d", into, *wanted, cwd=source)
    return sorted(into.iterdir())


def install(wheel: Path, into: Path) -> Path:
    """Install a wheel beside the pinned packages of this environment; returns its programs."""
    run(sys.executable, "-m", "venv", "--without-pip", into)
    programs, ours = into / "bin", sysconfig.get_path("purelib")
    site = run(programs / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    # A path in a .pth file is searched last, and its own .pth files are not read: the editable
    # Windlass of this environment is not seen.
    Path(site.strip(), "pinned.pth").write_text(f"{ours}\n")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "--python", programs / "python", "install", "--no-deps", "--no-index", wheel)
    return programs


def environment(home: Path, programs: Path) -> dict[str, str]:
    """What a newcomer's shell has, and nothing of this process."""
    home.mkdir(exist_ok=True)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"}
