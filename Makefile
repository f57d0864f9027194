# demo, posteriordb, soak, test, fuzz, calibrate, lint, bench. Each prepares what it needs first (scripts/environment.sh), once.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.PHONY: setup demo posteriordb soak test fuzz calibrate lint bench clean

prepare = environment=$$(./scripts/environment.sh); eval "$$environment"

setup:
	@$(prepare)
	cd elixir_client && MIX_BUILD_PATH="$$NUTKIN_BUILD/dev" mix compile --warnings-as-errors </dev/null

# Eight schools, from Elixir, through a real port.
demo:
	@$(prepare)
	cd elixir_client
	export MIX_ENV=dev MIX_BUILD_PATH="$$NUTKIN_BUILD/dev"
	mix run examples/eight_schools.exs </dev/null

# Posteriors of posteriordb, from Elixir: samples each, compares it with the reference, and writes docs/posteriordb.md.
# ONLY="arK-arK nes1972-nes" runs a part, and writes nothing. Takes minutes.
posteriordb:
	@$(prepare)
	export JAX_PLATFORMS=cpu
	cd elixir_client
	export MIX_ENV=test MIX_BUILD_PATH="$$NUTKIN_BUILD/test"
	mix run examples/posteriordb/run.exs $(ONLY) </dev/null

# Many consumers at once, and programs that are killed, for half an hour: what is then larger than before is a fault.
# MINUTES=1 for a look, SEED=3 for other consumers. Half an hour or more writes docs/soak.md.
soak:
	@$(prepare)
	export JAX_PLATFORMS=cpu
	cd elixir_client
	export MIX_ENV=test MIX_BUILD_PATH="$$NUTKIN_BUILD/test"
	mix run examples/soak/run.exs $(or $(MINUTES),30) $(or $(SEED),1) </dev/null

# Everything that CI runs: lint, the engine and the port under pytest, the client under ExUnit.
test: lint
	@$(prepare)
	export JAX_PLATFORMS=cpu
	python -m pytest -n auto --maxprocesses 8 --dist worksteal
	cd elixir_client
	export MIX_ENV=test MIX_BUILD_PATH="$$NUTKIN_BUILD/test"
	mix compile --warnings-as-errors </dev/null
	mix test </dev/null

# Hostile input, guided by coverage: the decoders and the check of models. MINUTES=10 for longer; tests/fuzz/run.py.
fuzz:
	@$(prepare)
	export JAX_PLATFORMS=cpu PYTHONPATH=python:bridge:tests
	python -m fuzz.run --minutes $(or $(MINUTES),2)

# Simulation-based calibration of the sampler, with and without the rewrites of the gradient. Takes minutes.
calibrate:
	@$(prepare)
	export JAX_PLATFORMS=cpu PYTHONPATH=python:bridge:tests
	python -m calibration.sbc

lint:
	@$(prepare)
	ruff check .
	ruff format --check .
	lint-imports --no-cache
	cd elixir_client
	mix format --check-formatted </dev/null

# Side by side with the peers, in one run; benchmarks/README.md. Installs each in an environment of its own.
# BENCH="--models radon --only race" runs a part.
bench: setup
	@$(prepare)
	export MIX_BUILD_PATH="$$NUTKIN_BUILD/dev"
	python -m benchmarks.run $(BENCH)

clean:
	rm -rf .venv elixir_client/_build .pytest_cache .ruff_cache .import_linter_cache
