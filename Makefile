# `make help` lists what there is. Every target sets up what it needs first: a fresh Debian machine
# with git, make and Python 3.11 is enough.
.DEFAULT_GOAL := help
.PHONY: help setup java servers prepared demo broker test test-again test-fast soak check format bench docs clean

BIN := .venv/bin
INSTALLED := .venv/.installed
# More for pytest or the benchmark: make test ARGS="-k topic"
ARGS ?=
# Processes for the tests that may run side by side; each has a RabbitMQ of its own.
WORKERS ?= 4
PYTEST := $(BIN)/python -m pytest
# A run starts hundreds of Python processes: without this each compiles warren anew.
unexport PYTHONDONTWRITEBYTECODE

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(INSTALLED) java servers prepared  ## everything a developer needs: .venv, Java, RabbitMQ, etcd

$(INSTALLED): pyproject.toml constraints.txt tools/setup.sh
	@tools/setup.sh python
	@touch $@

java:
	@tools/setup.sh java

servers:
	@tools/setup.sh servers

# For what starts Spark often. Without it each start takes longer, and nothing else changes.
prepared: $(INSTALLED) java
	@$(BIN)/warren spark prepare || true

demo: $(INSTALLED) java  ## watch it at work: queues into tables with Spark, a worker killed
	@$(BIN)/warren demo

broker: $(INSTALLED)  ## a broker on port 5672, HTTP API on 15672 (ARGS="--data ./data")
	@exec $(BIN)/warren broker $(ARGS)

test: $(INSTALLED) java servers prepared  ## every test, on warren and on a real RabbitMQ
	@failed=0; set -x; \
	$(PYTEST) --part together -n $(WORKERS) --dist worksteal --durations 15 $(ARGS) || failed=1; \
	$(PYTEST) --part pairs -n 2 --dist loadfile --no-loadscope-reorder --durations 15 $(ARGS) || failed=1; \
	$(PYTEST) --part alone --durations 15 $(ARGS) || failed=1; \
	set +x; exit $$failed

test-again: $(INSTALLED) java servers prepared  ## the tests that failed last time, one after the other
	$(PYTEST) --last-failed --last-failed-no-failures none $(ARGS)

test-fast: $(INSTALLED)  ## unit and contract tests on warren alone, under two minutes
	PYTHONASYNCIODEBUG=1 $(PYTEST) tests/unit tests/contract -n $(WORKERS) --dist worksteal --brokers warren -m "not slow and not cluster and not spark" $(ARGS)

check: $(INSTALLED)  ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(INSTALLED)  ## put the code into the one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

soak: $(INSTALLED) java servers prepared  ## long: 200 rounds of kill -9, groups in every trouble (ARGS="--seed 7")
	$(BIN)/python -m tests.e2e.crash --rounds 200 $(ARGS)
	WARREN_TEST_MANY_QUEUES=100000 $(PYTEST) tests/integration/test_many.py
	$(BIN)/python -m tests.e2e.groups.soak --rounds 3 $(ARGS)
	$(BIN)/python -m tests.unit.groups.schedules --runs 80000 $(ARGS)
	$(BIN)/python -m tests.spark.exactly_once --kills 60 $(ARGS)
	$(BIN)/python -m tests.spark.exactly_once --kills 30 --cluster $(ARGS)
	$(BIN)/python -m tests.spark.exactly_once --kills 20 --broker rabbitmq $(ARGS)
	$(BIN)/python -m tests.spark.exactly_once --kills 20 --broker rabbitmq-cluster $(ARGS)

bench: $(INSTALLED) java servers prepared  ## warren and RabbitMQ side by side, groups, Spark: about an hour
	@failed=0; set -x; \
	$(BIN)/python -m bench $(ARGS) || failed=1; \
	$(if $(ARGS),,$(BIN)/python -m bench.groups --keep || failed=1; \
	$(BIN)/python -m bench.frameworks --keep || failed=1; \
	$(BIN)/python -m bench.spark_source --rounds 5 --keep || failed=1; \
	$(BIN)/python -m bench.spark_sink --keep || failed=1;) \
	set +x; exit $$failed

docs: $(INSTALLED)  ## write docs/reference anew
	$(BIN)/python tools/build_docs.py
	$(BIN)/python tools/group_rules.py

clean:  ## remove .venv and what tests left
	rm -rf .venv .test-logs .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
