"""What is found in a project's files, and why: every toolchain, and what is only noted."""

import shutil
import subprocess
from pathlib import Path

import pytest

from windlass.app.detect import Command, Proposal, detect

LOCK = "# yarn lockfile v1\n"
TESTED = '{"scripts": {"test": "vitest"}, "devDependencies": {"vitest": "3"}}'
BARE = '{"scripts": {"test": "node test.js"}}'


def checks(**files: str) -> list[str]:
    return [check.line for check in found(**files).checks]


def setup(**files: str) -> list[str]:
    return [command.line for command in found(**files).setup]


def found(**files: str) -> Proposal:
    """Names as keywords: `__` is a slash and `_dot_` a dot."""
    names = {name.replace("__", "/").replace("_dot_", "."): text for name, text in files.items()}
    return detect(names)


class TestPython:
    VENV = "python3 -m venv .venv && .venv/bin/pip install"

    @pytest.mark.parametrize(
        ("name", "text", "because"),
        [
            ("pytest.ini", "", "pytest.ini is there"),
            ("tox.ini", "[pytest]\n", "tox.ini has [pytest]"),
            ("setup.cfg", "[tool:pytest]\n", "setup.cfg has [tool:pytest]"),
            (
                "pyproject.toml",
                "[tool.pytest.ini_options]\n",
                "pyproject.toml has [tool.pytest]",
            ),
            ("tests/conftest.py", "", "tests/conftest.py is there"),
            ("tests/test_a.py", "def test_a(): ...\n", "tests/test_a.py is there"),
            ("a_test.py", "import pytest\nimport unittest\n", "a_test.py is there"),
        ],
    )
    def test_pytest_is_found(self, name: str, text: str, because: str):
        proposal = detect({name: text})
        assert proposal.checks == (
            Command("python3 -m pytest -q", because, needs="python3", needs_module="pytest"),
        )
        assert (proposal.setup, proposal.keep) == ((), ())

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("tox.ini", "[tox]\n"),
            ("setup.cfg", "[metadata]\n"),
            ("pyproject.toml", "[project]\nname = 'x'\n"),
            ("pyproject.toml", "this is no toml"),
            ("pyproject.toml", "project = 3\n"),
            ("src/main.py", "import pytest\n"),
            ("testing.py", ""),
        ],
    )
    def test_pytest_is_not_made_up(self, name: str, text: str):
        assert detect({name: text}) == Proposal()

    def test_unittest_in_packages_and_in_folders(self):
        case = "import unittest\n"
        assert checks(test_a_dot_py=case) == ["python3 -m unittest discover"]
        assert checks(tests__test_a_dot_py=case) == ["python3 -m unittest discover -s tests"]
        packaged = {"tests/__init__.py": "", "tests/test_a.py": case, "tests/test_b.py": case}
        assert [c.line for c in detect(packaged).checks] == ["python3 -m unittest discover"]
        spaced = {"my tests/test_a.py": case, **packaged}
        assert [c.line for c in detect(spaced).checks] == [
            "python3 -m unittest discover -s 'my tests'",
            "python3 -m unittest discover",
        ]

    def test_requirements_that_name_pytest_are_installed(self):
        proposal = detect(
            {
                "tests/test_a.py": "",
                "requirements.txt": "flask==3\n",
                "requirements-dev.txt": "pytest>=8\n",
            }
        )
        assert proposal.checks == (
            Command(".venv/bin/python -m pytest -q", "requirements-dev.txt names pytest"),
        )
        assert proposal.setup == (
            Command(
                f"{self.VENV} -r requirements.txt -r requirements-dev.txt",
                "requirements-dev.txt names pytest",
                needs="python3",
            ),
        )
        assert proposal.inputs == ("requirements-dev.txt", "requirements.txt")
        assert proposal.keep == (".venv",)

    @pytest.mark.parametrize(
        ("files", "line"),
        [
            ({"requirements.txt": "pytest\n"}, " -r requirements.txt"),
            (
                {
                    "requirements.txt": "a\n",
                    "dev-requirements.txt": "-r requirements.txt\npytest[x]",
                },
                " -r dev-requirements.txt",
            ),
            (
                {"requirements/test.txt": "pytest ; python_version>'3'\n"},
                " -r requirements/test.txt",
            ),
            (
                {"requirements.txt": "pytest\n", "setup.py": "", "src/x/__init__.py": ""},
                " -r requirements.txt -e .",
            ),
            (
                {"requirements.txt": "-e .\npytest\n", "setup.py": "", "src/x/__init__.py": ""},
                " -r requirements.txt",
            ),
            (
                {
                    "requirements.txt": "pytest==8 --hash=sha256:00\n",
                    "setup.py": "",
                    "src/x/__init__.py": "",
                },
                " -r requirements.txt && .venv/bin/pip install --no-deps -e .",
            ),
        ],
    )
    def test_how_requirements_are_installed(self, files: dict[str, str], line: str):
        assert [command.line for command in detect(files).setup] == [self.VENV + line]

    @pytest.mark.parametrize("text", ["pytest-cov\n", "pytester==1\n", "# pytest\n"])
    def test_a_namesake_is_not_pytest(self, text: str):
        assert detect({"requirements.txt": text}) == Proposal()

    BUILD = "[build-system]\nrequires = ['hatchling']\n"

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("dependencies = ['pytest']\n", " -e ."),
            ("optional-dependencies.test = ['pytest>=8']\n", " -e '.[test]'"),
        ],
    )
    def test_what_pyproject_declares_is_installed(self, text: str, line: str):
        proposal = detect({"pyproject.toml": f"{self.BUILD}[project]\nname='x'\n{text}"})
        assert [command.line for command in proposal.setup] == [self.VENV + line]
        assert proposal.inputs == ("pyproject.toml",)

    @pytest.mark.parametrize(
        "text",
        [
            "[project]\nname='x'\ndependencies = ['pytest']\n",
            "[build-system]\nrequires = ['versioningit']\n[project]\ndependencies = ['pytest']\n",
            "[tool.poetry.group.dev.dependencies]\npytest = '^8'\n",
        ],
    )
    def test_what_cannot_be_sure_to_install_is_a_note(self, text: str):
        proposal = detect({"pyproject.toml": text})
        assert [check.line for check in proposal.checks] == ["python3 -m pytest -q"]
        assert proposal.setup == ()
        assert len(proposal.notes) == 1
        assert proposal.notes[0].endswith("so write in [workspace] setup how to install it")

    @pytest.mark.parametrize(
        ("build", "variable"),
        [
            ("setuptools-scm>=8", "SETUPTOOLS_SCM_PRETEND_VERSION"),
            ("hatch-vcs", "SETUPTOOLS_SCM_PRETEND_VERSION"),
            ("pbr", "PBR_VERSION"),
        ],
    )
    def test_a_build_that_reads_git_tags_gets_a_version(self, build: str, variable: str):
        text = f"[build-system]\nrequires = ['{build}']\n[project]\ndependencies = ['pytest']\n"
        line = f"export {variable}=0.0.0 && {self.VENV} -e ."
        assert [command.line for command in detect({"pyproject.toml": text}).setup] == [line]

    def test_a_dependency_group_is_installed_with_a_pip_that_knows_groups(self):
        text = "[dependency-groups]\ntest = ['pytest', {include-group = 'x'}]\n"
        upgraded = f"{self.VENV} --upgrade 'pip>=25.1' && .venv/bin/pip install --group test"
        assert [each.line for each in detect({"pyproject.toml": text}).setup] == [upgraded]
        built = f"{text}[project]\nname = 'x'\n{self.BUILD}"
        assert [each.line for each in detect({"pyproject.toml": built}).setup] == [
            f"{upgraded} -e ."
        ]

    @pytest.mark.parametrize(
        ("lock", "more", "line", "needs"),
        [
            (
                "poetry.lock",
                {"pyproject.toml": "[tool.poetry.group.dev.dependencies]\npytest = '^8'\n"},
                "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction",
                "poetry",
            ),
            (
                "pdm.lock",
                {"pyproject.toml": "[tool.pdm.dev-dependencies]\ntest = ['pytest']\n"},
                "PDM_CHECK_UPDATE=false pdm sync --dev",
                "pdm",
            ),
            (
                "Pipfile.lock",
                {"Pipfile": "[dev-packages]\npytest = '*'\n"},
                "PIPENV_VENV_IN_PROJECT=1 pipenv sync --dev",
                "pipenv",
            ),
        ],
    )
    def test_each_lock_file_is_installed_by_its_own_tool(
        self, lock: str, more: dict[str, str], line: str, needs: str
    ):
        proposal = detect({lock: "", **more})
        assert [(each.line, each.needs) for each in proposal.setup] == [(line, needs)]
        assert [each.line for each in proposal.checks] == [".venv/bin/python -m pytest -q"]
        assert set(proposal.inputs) == {lock, *more}
        assert proposal.keep == (".venv",)

    def test_pytest_that_no_file_names_is_installed_beside_what_they_name(self):
        proposal = detect({"tests/test_a.py": "", "requirements.txt": "flask\n"})
        assert [each.line for each in proposal.setup] == [f"{self.VENV} -r requirements.txt pytest"]
        assert "no file names pytest" in proposal.setup[0].because

    def test_unittest_gets_the_packages_that_the_project_lists(self):
        case = "import unittest\n"
        proposal = detect({"tests/test_a.py": case, "requirements.txt": "flask\n"})
        assert [each.line for each in proposal.checks] == [
            ".venv/bin/python -m unittest discover -s tests"
        ]
        assert [each.line for each in proposal.setup] == [f"{self.VENV} -r requirements.txt"]
        locked = detect({"tests/test_a.py": case, "uv.lock": "", "pyproject.toml": "[project]\n"})
        assert [each.needs for each in locked.setup] == ["uv"]

    @pytest.mark.parametrize(
        ("text", "option"),
        [
            ("[project]\ndependencies = ['pytest']\n", ""),
            ("[dependency-groups]\ntest = ['pytest']\n", " --group test"),
            ("[project.optional-dependencies]\nqa = ['pytest']\n", " --extra qa"),
        ],
    )
    def test_uv_installs_what_it_locked(self, text: str, option: str):
        proposal = detect({"pyproject.toml": text, "uv.lock": ""})
        assert [command.line for command in proposal.setup] == [
            f"UV_PYTHON_DOWNLOADS=never uv sync --frozen{option}"
        ]
        assert proposal.inputs == ("pyproject.toml", "uv.lock")

    def test_uv_without_pytest_says_nothing(self):
        assert detect({"pyproject.toml": "[project]\nname='x'\n", "uv.lock": ""}) == Proposal()

    def test_a_name_that_would_mean_something_to_a_shell_is_left_alone(self):
        text = "[dependency-groups]\n'a; rm -rf /' = ['pytest']\n"
        assert detect({"pyproject.toml": text, "uv.lock": ""}) == Proposal()


class TestJavaScript:
    @pytest.mark.parametrize(
        ("lock", "text", "test", "install"),
        [
            ("package-lock.json", "{}", "npm test", "npm ci"),
            ("npm-shrinkwrap.json", "{}", "npm test", "npm ci"),
            ("pnpm-lock.yaml", "", "pnpm test", "pnpm install --frozen-lockfile"),
            ("yarn.lock", LOCK, "yarn test", "yarn install --frozen-lockfile"),
            ("bun.lock", "", "bun run test", "bun install --frozen-lockfile"),
        ],
    )
    def test_each_package_manager(self, lock: str, text: str, test: str, install: str):
        proposal = detect({"package.json": TESTED, lock: text})
        assert [check.line for check in proposal.checks] == [test]
        assert proposal.checks[0].because == "package.json has a script 'test': vitest"
        program = install.partition(" ")[0]
        assert proposal.setup == (Command(install, f"{lock} is there", needs=program),)
        assert proposal.inputs == ("package.json", lock)
        assert proposal.keep == ("node_modules",)

    def test_the_manager_that_package_json_names_wins(self):
        package = '{"scripts": {"test": "x"}, "packageManager": "pnpm@9.1.0"}'
        assert checks(package_dot_json=package) == ["pnpm test"]
        strange = package.replace("pnpm", "cnpm")
        assert checks(package_dot_json=strange) == ["npm test"]

    def test_without_packages_nothing_is_installed(self):
        proposal = detect({"package.json": BARE, "package-lock.json": "{}"})
        assert proposal == Proposal(
            checks=(
                Command("npm test", "package.json has a script 'test': node test.js", needs="npm"),
            )
        )

    @pytest.mark.parametrize(
        ("manager", "line"),
        [
            ("", "npm install --no-package-lock"),
            ("pnpm@9", "pnpm install --no-lockfile"),
            ("yarn@1", "yarn install --no-lockfile"),
            ("bun@1", "bun install --no-save"),
        ],
    )
    def test_without_a_lock_file_none_is_written(self, manager: str, line: str):
        package = TESTED.replace("{", f'{{"packageManager": "{manager}", ', 1)
        proposal = detect({"package.json": package})
        assert [each.line for each in proposal.setup] == [line]
        assert (proposal.inputs, proposal.keep) == (("package.json",), ("node_modules",))

    def test_newer_yarn_keeps_packages_in_the_checkout(self):
        proposal = detect({"package.json": TESTED, "yarn.lock": "__metadata:\n  version: 8\n"})
        yarn = "YARN_ENABLE_GLOBAL_CACHE=false yarn"
        assert [each.line for each in proposal.setup] == [f"{yarn} install --immutable"]
        assert [each.line for each in proposal.checks] == [f"{yarn} test"]
        assert proposal.keep == ("node_modules", ".yarn/cache")

    @pytest.mark.parametrize(
        ("package", "more"),
        [
            (TESTED, {"pnpm-workspace.yaml": "packages: [packages/*]\n"}),
            (TESTED.replace("{", '{"workspaces": ["a"], ', 1), {}),
        ],
    )
    def test_a_monorepo_depends_on_every_package(self, package: str, more: dict[str, str]):
        proposal = detect({"package.json": package, "pnpm-lock.yaml": "", **more})
        assert proposal.inputs == ("package.json", "*/package.json", "pnpm-lock.yaml")

    @pytest.mark.parametrize(
        "text",
        [
            "{}",
            "no json",
            '{"scripts": {"build": "x"}}',
            '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}',
            '{"scripts": 3}',
        ],
    )
    def test_no_test_script(self, text: str):  # what `npm init` writes is no test
        assert detect({"package.json": text}) == Proposal()


class TestOthers:
    def test_cargo(self):
        assert checks(Cargo_dot_toml="[package]\n") == ["cargo test"]
        crates = "[dependencies]\nserde = '1'\n"
        assert checks(Cargo_dot_toml=crates) == [
            'CARGO_HOME="$PWD/.cargo-home" cargo test --offline'
        ]
        assert setup(Cargo_dot_toml=crates) == ['CARGO_HOME="$PWD/.cargo-home" cargo fetch']
        assert setup(Cargo_dot_toml="[dependencies]\n\n[features]\n") == []
        assert setup(Cargo_dot_toml=crates, Cargo_dot_lock="[[package]]\nname = 'x'\n") == []
        locked = found(Cargo_dot_toml=crates, Cargo_dot_lock="[[package]]\nsource = 'registry'\n")
        assert locked.inputs == ("Cargo.lock", "Cargo.toml")
        assert locked.keep == ("target", ".cargo-home")
        assert setup(Cargo_dot_toml="[workspace]\n", a__Cargo_dot_toml=crates) != []

    def test_go(self):
        cache = 'GOFLAGS=-modcacherw GOMODCACHE="$PWD/.go-mod"'
        assert checks(go_dot_mod="module x\n") == ["go test ./..."]
        requires = found(go_dot_mod="module x\nrequire y v1\n", go_dot_sum="")
        assert [check.line for check in requires.checks] == [f"{cache} go test ./..."]
        assert [command.line for command in requires.setup] == [f"{cache} go mod download"]
        assert requires.inputs == ("go.mod", "go.sum")
        vendored = found(go_dot_mod="require y v1\n", vendor__modules_dot_txt="")
        assert vendored.setup == ()

    def test_cmake(self):
        assert checks(CMakeLists_dot_txt="project(x)\n") == []
        line = (
            "cmake -S . -B .ctest-build && cmake --build .ctest-build && "
            "ctest --test-dir .ctest-build --no-tests=error --output-on-failure"
        )
        assert checks(CMakeLists_dot_txt="Enable_Testing()\n") == [line]
        assert checks(CMakeLists_dot_txt="  include(CTest)\n") == [line]

    def test_gradle(self):
        home = 'GRADLE_USER_HOME="$PWD/.gradle-home"'
        plain = found(build_dot_gradle="")
        assert [check.line for check in plain.checks] == [f"{home} gradle --offline test"]
        wrapped = found(build_dot_gradle_dot_kts="", gradlew="")
        assert [check.line for check in wrapped.checks] == [f"{home} ./gradlew --offline test"]
        assert [each.line for each in wrapped.setup] == [f"{home} ./gradlew testClasses"]
        assert wrapped.setup[0].needs == "java"
        assert wrapped.inputs == ("build.gradle.kts",)
        assert "--try" in wrapped.notes[0]

    def test_maven(self):
        repository = '-Dmaven.repo.local="$PWD/.m2"'
        assert checks(pom_dot_xml="") == [f"mvn -B -o {repository} test"]
        wrapped = found(pom_dot_xml="", mvnw="", a__pom_dot_xml="")
        assert [check.line for check in wrapped.checks] == [f"./mvnw -B -o {repository} test"]
        assert [each.line.partition(" -D")[0] for each in wrapped.setup] == ["./mvnw -B"]
        assert wrapped.inputs == ("a/pom.xml", "pom.xml")
        assert wrapped.keep == ("target", ".m2")

    def test_dotnet(self):
        assert checks(a__a_dot_csproj="<Project/>", b_dot_sln="") == []
        project = '<PackageReference Include="Microsoft.NET.Test.Sdk" />'
        proposal = found(t__t_dot_csproj=project)
        assert [check.line for check in proposal.checks] == [
            'NUGET_PACKAGES="$PWD/.nuget" dotnet test --no-restore'
        ]
        assert [each.line for each in proposal.setup] == [
            'NUGET_PACKAGES="$PWD/.nuget" dotnet restore'
        ]

    def test_mix(self):
        assert found(mix_dot_exs="defp deps do [] end").setup == ()
        (setup,) = found(mix_dot_exs='[{:jason, "~> 1.4"}]').setup
        assert setup.line.endswith("mix deps.get")
        assert setup.needs == "mix"

    def test_ruby(self):
        gems = "BUNDLE_PATH=vendor/bundle bundle"
        assert checks(_dot_rspec="") == ["rspec"]
        assert checks(spec__a_spec_dot_rb="", Gemfile_dot_lock="") == [f"{gems} exec rspec"]
        assert checks(Rakefile="Rake::TestTask.new\n") == ["rake test"]
        assert checks(Rakefile="task(:test) { }\n") == ["rake test"]
        assert setup(Rakefile="task :test\n", Gemfile_dot_lock="") == [f"{gems} install"]
        assert checks(Rakefile="task :build\n") == []
        assert setup(Rakefile="task :test\n", Gemfile="gem 'rake'\n") == [f"{gems} install"]

    def test_a_workspace_of_crates_tests_all_of_them(self):
        crates = found(Cargo_dot_toml="[workspace]\n[dependencies]\nserde = '1'\n")
        assert [check.line for check in crates.checks] == [
            'CARGO_HOME="$PWD/.cargo-home" cargo test --workspace --offline'
        ]
        assert checks(Cargo_dot_toml="[workspace]\n") == ["cargo test --workspace"]

    def test_php(self):
        assert checks(phpunit_dot_xml="") == ["phpunit"]
        composed = found(phpunit_dot_xml_dot_dist="", composer_dot_json='"phpunit/phpunit"')
        assert [check.line for check in composed.checks] == ["vendor/bin/phpunit"]
        assert [command.line for command in composed.setup] == ["composer install --no-interaction"]
        assert composed.inputs == ("composer.json",)

    @pytest.mark.parametrize(
        ("name", "text", "line"),
        [
            ("Makefile", "test:\n\tgo\n", "make test"),
            ("makefile", "build: test\ncheck: build\n", "make check"),
            ("GNUmakefile", "all test: x\n", "make test"),
            ("Makefile", "check:\ntest:\n", "make test"),
            ("justfile", "test *args:\n  go\n", "just test"),
            (".justfile", "@check:\n  go\n", "just check"),
        ],
    )
    def test_recipes(self, name: str, text: str, line: str):
        assert [check.line for check in detect({name: text}).checks] == [line]

    @pytest.mark.parametrize(
        "text", ["build:\n\ttest\n", "test := 1\n", "test ::= 1\n", "# test:\n", "test-all:\n"]
    )
    def test_no_recipe(self, text: str):
        assert detect({"Makefile": text}) == Proposal()

    def test_a_recipe_beside_a_toolchain_is_only_told_of(self):
        proposal = found(Makefile="test:\n", go_dot_mod="module x\n")
        assert [check.line for check in proposal.checks] == ["go test ./..."]
        (note,) = proposal.notes
        assert note == (
            "Makefile has a recipe 'test': use `make test` in `checks` instead,"
            " if that is how the project is tested"
        )

    def test_several_toolchains_are_all_proposed(self):
        proposal = found(go_dot_mod="module x\n", package_dot_json=BARE, tests__test_a_dot_py="")
        assert [check.line for check in proposal.checks] == [
            "python3 -m pytest -q",
            "npm test",
            "go test ./...",
        ]


PROJECTS = {
    "make": {"Makefile": "test:\n\ttrue\n"},
    "python3": {
        "tests/test_a.py": "import unittest\n\nclass A(unittest.TestCase):\n"
        "    def test_a(self):\n        import os\n",
    },
    "npm": {"package.json": '{"scripts": {"test": "node -e 0"}}'},
    "cargo": {
        "Cargo.toml": "[package]\nname = 'a'\nversion = '1.0.0'\nedition = '2021'\n",
        "src/lib.rs": "#[test]\nfn a() {}\n",
    },
    "ctest": {
        "CMakeLists.txt": "cmake_minimum_required(VERSION 3.20)\nproject(a NONE)\n"
        "enable_testing()\nadd_test(NAME a COMMAND true)\n",
    },
}


@pytest.mark.parametrize("tool", [tool for tool in PROJECTS if shutil.which(tool)])
def test_what_is_proposed_works(tool: str, tmp_path: Path):
    for path, text in PROJECTS[tool].items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    proposal = detect(PROJECTS[tool])
    assert proposal.checks
    for command in (*proposal.setup, *proposal.checks):
        done = subprocess.run(
            ["/bin/sh", "-c", command.line], cwd=tmp_path, capture_output=True, check=False
        )
        assert done.returncode == 0, done
