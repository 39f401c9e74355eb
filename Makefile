# One verb per job. Everything sets itself up in .venv from pinned, hashed requirements.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := src/windlass/core/*,src/windlass/formats/*,src/windlass/views/*,src/windlass/errors.py
POINTS ?= 1100
SEED ?= 0

.PHONY: help setup demo test core check bench sweep docs site lock clean
help: ## Say what there is to make
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

setup: $(VENV)/installed ## Install what everything else needs
$(VENV)/installed: requirements/dev.txt requirements/docs.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt -r requirements/docs.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup ## Run a small plan offline, with the real agent and a scripted model
	@$(BIN)/windlass demo

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
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements/run.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml --group dev -c requirements/run.txt -o requirements/dev.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group docs -c requirements/dev.txt -o requirements/docs.txt

clean: ## Remove what was made here
	rm -rf $(VENV) build .coverage* .pytest_cache .ruff_cache .hypothesis .import_linter_cache
