"""A table of toolchains that are detected by their files, and the recipes of make and just.

Packages are fetched into the checkout, where checks without network can see them.
"""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from msgspec import Struct, structs

from windlass.app.detect.model import Command, Files, Part

_CARGO_HOME = 'CARGO_HOME="$PWD/.cargo-home"'
# Without -modcacherw Go makes its folders read-only, and they could not be removed.
_GO_CACHE = 'GOFLAGS=-modcacherw GOMODCACHE="$PWD/.go-mod"'
_GEMS = "BUNDLE_PATH=vendor/bundle bundle"
_GRADLE_HOME = 'GRADLE_USER_HOME="$PWD/.gradle-home"'
_MAVEN_HOME = '-Dmaven.repo.local="$PWD/.m2"'
_NUGET_HOME = 'NUGET_PACKAGES="$PWD/.nuget"'
_MIX_HOME = 'export MIX_HOME="$PWD/.mix" HEX_HOME="$PWD/.hex" &&'
# Surefire fetches what runs the tests only when it looks for some.
_NO_TEST = "test -Dtest=NoSuchTest -Dsurefire.failIfNoSpecifiedTests=false"
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
    note: str = ""


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
    beside: str = ""
    """A pattern of files that must be there too."""
    keep: str = ""
    packages: Packages | None = None
    language: str = ""
    """Of several rows of one language, only the first match is used."""


def _gems(check: str) -> Packages:
    check, setup = f"{_GEMS} exec {check}", f"{_GEMS} install"
    inputs, keep = "Gemfile Gemfile.lock", "vendor/bundle .bundle"
    return Packages(
        lambda files: "Gemfile" in files or "Gemfile.lock" in files,
        check,
        setup,
        "Gemfile names gems",
        inputs,
        keep,
    )


_CRATES_OF_CARGO = Packages(
    _has_crates,
    f"{_CARGO_HOME} cargo test --offline",
    f"{_CARGO_HOME} cargo fetch",
    "dependencies are named, and checks have no network",
    "Cargo.toml */Cargo.toml Cargo.lock */Cargo.lock",
    "target .cargo-home",
)
_CRATES_OF_WORKSPACE = structs.replace(
    _CRATES_OF_CARGO, check=f"{_CARGO_HOME} cargo test --workspace --offline"
)
_PACKAGES_OF_GRADLE = Packages(
    lambda _files: True,
    f"{_GRADLE_HOME} gradle --offline test",
    f"{_GRADLE_HOME} gradle testClasses",
    "packages come from the network, and checks have none",
    "*.gradle *.gradle.kts gradle.properties gradle/*",
    ".gradle-home .gradle build",
    note="`gradle testClasses` fetches no packages that only running tests need: `windlass init"
    " --try` shows whether some are missing",
)
_PACKAGES_OF_MAVEN = Packages(
    lambda _files: True,
    f"mvn -B -o {_MAVEN_HOME} test",
    f"mvn -B {_MAVEN_HOME} {_NO_TEST}",
    "packages come from the network, and checks have none",
    "pom.xml */pom.xml",
    "target .m2",
)
_PACKAGES_OF_DOTNET = Packages(
    lambda _files: True,
    f"{_NUGET_HOME} dotnet test --no-restore",
    f"{_NUGET_HOME} dotnet restore",
    "packages come from the network, and checks have none",
    "*.sln *.slnx *.[cfv][sb]proj Directory.*.props */packages.lock.json NuGet.config",
    ".nuget",
)
_PACKAGES_OF_MIX = Packages(
    lambda files: _says(files, "mix.exs", _HEX),
    f"{_MIX_HOME} mix test",
    f"{_MIX_HOME} mix local.hex --force && mix local.rebar --force && mix deps.get",
    "mix.exs names packages, and checks have no network",
    "mix.exs mix.lock",
    "_build deps .mix .hex",
    needs="mix",
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
    Toolchain(
        "Cargo.toml",
        "cargo test --workspace",
        "{} has a workspace",
        r"^\s*\[workspace\]",
        keep="target",
        packages=_CRATES_OF_WORKSPACE,
        language="rust",
    ),
    Toolchain(
        "Cargo.toml", "cargo test", keep="target", packages=_CRATES_OF_CARGO, language="rust"
    ),
    Toolchain("go.mod", "go test ./...", packages=_MODULES_OF_GO),
    Toolchain(_GRADLE, "gradle test", wrapper="gradlew", packages=_PACKAGES_OF_GRADLE),
    Toolchain("pom.xml", "mvn -B test", wrapper="mvnw", packages=_PACKAGES_OF_MAVEN),
    Toolchain(
        "*.[cfv][sb]proj",
        "dotnet test",
        "{} is a test project",
        _TEST_PROJECT,
        packages=_PACKAGES_OF_DOTNET,
    ),
    Toolchain("mix.exs", "mix test", keep="_build deps", packages=_PACKAGES_OF_MIX),
    Toolchain(".rspec *_spec.rb", "rspec", packages=_gems("rspec"), language="ruby"),
    Toolchain(
        "bin/rails",
        "bin/rails test",
        beside="test/*_test.rb",
        packages=structs.replace(
            _gems("rake"), check="BUNDLE_PATH=vendor/bundle bin/rails test", needs="ruby"
        ),
        language="ruby",
    ),
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
    if row.beside and not _matching(files, row.beside):
        return None
    paths = (path for pattern in row.marks.split() for path in _matching(files, pattern))
    return next((path for path in paths if _says(files, path, row.says)), None)


def _matching(files: Files, pattern: str) -> list[str]:
    return sorted(path for path in files if fnmatchcase(path, pattern))


def _part(row: Toolchain, mark: str, files: Files) -> Part:
    because, packages = row.because.format(mark), row.packages
    if packages is None or not packages.used(files):
        check = _wrapped(row, _command(row.check, because, row.needs), files)
        return Part(checks=(check,), keep=tuple(row.keep.split()))
    inputs = {path for pattern in packages.inputs.split() for path in _matching(files, pattern)}
    check = _wrapped(row, _command(packages.check, because, packages.needs), files)
    setup = _wrapped(row, _command(packages.setup, packages.because, packages.needs), files)
    return Part(
        checks=(check,),
        setup=(setup,),
        inputs=tuple(sorted(inputs)),
        keep=tuple(packages.keep.split()),
        notes=(packages.note,) if packages.note else (),
    )


def _wrapped(row: Toolchain, command: Command, files: Files) -> Command:
    """The command with the project's own wrapper in place of the program, if it has one."""
    if not row.wrapper or row.wrapper not in files:
        return command
    program = row.check.partition(" ")[0]
    line = " ".join(
        f"./{row.wrapper}" if word == program else word for word in command.line.split(" ")
    )
    return structs.replace(command, line=line, needs="java")


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
