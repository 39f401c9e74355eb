"""Toolchains that are known by their files, though not always how their packages stay at hand."""

import re

from windlass.cli.detect.model import Command, Files, Part

_ONLINE = (
    "`{}` fetches what it needs into the home, but checks have a fresh one and no network: "
    "set [sandbox] network = true, or say in [workspace] setup how it works without"
)


def gradle(files: Files) -> Part | None:
    """Gradle's tests, by the wrapper where there is one."""
    script = _first(files, "build.gradle", "build.gradle.kts", "settings.gradle.kts")
    if script is None:
        return None
    wrapped = "gradlew" in files
    line = "./gradlew test" if wrapped else "gradle test"
    check = Command(line, f"{script} is there", needs="java" if wrapped else "gradle")
    return Part(checks=(check,), notes=(_ONLINE.format(line),))


def maven(files: Files) -> Part | None:
    """Maven's tests, by the wrapper where there is one."""
    if "pom.xml" not in files:
        return None
    wrapped = "mvnw" in files
    line = "./mvnw -B test" if wrapped else "mvn -B test"
    check = Command(line, "pom.xml is there", needs="java" if wrapped else "mvn")
    return Part(checks=(check,), keep=("target",), notes=(_ONLINE.format(line),))


def dotnet(files: Files) -> Part | None:
    """The tests of a .NET solution, where a project of it has any."""
    projects = (path for path in sorted(files) if path.endswith((".csproj", ".fsproj", ".vbproj")))
    tests = next((path for path in projects if "Microsoft.NET.Test.Sdk" in files[path]), None)
    if tests is None:
        return None
    check = Command("dotnet test", f"{tests} is a test project", needs="dotnet")
    return Part(checks=(check,), notes=(_ONLINE.format(check.line),))


def mix(files: Files) -> Part | None:
    """Elixir's tests."""
    if "mix.exs" not in files:
        return None
    check = Command("mix test", "mix.exs is there", needs="mix")
    has_packages = re.search(r"\{\s*:\w+\s*,\s*[\"~]", files["mix.exs"]) is not None
    notes = (_ONLINE.format(check.line),) if has_packages else ()
    return Part(checks=(check,), keep=("_build", "deps"), notes=notes)


def ruby(files: Files) -> Part | None:
    """RSpec, or else a rake task of that name."""
    found = _ruby_check(files)
    if found is None:
        return None
    line, because = found
    if "Gemfile.lock" not in files:
        return Part(checks=(Command(line, because, needs=line.split()[0]),))
    gems = "BUNDLE_PATH=vendor/bundle bundle"
    return Part(
        checks=(Command(f"{gems} exec {line}", because, needs="bundle"),),
        setup=(Command(f"{gems} install", "Gemfile.lock is there", needs="bundle"),),
        inputs=("Gemfile", "Gemfile.lock"),
        keep=("vendor/bundle", ".bundle"),
    )


def php(files: Files) -> Part | None:
    """PHPUnit, as composer installs it."""
    settings = _first(files, "phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml")
    if settings is None:
        return None
    because = f"{settings} is there"
    if "phpunit/phpunit" not in files.get("composer.json", ""):
        return Part(checks=(Command("phpunit", because, needs="phpunit"),))
    return Part(
        checks=(Command("vendor/bin/phpunit", because, needs="php"),),
        setup=(
            Command(
                "composer install --no-interaction",
                "composer.json names phpunit",
                needs="composer",
            ),
        ),
        inputs=tuple(name for name in ("composer.json", "composer.lock") if name in files),
        keep=("vendor",),
    )


def _ruby_check(files: Files) -> tuple[str, str] | None:
    if ".rspec" in files:
        return "rspec", ".rspec is there"
    spec = next((path for path in sorted(files) if path.endswith("_spec.rb")), None)
    if spec is not None:
        return "rspec", f"{spec} is there"
    rakefile = _first(files, "Rakefile", "rakefile", "Rakefile.rb")
    task = re.compile(r"Rake::TestTask|Minitest::TestTask|^\s*task\s*\(?:test\b", re.MULTILINE)
    if rakefile is not None and task.search(files[rakefile]):
        return "rake test", f"{rakefile} has a task 'test'"
    return None


def _first(files: Files, *names: str) -> str | None:
    return next((name for name in names if name in files), None)
