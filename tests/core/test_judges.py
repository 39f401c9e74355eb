"""Which files judge the work: whoever changes one of them is pointed at."""  # B2

import pytest

from windlass.core.plan.judges import judges


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("tests/test_a.py", "a test"),
        ("a/test_x.py", "a test"),
        ("x_test.go", "a test"),
        ("web/a.spec.ts", "a test"),
        ("src/AppTest.java", "a test"),
        ("conftest.py", "configures tests"),
        ("sub/conftest.py", "configures tests"),
        ("pytest.ini", "configures tests"),
        ("pyproject.toml", "configures tests"),
        ("setup.cfg", "configures tests"),
        ("tox.ini", "configures tests"),
        ("jest.config.js", "configures tests"),
        ("package.json", "runs checks"),
        ("Makefile", "runs checks"),
        ("scripts/test", "runs checks"),
        ("run-tests.sh", "a test"),
        ("bin/pytest", "runs checks"),
        ("gradlew", "runs checks"),
        (".github/workflows/ci.yml", "is CI"),
        ("sitecustomize.py", "runs when another program starts"),
        ("lib/evil.pth", "runs when another program starts"),
        (".env", "runs when another program starts"),
        ("pytest.py", "replaces a program that runs tests"),
        ("pytest/__init__.py", "replaces a program that runs tests"),
        ("unittest.py", "replaces a program that runs tests"),
        ("pytest", "replaces a program that runs tests"),
        (".gitattributes", "steers git"),
        ("CLAUDE.md", "tells agents what to do"),
        ("windlass.toml", "is Windlass's own"),
    ],
)
def test_they_are_told_by_kind(path: str, kind: str):
    assert judges(path) == kind


@pytest.mark.parametrize(
    "path", ["src/contest.py", "README.md", "src/latest.py", "app/models.py", "docs/a.md", "a.txt"]
)
def test_most_files_judge_nothing(path: str):
    assert judges(path) == ""
