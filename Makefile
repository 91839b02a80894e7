# Needs python3 (3.11 or newer) with pip. Everything else comes from requirements.lock into .venv.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Three for two cores, since half of the time is waiting for servers; whoever is done takes half of what another one has.
TEST_PROCESSES ?= 3
PYTEST := $(BIN)/pytest -n $(TEST_PROCESSES) --dist worksteal --durations=15
# The embedded Postgres keeps a lock there (and its socket, when the path of its data is too long for one).
ifeq ($(XDG_RUNTIME_DIR),)
  XDG_RUNTIME_DIR := $(HOME)/.cache/flowise-dev-agent/run
endif
export XDG_RUNTIME_DIR
# Compiled modules are kept, whatever the environment says: tests and services start dozens of processes.
unexport PYTHONDONTWRITEBYTECODE
$(shell mkdir -p -m 700 "$(XDG_RUNTIME_DIR)")

.PHONY: help demo run test nightly chaos check web openapi lock release clean

help:
	@echo 'make demo    build a chatbot on a local Flowise, showing progress, then keep the service running at http://localhost:8000'
	@echo 'make run     the service for real use, settings from .env (make run ARGS=--embedded: with its own Postgres)'
	@echo 'make test    all tests, on a real Postgres and a real Flowise (make test ARGS="tests/unit -x")'
	@echo 'make nightly all of that and what takes longer: run it before closing an issue'
	@echo 'make chaos   60 sessions while workers and Postgres are killed under them (needs pgbouncer; CHAOS_SESSIONS=200)'
	@echo 'make check   lint, formatting, types, import floors'
	@echo 'make web     build the page (done by itself where it is needed; the sources are in flowise_dev_agent/web/app)'
	@echo 'make openapi write docs/openapi.json (after a change of a public shape); the types of the page follow from it'
	@echo 'make lock    resolve requirements.lock and locks/ again (needs uv)'
	@echo 'make release sdist, wheel, what they are made of (CycloneDX) and their hashes, in dist/'
	@echo 'make clean   remove .venv and caches of this checkout (not the installed Flowise, which is kept outside)'

demo: web
	@$(BIN)/flowise-dev-agent demo $(ARGS)

run: web
	@$(BIN)/flowise-dev-agent serve $(ARGS)

test: web
	$(PYTEST) $(ARGS)

nightly: web
	$(PYTEST) -m '' --hypothesis-profile=nightly $(ARGS)

chaos: $(READY)
	$(BIN)/pytest tests/chaos tests/chaos/pgbouncer.py -m '' -s $(ARGS)

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	@$(BIN)/python scripts/build_page.py --check

web: $(READY)
	@$(BIN)/python scripts/build_page.py

openapi: $(READY)
	$(BIN)/python scripts/openapi.py

release: web
	$(BIN)/python scripts/release.py

RESOLVE := uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-strip-extras --generate-hashes \
	--custom-compile-command 'make lock'

lock:
	@command -v uv >/dev/null || { echo 'make lock needs uv: pip install uv'; exit 1; }
	$(RESOLVE) pyproject.toml --all-extras --group dev --output-file requirements.lock
	$(RESOLVE) pyproject.toml --constraint requirements.lock --output-file locks/runtime.lock
	for group in build client; do \
		$(RESOLVE) --group $$group --constraint requirements.lock --output-file locks/$$group.lock || exit 1; done

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist build
	rm -rf flowise_dev_agent/web/static flowise_dev_agent/web/app/node_modules
	rm -f flowise_dev_agent/web/app/src/api/schema.d.ts
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Without build isolation the package itself needs no network: its build backend is in the lock.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Python 3.11 or newer is needed. Name one: make PYTHON=python3.12'; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo 'Installing the locked packages into .venv (one to several minutes the first time) ...'
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock \
		&& PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e . \
		|| { echo 'The packages could not be installed: see the message above (no network? a proxy?).'; exit 1; }
	@touch $@
