"""A table of toolchains that are detected by their files, and the recipes of make and just.

Packages are fetched into the checkout, where checks without network can see them. If a toolchain
cannot do that, a note says so.
"""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from msgspec import Struct

from windlass.app.detect.model import Command, Files, Part

_ONLINE = (
    "`{}` fetches packages into the home, but checks have a fresh home and no network: "
    "set [sandbox] network = true, or write in [workspace] setup how it works without"
)
_CARGO_HOME = 'CARGO_HOME="$PWD/.cargo-home"'
# Without -modcacherw Go makes its folders read-only, and they could not be removed.
_GO_CACHE = 'GOFLAGS=-modcacherw GOMODCACHE="$PWD/.go-mod"'
_GEMS = "BUNDLE_PATH=vendor/bundle bundle"
# Without --no-tests=error, ctest passes if there are no tests.
_CTEST = (
    "cmake -S . -B .ctest-build && cmake --build .ctest-build"
    " && ctest --test-dir .ctest-build --no-tests=error --output-on-failure"
)
_CRATES = r"^\[.*dependencies.*\]\s*\n\s*[\w\"]|^\[.*dependencies\.[\w\"-]+\]"

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_JUSTFILES = ("justfile", "Justfile", ".justfile")
_RECIPES = ("test", "check")
"""In order of preference."""


def _says(files: Files, path: str, pattern: str) -> bool:
    return re.search(pattern, files.get(path, ""), re.MULTILINE) is not None


def _has_crates(files: Files) -> bool:
    if "Cargo.lock" in files:
        return _says(files, "Cargo.lock", r"^source\s*=")
    manifests = (path for path in files if path.split("/")[-1] == "Cargo.toml")
    return any(_says(files, path, _CRATES) for path in manifests)


def _has_modules(files: Files) -> bool:
    return _says(files, "go.mod", r"^require\b") and "vendor/modules.txt" not in files


class Packages(Struct, frozen=True):
    """How to install the project's packages in the checkout, and the check that uses them."""

    used: Callable[[Files], bool]
    check: str
    setup: str
    because: str
    inputs: str
    """Patterns of the files that name the packages."""
    keep: str
    needs: str = ""
    """The program that the check needs, if it is not its first word."""


class Toolchain(Struct, frozen=True):
    """One row: the files that show a toolchain, and its check. Lists are separated by spaces."""

    marks: str
    """Patterns of files; the first match that contains `says` shows the toolchain."""
    check: str
    because: str = "{} is there"
    says: str = ""
    """A regular expression that the file must match."""
    needs: str = ""
    wrapper: str = ""
    """A script of the project that is used instead; both known ones need Java."""
    keep: str = ""
    fetches: str | None = None
    """Matches a file whose packages are fetched into the home, which checks do not see."""
    packages: Packages | None = None
    language: str = ""
    """Of several rows of one language, only the first match is used."""


def _gems(check: str) -> Packages:
    check, setup = f"{_GEMS} exec {check}", f"{_GEMS} install"
    inputs, keep = "Gemfile Gemfile.lock", "vendor/bundle .bundle"
    return Packages(
        lambda files: "Gemfile.lock" in files, check, setup, "Gemfile.lock is there", inputs, keep
    )


_CRATES_OF_CARGO = Packages(
    _has_crates,
    f"{_CARGO_HOME} cargo test --offline",
    f"{_CARGO_HOME} cargo fetch",
    "dependencies are named, and checks have no network",
    "Cargo.toml */Cargo.toml Cargo.lock */Cargo.lock",
    "target .cargo-home",
)
_MODULES_OF_GO = Packages(
    _has_modules,
    f"{_GO_CACHE} go test ./...",
    f"{_GO_CACHE} go mod download",
    "go.mod requires modules, and checks have no network",
    "go.mod go.sum",
    ".go-mod",
)
_PACKAGES_OF_COMPOSER = Packages(
    lambda files: "phpunit/phpunit" in files.get("composer.json", ""),
    "vendor/bin/phpunit",
    "composer install --no-interaction",
    "composer.json names phpunit",
    "composer.json composer.lock",
    "vendor",
    needs="php",
)
_GRADLE = "build.gradle build.gradle.kts settings.gradle.kts"
_PHPUNIT = "phpunit.xml phpunit.xml.dist phpunit.dist.xml"
_TEST_PROJECT = r"Microsoft\.NET\.Test\.Sdk"
_HEX = r"\{\s*:\w+\s*,\s*[\"~]"
_RAKE_TASK = r"Rake::TestTask|Minitest::TestTask|^\s*task\s*\(?:test\b"
_RAKEFILES = "Rakefile rakefile Rakefile.rb"
_TESTED = r"(?i)^\s*(enable_testing\s*\(|include\s*\(\s*CTest\b)"

TOOLCHAINS = (
    Toolchain("Cargo.toml", "cargo test", keep="target", packages=_CRATES_OF_CARGO),
    Toolchain("go.mod", "go test ./...", packages=_MODULES_OF_GO),
    Toolchain(_GRADLE, "gradle test", wrapper="gradlew", fetches=""),
    Toolchain("pom.xml", "mvn -B test", wrapper="mvnw", keep="target", fetches=""),
    Toolchain("*.[cfv][sb]proj", "dotnet test", "{} is a test project", _TEST_PROJECT, fetches=""),
    Toolchain("mix.exs", "mix test", keep="_build deps", fetches=_HEX),
    Toolchain(".rspec *_spec.rb", "rspec", packages=_gems("rspec"), language="ruby"),
    Toolchain(
        _RAKEFILES,
        "rake test",
        "{} has a task 'test'",
        _RAKE_TASK,
        packages=_gems("rake test"),
        language="ruby",
    ),
    Toolchain(_PHPUNIT, "phpunit", packages=_PACKAGES_OF_COMPOSER),
    Toolchain(
        "CMakeLists.txt", _CTEST, "{} enables testing", _TESTED, "ctest", keep=".ctest-build"
    ),
)


def toolchains(files: Files) -> list[Part]:
    """The proposal of each toolchain of the project."""
    found: list[Part] = []
    languages: set[str] = set()
    for row in TOOLCHAINS:
        mark = _mark(row, files)
        if mark is not None and row.language not in languages:
            found.append(_part(row, mark, files))
            languages |= {row.language} - {""}
    return found


def _mark(row: Toolchain, files: Files) -> str | None:
    """The file that shows the toolchain."""
    paths = (path for pattern in row.marks.split() for path in _matching(files, pattern))
    return next((path for path in paths if _says(files, path, row.says)), None)


def _matching(files: Files, pattern: str) -> list[str]:
    return sorted(path for path in files if fnmatchcase(path, pattern))


def _part(row: Toolchain, mark: str, files: Files) -> Part:
    because, packages = row.because.format(mark), row.packages
    if packages is not None and packages.used(files):
        patterns = packages.inputs.split()
        inputs = {path for pattern in patterns for path in _matching(files, pattern)}
        return Part(
            checks=(_command(packages.check, because, packages.needs),),
            setup=(_command(packages.setup, packages.because),),
            inputs=tuple(sorted(inputs)),
            keep=tuple(packages.keep.split()),
        )
    check = _command(row.check, because, row.needs)
    if row.wrapper and row.wrapper in files:
        check = Command(f"./{row.wrapper} {row.check.partition(' ')[2]}", because, needs="java")
    fetches = row.fetches is not None and _says(files, mark, row.fetches)
    notes = (_ONLINE.format(check.line),) if fetches else ()
    return Part(checks=(check,), keep=tuple(row.keep.split()), notes=notes)


def _command(line: str, because: str, needs: str = "") -> Command:
    """A command that needs its first word, or the program that is named."""
    program = next(word for word in line.split() if "=" not in word)
    return Command(line, because, needs=needs or program)


def recipes(files: Files) -> Part | None:
    """The recipe that tests the project, of make or else of just."""
    for program, names in (("make", _MAKEFILES), ("just", _JUSTFILES)):
        for name in names:
            found = _recipe(files.get(name, ""))
            if found is not None:
                line, because = f"{program} {found}", f"{name} has a recipe {found!r}"
                return Part(checks=(Command(line, because, needs=program),))
    return None


def _recipe(text: str) -> str | None:
    for name in _RECIPES:
        # A recipe may share its line with others, or take parameters; `test := 1` is a variable.
        if re.search(rf"^@?(?:[\w.-]+ +)*{name}(?![\w.-])[^\n:=#]*:(?![:=])", text, re.MULTILINE):
            return name
    return None
