PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests wait a third of their time: three processes for two processors. The order is that of tests/longest_first.py.
PYTEST_ARGS ?= -n 3 --dist loadfile --no-loadscope-reorder
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: start test bench lint clean

start: $(VENV)/.installed
	@$(BIN)/rappd start

# What is compiled is kept, whatever the environment says: to compile the tests takes each process 15 s.
test: $(VENV)/.tested
	@PYTHON=$(BIN)/python sh tests/system-programs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest $(PYTEST_ARGS)

bench: $(VENV)/.tested
	$(BIN)/python -m benchmarks

$(VENV)/.installed: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing rappd into $(VENV) (once, about a minute)…"
	@$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.tested: $(VENV)/.installed
	@$(PIP) install -c constraints.txt -e '.[test]'
	@touch $@

clean:
	rm -rf $(VENV)
