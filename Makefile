.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
# Tests start trimtab many times: let them keep what the first start compiled, also where images forbid it.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
READY := .venv/ready
PAGE := trimtab/web/static/page.js
NODE_PACKAGES := page/node_modules/ready
# The machine's Node, or the one of its PyPI package in an environment of its own.
NPM := $(shell command -v npm || echo .venv/node/bin/npm)
NODE := $(if $(filter .venv/%,$(NPM)),$(CURDIR)/.venv/node/bin,$(dir $(NPM)))

.PHONY: help test package-test image-test keda-test dask-test test-random chaos undone mutants fuzz check page page-check browser demo bench bench-docs scale-docs docs lock clean

help: ## Show this help
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# Everything comes from the locked requirements; a newer pyproject or lock installs again.
$(READY): requirements/build.txt requirements/dev.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/build.txt
	@VIRTUAL_ENV=.venv $(BIN)/uv pip sync --quiet --require-hashes requirements/dev.txt
	@VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.venv/node/bin/npm: requirements/node.txt | $(READY)
	@$(BIN)/uv venv --quiet .venv/node
	@VIRTUAL_ENV=.venv/node $(BIN)/uv pip install --quiet --require-hashes -r requirements/node.txt

$(NODE_PACKAGES): page/package.json page/package-lock.json | $(filter .venv/%,$(NPM))
	@PATH="$(NODE):$$PATH" $(NPM) --prefix page ci --ignore-scripts --loglevel=error
	@touch $@

$(PAGE): $(NODE_PACKAGES) page/build.mjs $(wildcard page/src/*)
	@cd page && PATH="$(NODE):$$PATH" node build.mjs
	@test -s $@ || { echo "$@ was built somewhere else"; exit 1; }

page: $(PAGE) ## Build the dashboard's page from page/

page-check: $(NODE_PACKAGES) ## Types, lint and unit tests of the page
	@cd page && export PATH="$(NODE):$$PATH" && node node_modules/typescript/bin/tsc --noEmit && node node_modules/eslint/bin/eslint.js . && node node_modules/vitest/vitest.mjs run --reporter=dot

test: $(READY) $(PAGE) ## Run the whole fast test-suite (sets everything up from nothing)
	$(BIN)/pytest -n 2 -q

SEEDS ?= 1000
FIRST ?= 0

chaos: $(READY) ## Run SEEDS seeds of faults against the whole operator, write docs/reliability.md (an hour)
	@mkdir -p out
	@$(BIN)/python -m tests.virtual.chaos --seeds $(SEEDS) --first $(FIRST) --json out/chaos.json
	@$(BIN)/python -m tests.virtual.chaos.page out docs/reliability.md

undone: $(READY) ## Take away one fix after the other: a seed or a property notices each
	@mkdir -p out
	@$(BIN)/python -m tests.virtual.chaos.undone out/undone.json

mutants: $(READY) $(PAGE) ## Break the code in over 300 places: the named tests notice each (three minutes)
	@$(BIN)/python -m tests.mutants

.venv/fuzz/ready: requirements/run.txt requirements/fuzz.txt | $(READY)
	@$(BIN)/uv venv --quiet --clear .venv/fuzz --python $(BIN)/python
	@VIRTUAL_ENV=.venv/fuzz $(BIN)/uv pip install --quiet --require-hashes -r requirements/run.txt
	@VIRTUAL_ENV=.venv/fuzz $(BIN)/uv pip install --quiet --require-hashes -r requirements/fuzz.txt
	@touch $@

FUZZ_SECONDS ?= 3600

fuzz: .venv/fuzz/ready ## Feed everything that reads what others wrote, steered by coverage (FUZZ_SECONDS, an hour)
	@mkdir -p out
	@.venv/fuzz/bin/python -m tests.fuzz out --seconds $(FUZZ_SECONDS)

# Debian's Chromium for the tests of the page; without one they are skipped and say so.
browser: ## Install a Chromium for the tests of the page (as root, on Debian)
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; }

package-test: $(READY) $(PAGE) ## Build the wheel, install it with plain pip and run it (needs a package registry)
	$(BIN)/pytest -q -m package tests/test_wheel.py

image-test: $(READY) ## Build the image and start it on a real control plane as the chart would (root; buildah, mmdebstrap)
	@$(BIN)/python -m tests.bed run $(BIN)/pytest tests/e2e/test_image.py -q -m package

keda-test: $(READY) ## Follow the metric of a paused ScaledObject on a running KEDA (builds it once, half an hour)
	$(BIN)/pytest tests/e2e/test_beside_keda.py -q -m keda

dask-test: $(READY) ## Run the work of commands on a Dask cluster of four workers, one of which is killed
	$(BIN)/pytest -q -m dask

test-random: $(READY) $(PAGE) ## Run it with other generated examples each time
	$(BIN)/pytest -n 2 -q --hypothesis-profile random

check: $(READY) page-check ## Lint, types and the layering of the rooms, of the page too
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

demo: $(READY) $(PAGE) ## See what trimtab does, on this machine, without a cluster
	@mkdir -p out && $(BIN)/trimtab demo --html out/demo.html --journal out/demo.db

bench: $(READY) $(PAGE) ## Run every benchmark; each ends with one line of JSON
	@set -e; for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file; done

EVERYBODY := hpa-default,hpa-rolling,trimtab,hpa-cpu,keda,custom-hpa,watermark,schedule,predictive-hpa,predictive-hpa-exact,ehpa,holt-winters,hpa-seasonal

bench-docs: $(READY) ## Write docs/benchmark.md from a run over TRACES=FOLDER of Parquet traces (half an hour)
	@test -n "$(TRACES)" || { echo "say which traces: make bench-docs TRACES=FOLDER"; exit 2; }
	@mkdir -p out/folds
	@$(BIN)/python benchmarks/train/train.py --traces $(TRACES) --folds out/folds
	@$(BIN)/python benchmarks/train/evaluate.py --traces $(TRACES) --folds out/folds --scenarios calm --json out/foresight.json
	@$(BIN)/trimtab bench --traces $(TRACES) --match '*_1min' --init 2m --lambda 32 --policies $(EVERYBODY) --json out/bench-everybody.json
	@$(BIN)/trimtab bench --thesis --seeds 100 --json out/bench-thesis.json
	@$(BIN)/python benchmarks/pages/benchmark.py out docs/benchmark.md

scale-docs: $(READY) $(PAGE) ## Write docs/scale.md from runs with OBJECTS="1000 5000" on a real control plane (an hour)
	@mkdir -p out/scale
	@set -e; for count in $(or $(OBJECTS),300 1000); do $(BIN)/python benchmarks/live.py --mixed --objects $$count \
	  --namespaces 100 --pods 2 --json out/scale/live-$$count.json || test $$? -eq 1; done
	@$(BIN)/python benchmarks/growth.py --json out/scale/growth.json
	@$(BIN)/python benchmarks/pages/scale.py out/scale docs/scale.md

.venv/docs/bin/mkdocs: requirements/docs.txt | $(READY)
	@$(BIN)/uv venv --quiet .venv/docs
	@VIRTUAL_ENV=.venv/docs $(BIN)/uv pip install --quiet --require-hashes -r requirements/docs.txt
	@touch $@

docs: .venv/docs/bin/mkdocs $(PAGE) ## Write the reference from the code and build the site strictly into out/site
	@$(BIN)/python docs/site/reference.py
	@NO_MKDOCS_2_WARNING=1 .venv/docs/bin/mkdocs build --strict --quiet

lock: $(READY) ## Resolve the dependencies again into requirements/
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  pyproject.toml -o requirements/run.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  --all-extras --group pyproject.toml:dev -c requirements/run.txt pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  --group pyproject.toml:build -c requirements/dev.txt -o requirements/build.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  --group pyproject.toml:node -o requirements/node.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  --group pyproject.toml:fuzz -o requirements/fuzz.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  --group pyproject.toml:docs -o requirements/docs.txt

clean: ## Remove what make has made
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache out page/node_modules trimtab/web/static

# Groups of tests share one control plane, each test in a namespace of its own; those that break it run alone.
E2E := $(BIN)/python -m tests.bed run bash -c

.PHONY: cluster cluster-down e2e e2e-smoke soak

cluster: $(READY) ## Start a real Kubernetes control plane on this machine, without containers (builds it once)
	@$(BIN)/python -m tests.bed up

cluster-down: $(READY) ## End the control plane that `make cluster` started
	@$(BIN)/python -m tests.bed down

e2e: $(READY) ## Run every end-to-end test on a real control plane
	@$(E2E) '$(BIN)/pytest tests/e2e -q -n 4 --dist loadgroup -m "e2e and not disruptive" && $(BIN)/pytest tests/e2e -q -m "e2e and disruptive" || test $$? -eq 5'

SOAK_MINUTES ?= 30

soak: $(READY) ## Restart operators in turn for half an hour while 300 objects come and go: memory and journal stay flat
	@mkdir -p out
	@$(E2E) '$(BIN)/python -m tests.soak out/soak.json --minutes $(SOAK_MINUTES)'

e2e-smoke: $(READY) ## Run the end-to-end tests that are fast and never flaky
	@$(E2E) '$(BIN)/pytest tests/e2e -q -n 4 -m "e2e and smoke"'
