# One verb per job. Everything sets itself up in .venv from pinned, hashed requirements: `make demo`
# installs what Windlass needs to run, and every other verb adds what developing it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check
CORE := src/windlass/core/*,src/windlass/formats/*,src/windlass/views/*,src/windlass/errors.py,src/windlass/findings.py
PIN := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
POINTS ?= 1100
SEED ?= 0

.PHONY: help install setup demo test core check bench sweep docs site lock dist clean
help: ## Say what there is to make
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

install: $(VENV)/runs ## Install what Windlass needs to run
$(VENV)/runs: requirements/run.txt requirements/build.txt pyproject.toml
	@echo "Installing Windlass and its agent into $(VENV): about 430 MB, once."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Windlass needs Python 3.11 or newer; name one: make demo PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Python cannot make a virtual environment; on Debian: apt install python3-venv"; exit 1; }
	@$(BIN)/python -m pip --quiet --quiet --disable-pip-version-check uninstall --yes setuptools
	$(PIP) --require-hashes -r requirements/run.txt -r requirements/build.txt
	$(PIP) --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: install ## Run a small plan offline, with the real agent and a scripted model
	@$(BIN)/windlass demo

setup: $(VENV)/installed ## Install what developing it needs as well
$(VENV)/installed: $(VENV)/runs requirements/dev.txt requirements/docs.txt
	@echo "Installing what tests, checks and documentation need into $(VENV): about 450 MB more, once."
	$(PIP) --quiet --require-hashes -r requirements/dev.txt -r requirements/docs.txt
	@touch $@

test: setup core ## Run all tests but the long sweeps
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not sweep" --ignore=tests/core --ignore=tests/simulation --ignore=tests/runner --durations=50

core: setup ## Test the pure core; every branch of it must be reached
	@rm -f .coverage .coverage.*
	$(BIN)/python -m coverage run -m pytest -n auto --dist worksteal -m "not sweep" tests/core tests/simulation tests/runner -q --durations=20
	@$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --include='$(CORE)' --fail-under=100 --skip-covered

check: setup ## Lint, types, import contracts, architecture, and docs that are true
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -q tests/test_architecture.py tests/test_docs.py tests/test_vendors.py tests/core/test_total_tables.py tests/core/test_one_home.py

bench: setup ## Measure; each figure beside the floor it stands on
	$(BIN)/python bench/house.py
	$(BIN)/python bench/startup.py
	$(BIN)/python bench/overhead.py
	$(BIN)/python bench/diamond.py
	$(BIN)/python bench/display.py
	$(BIN)/python bench/merge.py
	$(BIN)/python bench/sandbox.py
	$(BIN)/python bench/workspaces.py
	$(BIN)/python bench/stages.py
	$(BIN)/python bench/dialects.py
	$(BIN)/python bench/makespan.py
	$(BIN)/python bench/redaction.py
	$(BIN)/python bench/journal.py
	$(BIN)/python bench/thousand.py

sweep: setup ## Run the long sweeps as a whole (POINTS=all SEED=1 for others)
	$(BIN)/windlass selftest crash --points $(POINTS) --seed $(SEED)
	$(BIN)/windlass selftest crash --command all --points $(POINTS) --seed $(SEED)
	$(BIN)/python -m pytest -n auto -m sweep

docs: setup ## Write the generated pages of the documentation anew
	$(BIN)/python docs/generate.py

site: setup ## Build the documentation site into build/site; a warning is an error
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html -d build/doctrees docs build/site
	@echo "build/site/index.html"

lock: ## Pin the requirements anew (needs uv)
	$(PIN) pyproject.toml -o requirements/run.txt
	$(PIN) --group build -c requirements/run.txt -o requirements/build.txt
	$(PIN) --group docs -c requirements/run.txt -o requirements/docs.txt
	$(PIN) pyproject.toml --group dev -c requirements/run.txt -c requirements/build.txt -c requirements/docs.txt -o requirements/dev.txt

dist: setup ## Build the wheel and the source package into dist, and check them
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/python -m twine check --strict dist/*

clean: ## Remove what was made here
	rm -rf $(VENV) build dist .coverage* .pytest_cache .ruff_cache .hypothesis .import_linter_cache
