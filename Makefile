# make help  lists the targets. PYTHON names the interpreter: make test PYTHON=python3.13
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
VENV ?= .venv$(if $(filter 3.11,$(VERSION)),,-$(VERSION))
BIN := $(VENV)/bin
PLAIN := $(VENV)/.package
STAMP := $(VENV)/.installed
JOBS ?= 2
MINUTES ?= 60
PART ?= 1
# compiled once, by whichever process is first
export PYTHONDONTWRITEBYTECODE :=
NEWEST ?= $(shell command -v python3.13 || command -v python3.12 || command -v python3)
.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 20

# the package with what it needs to run
$(PLAIN): pyproject.toml
	@echo "setting up $(VENV) with Python $(VERSION)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "shardpass needs Python 3.11 or newer; $(PYTHON) is $(VERSION)"; exit 2; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

# and the tools and libraries of its tests
$(STAMP): $(PLAIN)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

.PHONY: setup demo lint unit lit test package bench fuzz fuzz-doors fuzz-redistribute fuzz-partition validate mutate distributed docs site release lock clean
setup: $(STAMP) ## make the virtual environment

demo: $(PLAIN) ## partition a real training step for 4x2 devices, run it, and compare with one device
	@$(BIN)/shardpass-run examples/mlp_train_step.mlir partition --devices 8 --check

lint: $(STAMP) ## ruff, mypy and import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

unit: $(STAMP) ## pytest (PART=10 for one test of ten, others each day)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --part $(PART) -m 'not slow' test

lit: $(STAMP) ## lit and FileCheck
	$(BIN)/lit -v --print-result-after=failed -j $(JOBS) test/lit

test: $(STAMP) ## what each change must pass, with this Python
	@$(MAKE) --jobs 3 lint unit lit # beside each other: many tests wait for processes

# whole sweeps, each process started as a user starts it, no test left out
.PHONY: night nightly
night: $(STAMP) lint ## everything, with this Python: whole sweeps, slow tests, real processes (hours)
	SHARDPASS_TEST_WHOLE=1 SHARDPASS_TEST_PROCESSES=real $(BIN)/python -m pytest -n $(JOBS) --dist worksteal test
	$(BIN)/lit -v -j $(JOBS) --param processes=all test/lit
	$(BIN)/python -m tools.prove.validate_rules --reference
	$(BIN)/python -m tools.fuzz.all --minutes $(MINUTES)

nightly: ## make night with the oldest Python and with the newest
	$(MAKE) night PYTHON=$(PYTHON)
	$(MAKE) night PYTHON=$(NEWEST)

package: ## build wheel and source distribution, install each in an empty environment, and try them
	@$(PYTHON) tools/package/try_package.py

BENCHMARKS := collective_matmul compile hook models redistribute underspecified
bench: $(STAMP) ## the benchmarks (long)
	@for b in $(BENCHMARKS); do echo "== tools/bench/$$b.py"; $(BIN)/python -m tools.bench.$$b || exit 1; done

fuzz: $(STAMP) ## all fuzzers by turns, with fresh seeds, for an hour (MINUTES=60)
	$(BIN)/python -m tools.fuzz.all --minutes $(MINUTES)

fuzz-doors: $(STAMP) ## all that commands read, changed in 10,000 ways (half an hour)
	$(BIN)/python -m tools.fuzz.doors --cases 10000

fuzz-redistribute: $(STAMP) ## redistributions by the thousand, held to laws (long)
	$(BIN)/python -m tools.fuzz.redistribute all --xla

fuzz-partition: $(STAMP) ## 5,000 random programs, partitioned and compared with one device (half an hour)
	$(BIN)/python -m tools.fuzz.partition --programs 5000

validate: $(STAMP) ## the rules of all ops, proved by brute force (half an hour)
	$(BIN)/python -m tools.prove.validate_rules --reference

mutate: $(STAMP) ## small faults in four rooms, and whether their tests notice them (long; SEED=1 draws others)
	$(BIN)/python -m tools.prove.mutate --seed $(or $(SEED),0) --jobs $(JOBS)

distributed: $(STAMP) ## 2 processes of 4 devices beside one of 8, on all examples and 20 models (five minutes)
	$(BIN)/python -m tools.prove.distributed

docs: $(STAMP) ## write the generated pages under docs/
	$(BIN)/python -m tools.docs.make_docs
	$(BIN)/python -m tools.docs.make_ops_docs

# the site needs no jax: its tools have an environment of their own
SITE := $(VENV)/.site
$(SITE)/.installed: pyproject.toml
	@$(PYTHON) -m venv $(SITE)
	@$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check \
	  $$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')
	@touch $@

site: $(SITE)/.installed $(STAMP) ## the site, from docs/ to out/site, tried in a browser; any warning is an error
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict --clean # --quiet would let warnings pass
	@$(BIN)/python -m tools.docs.try_site
	@echo "out/site/index.html"

release: test package site ## check and build everything, and tag the version of pyproject.toml in this repository
	$(BIN)/python tools/package/release.py

lock: ## requirements-dev.lock anew, from pyproject.toml, by uv
	@uv pip compile --quiet pyproject.toml --all-extras --python-version 3.11 --python-platform linux \
	  --custom-compile-command 'make lock' --output-file requirements-dev.lock

clean: ## remove environments and caches
	rm -rf .venv .venv-* build out *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
