# `make demo` and `make test` do all the set-up they need. `make help` lists the rest.
VENV   := .venv
PYTHON := $(VENV)/bin/python
READY  := $(VENV)/.ready

.PHONY: help setup kafka jdbc jars compiled peers demo test fast slow check bench clean

help:        ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

setup: $(READY)  ## a virtual environment with pinned packages, and Java 17 or newer

$(READY): requirements.lock pyproject.toml tools/java
	@tools/java
	@tools/venv $(VENV)
	@$(PYTHON) -m elastream.engine.spark.archive
	@touch $@

demo: setup  ## tweets on a real trace: PSPS beside too few and too many replicas, about three minutes
	@$(VENV)/bin/elastream demo

kafka: setup  ## Spark's Kafka connector and a broker for tests, fetched once by Maven into ~/.cache/elastream
	@tools/jars kafka $(PYTHON)

jdbc: setup  ## PostgreSQL's JDBC driver, fetched likewise
	@tools/jars jdbc $(PYTHON)

peers: setup  ## Flink, its autoscaler and Storm into .peers, with the jobs for `elastream bench peers`
	@tools/peers $(PYTHON) .peers

jars: setup
	@tools/jars kafka $(PYTHON) && tools/jars jdbc $(PYTHON) || echo "without these jars their tests are skipped"

# Once, and not in every process of the tests.
compiled: setup
	@$(PYTHON) -m elastream_lab.bench.compile_ahead

test: fast slow  ## every test

fast: compiled  ## the tests that need neither Spark nor a broker, a database or a browser
	@$(PYTHON) -m pytest -q -n 2 -m "not slow"

slow: jars  ## the tests that do
	@$(PYTHON) -m pytest -q -n 2 --dist worksteal -m slow

check: setup  ## ruff, mypy --strict, import-linter
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

bench: setup  ## the engine measured against Spark itself, about ten minutes
	@$(VENV)/bin/elastream bench engine

clean:       ## remove the virtual environment and what the commands left
	rm -rf $(VENV) elastream-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
