"""Files that judge the work, or that can change how it is judged. Pure.

A Player may change them, and often must. But a check is only as good as these files, so the Coach
learns which of them changed and what they are. In doubt a path is listed: that costs little.
"""

import re

from windlass.core.other_tools import AGENT_INSTRUCTIONS

_KINDS = (
    (
        "a test",
        (
            r"(^|/)(tests?|specs?|__tests__|testdata|fixtures|e2e|cypress|features)/"
            r"|(^|/)(test_[^/]*|[^/]*[_-](test|spec|tests)|[^/]*\.(test|spec|cy|e2e))\.[a-z]+$"
            r"|(^|/)(tests?|spec)\.(py|rb|js|ts|sh|go|rs)$|(^|/)[A-Z]\w*(Test|Tests|Spec|IT)\.[a-z]+$"
            r"|\.snap$"
        ),
    ),
    (
        "configures tests",
        (
            r"(^|/)(conftest\.py|pytest\.ini|\.?pytest\.toml|tox\.ini|noxfile\.py|setup\.cfg|\.coveragerc"
            r"|pyproject\.toml|\.rspec|phpunit\.xml(\.dist)?|\.mocharc[^/]*|\.nycrc[^/]*|karma\.conf\.\w+"
            r"|(jest|vitest|playwright|cypress|babel|ava|wdio)\.(config|setup)\.\w+|deno\.jsonc?"
            r"|bunfig\.toml|nextest\.toml|tsconfig[^/]*\.json)$|(^|/)\.cargo/config(\.toml)?$"
        ),
    ),
    (
        "runs checks",
        (
            r"(^|/)(GNU)?[Mm]akefile$|\.mk$|(^|/)([Jj]ustfile|Taskfile\.ya?ml|Rakefile|Gruntfile\.\w+"
            r"|gulpfile\.\w+|package\.json|composer\.json|Cargo\.toml|build\.rs|go\.mod|CMakeLists\.txt"
            r"|build\.gradle(\.kts)?|pom\.xml|build\.sbt|mix\.exs|dune-project|BUILD(\.bazel)?"
            r"|gradlew|mvnw|run[_-]?tests?[^/]*|tests?\.sh|checks?\.sh|ci\.sh)$"
            r"|(^|/)(bin|scripts?|tools|ci|hack)/[^/]+$|\.(sh|bash|bat|cmd|ps1)$|(^|/)\.husky/"
            r"|(^|/)\.pre-commit-config\.yaml$"
        ),
    ),
    (
        "is CI",
        (
            r"^\.github/|^\.gitlab-ci|^\.gitlab/|^\.circleci/|^\.ci/|^\.buildkite/|^\.travis\.yml$"
            r"|^azure-pipelines|^Jenkinsfile|^\.drone\.yml$|^bitbucket-pipelines\.yml$|^\.woodpecker"
        ),
    ),
    (
        "runs when another program starts",
        (
            r"(^|/)(sitecustomize|usercustomize)\.py$|\.pth$|(^|/)\.(env|envrc|bashrc|profile|npmrc"
            r"|yarnrc(\.yml)?|tool-versions|python-version|nvmrc|node-version|condarc)$"
            r"|(^|/)(mise|rust-toolchain)(\.toml)?$|(^|/)\.venv/|(^|/)node_modules/|(^|/)vendor/"
        ),
    ),
    (
        "replaces a program that runs tests",
        (
            r"(^|/)(pytest|_pytest|pluggy|unittest|nose|coverage|mock|hypothesis|xdist|tox|nox)"
            r"(\.py|/__init__\.py)$|(^|/)(pytest|python3?|node|npm|npx|jest|vitest|go|cargo|make|ruby"
            r"|rspec|mvn|gradle|tox|sh|bash|git)$"
        ),
    ),
    ("steers git", r"(^|/)\.git(attributes|modules|ignore)$"),
    ("tells agents what to do", rf"{AGENT_INSTRUCTIONS}|^\.windlass/"),
    ("is Windlass's own", r"^windlass\.toml$"),
)
_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _KINDS)


def is_test(path: str) -> bool:
    return judges(path) == _KINDS[0][0]


def judges(path: str) -> str:
    """How the file affects the judging of the work; empty for most files."""
    return next((kind for kind, pattern in _PATTERNS if pattern.search(path)), "")
