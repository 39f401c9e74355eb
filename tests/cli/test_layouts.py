"""What `init` proposes for the layouts of well-known public projects, told in our own words.

Only the names of files, and the few lines that decide, are as theirs (issue 15, line 16).
"""

import pytest

from windlass.app.detect import detect

VENV = "python3 -m venv .venv && .venv/bin/pip install"
PYTEST = ".venv/bin/python -m pytest -q"
UV = "UV_PYTHON_DOWNLOADS=never uv sync --frozen"
CARGO = 'CARGO_HOME="$PWD/.cargo-home" cargo'
GO = 'GOFLAGS=-modcacherw GOMODCACHE="$PWD/.go-mod" go'
GEMS = "BUNDLE_PATH=vendor/bundle"

FLIT = "[build-system]\nrequires = ['flit_core']\n[project]\nname = 'x'\n"
CLICK = {
    "pyproject.toml": f"{FLIT}[dependency-groups]\ndev = ['ruff', 'tox']\ntests = ['pytest']\n"
    "[tool.pytest.ini_options]\ntestpaths = ['tests']\n",
    "uv.lock": "version = 1\n",
    "src/click/__init__.py": "",
    "tests/conftest.py": "import pytest\n",
    "tests/test_basic.py": "import click\n",
}
REQUESTS = {
    "setup.py": "",
    "pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = 'tests'\n",
    "requirements-dev.txt": "-e .[socks]\npytest>=2.8\nhttpbin~=0.10\n",
    "Makefile": "test:\n\tpython -m pytest tests\n",
    "src/requests/__init__.py": "",
    "tests/test_requests.py": "import pytest\n",
}
ATTRS = {
    "pyproject.toml": "[build-system]\nrequires = ['hatchling', 'hatch-vcs']\n"
    "[project]\nname = 'attrs'\n[dependency-groups]\ntests = ['hypothesis', 'pytest>=4.3']\n",
    "conftest.py": "",
    "tox.ini": "[tox]\n",
    "src/attr/__init__.py": "",
    "tests/test_make.py": "import pytest\n",
}
FLASK = {
    "pyproject.toml": f"{FLIT}dependencies = ['werkzeug']\n"
    "[dependency-groups]\ntests = ['asgiref', 'pytest']\n",
    "uv.lock": "",
    "tests/conftest.py": "",
}
DJANGO = {
    "pyproject.toml": "[build-system]\nrequires = ['setuptools']\n[project]\nname = 'Django'\n"
    "dependencies = ['asgiref']\n",
    "package.json": '{"scripts": {"pretest": "eslint ."}, "devDependencies": {"eslint": "9"}}',
    "tests/runtests.py": "#!/usr/bin/env python\n",
    "tests/requirements/py3.txt": "jinja2\n",
    "tests/requirements/postgres.txt": "psycopg\n",
    "tests/admin_views/tests.py": "from django.test import TestCase\n",
    "tests/i18n/test_compilation.py": "from django.test import SimpleTestCase\n",
}
DJANGO_SITE = {
    "manage.py": "",
    "requirements.txt": "django==5\n",
    "shop/tests.py": "from django.test import TestCase\n",
}
EXPRESS = {
    "package.json": '{"scripts": {"test": "mocha --require test/support/env test/"},'
    ' "dependencies": {"accepts": "2"}, "devDependencies": {"mocha": "10"}}',
    ".npmrc": "package-lock=false\n",
    "test/app.js": "",
}
VITE = {
    "package.json": '{"private": true, "type": "module", "packageManager": "pnpm@10.1.0",'
    ' "scripts": {"test": "run-s test-unit test-serve"}, "devDependencies": {"vitest": "3"}}',
    "pnpm-lock.yaml": "lockfileVersion: '9.0'\n",
    "pnpm-workspace.yaml": "packages:\n  - 'packages/*'\n",
    "packages/core/package.json": '{"name": "core"}',
}
RIPGREP = {
    "Cargo.toml": "[package]\nname = 'ripgrep'\n\n[workspace]\nmembers = ['crates/grep']\n\n"
    "[dependencies]\nanyhow = '1'\n",
    "Cargo.lock": "[[package]]\nname = 'anyhow'\nsource = 'registry'\n",
    "crates/grep/Cargo.toml": "[package]\nname = 'grep'\n",
    "tests/tests.rs": "",
}
GO_MODULE = {
    "go.mod": "module example.org/x\n\ngo 1.22\n\nrequire example.org/y v1.0.0\n",
    "go.sum": "",
    "x_test.go": "package x\n",
    "Makefile": "build:\n\tgo build\n",
}
MAKE = {"Makefile": "CFLAGS = -O2\nall: x\n\ncheck: all\n\t./x --selftest\n", "x.c": ""}
RAILS = {
    "Gemfile": "gem 'rails'\ngem 'sqlite3'\n",
    "Gemfile.lock": "GEM\n",
    "Rakefile": "require_relative 'config/application'\nRails.application.load_tasks\n",
    "bin/rails": "#!/usr/bin/env ruby\n",
    "config/application.rb": "",
    "test/models/order_test.rb": "require 'test_helper'\n",
}
RAILS_WITH_RSPEC = {**RAILS, ".rspec": "--require spec_helper\n", "spec/order_spec.rb": ""}
SPRING = {"pom.xml": "<project/>", "mvnw": "", "src/test/java/AppTest.java": ""}
LARAVEL = {
    "composer.json": '{"require-dev": {"phpunit/phpunit": "^11"}}',
    "composer.lock": "{}",
    "phpunit.xml": "",
    "package.json": '{"scripts": {"build": "vite build"}}',
}

LAYOUTS: dict[str, tuple[dict[str, str], list[str], list[str]]] = {
    "click": (CLICK, [f"{UV} --group tests"], [PYTEST]),
    "requests": (REQUESTS, [f"{VENV} -r requirements-dev.txt"], [PYTEST]),
    "attrs": (
        ATTRS,
        [
            (
                f"export SETUPTOOLS_SCM_PRETEND_VERSION=0.0.0 && {VENV} --upgrade 'pip>=25.1'"
                " && .venv/bin/pip install --group tests -e ."
            )
        ],
        [PYTEST],
    ),
    "flask": (FLASK, [f"{UV} --group tests"], [PYTEST]),
    "django": (
        DJANGO,
        [f"{VENV} -r tests/requirements/py3.txt -e ."],
        [".venv/bin/python tests/runtests.py"],
    ),
    "a Django site": (
        DJANGO_SITE,
        [f"{VENV} -r requirements.txt"],
        [".venv/bin/python manage.py test"],
    ),
    "express": (EXPRESS, ["npm install --no-package-lock"], ["npm test"]),
    "vite": (VITE, ["pnpm install --frozen-lockfile"], ["pnpm test"]),
    "ripgrep": (RIPGREP, [f"{CARGO} fetch"], [f"{CARGO} test --workspace --offline"]),
    "a Go module": (GO_MODULE, [f"{GO} mod download"], [f"{GO} test ./..."]),
    "a Makefile": (MAKE, [], ["make check"]),
    "a Rails app": (RAILS, [f"{GEMS} bundle install"], [f"{GEMS} bin/rails test"]),
    "a Rails app with rspec": (
        RAILS_WITH_RSPEC,
        [f"{GEMS} bundle install"],
        [f"{GEMS} bundle exec rspec"],
    ),
    "a Maven project": (
        SPRING,
        [
            (
                './mvnw -B -Dmaven.repo.local="$PWD/.m2" test -Dtest=NoSuchTest'
                " -Dsurefire.failIfNoSpecifiedTests=false"
            )
        ],
        ['./mvnw -B -o -Dmaven.repo.local="$PWD/.m2" test'],
    ),
    "a PHP app": (LARAVEL, ["composer install --no-interaction"], ["vendor/bin/phpunit"]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_setup_and_checks_of(layout: str):
    files, setup, checks = LAYOUTS[layout]
    proposal = detect(files)
    assert [each.line for each in proposal.setup] == setup
    assert [each.line for each in proposal.checks] == checks
    # What setup makes is kept out of commits, and made again only when these files change.
    assert bool(proposal.inputs) == bool(setup)
    assert not setup or proposal.keep
