"""Cargo, Go and CMake: what they fetch is kept inside the checkout, where checks can see it."""

import re

from windlass.cli.detect.model import Command, Files, Part

_CARGO_HOME = 'CARGO_HOME="$PWD/.cargo-home"'
# Without that flag Go makes its folders read-only, and nobody could remove them.
_GO_CACHE = 'GOFLAGS=-modcacherw GOMODCACHE="$PWD/.go-mod"'

_TESTED = re.compile(
    r"^\s*(enable_testing\s*\(|include\s*\(\s*CTest\b)", re.IGNORECASE | re.MULTILINE
)
_CRATES = re.compile(
    r"^\[.*dependencies.*\]\s*\n\s*[\w\"]|^\[.*dependencies\.[\w\"-]+\]", re.MULTILINE
)


def cargo(files: Files) -> Part | None:
    """`cargo test`, with the crates it depends on."""
    if "Cargo.toml" not in files:
        return None
    because = "Cargo.toml is there"
    if not _has_crates(files):
        return Part(checks=(Command("cargo test", because, needs="cargo"),), keep=("target",))
    fetch = "dependencies are named, and checks have no network"
    return Part(
        checks=(Command(f"{_CARGO_HOME} cargo test --offline", because, needs="cargo"),),
        setup=(Command(f"{_CARGO_HOME} cargo fetch", fetch, needs="cargo"),),
        inputs=tuple(
            path for path in sorted(files) if path.split("/")[-1] in {"Cargo.toml", "Cargo.lock"}
        ),
        keep=("target", ".cargo-home"),
    )


def go(files: Files) -> Part | None:
    """`go test`, with the modules it depends on."""
    if "go.mod" not in files:
        return None
    because = "go.mod is there"
    requires = re.search(r"^require\b", files["go.mod"], re.MULTILINE)
    if not requires or "vendor/modules.txt" in files:
        return Part(checks=(Command("go test ./...", because, needs="go"),))
    return Part(
        checks=(Command(f"{_GO_CACHE} go test ./...", because, needs="go"),),
        setup=(
            Command(
                f"{_GO_CACHE} go mod download",
                "go.mod requires modules, and checks have no network",
                needs="go",
            ),
        ),
        inputs=tuple(name for name in ("go.mod", "go.sum") if name in files),
        keep=(".go-mod",),
    )


def cmake(files: Files) -> Part | None:
    """`ctest` on a build of its own."""
    text = files.get("CMakeLists.txt", "")
    if not _TESTED.search(text):
        return None
    build = "cmake -S . -B .ctest-build && cmake --build .ctest-build"
    # Without that option, no tests at all would pass.
    test = "ctest --test-dir .ctest-build --no-tests=error --output-on-failure"
    because = "CMakeLists.txt enables testing"
    return Part(
        checks=(Command(f"{build} && {test}", because, needs="ctest"),), keep=(".ctest-build",)
    )


def _has_crates(files: Files) -> bool:
    if "Cargo.lock" in files:
        return re.search(r"^source\s*=", files["Cargo.lock"], re.MULTILINE) is not None
    manifests = (path for path in files if path.split("/")[-1] == "Cargo.toml")
    return any(_CRATES.search(files[path]) for path in manifests)
