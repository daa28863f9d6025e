# Every target prepares its own environment in .venv; only Python >= 3.11 and make are needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# PyTorch's CPU build is what a machine without a GPU wants; set PIP_EXTRA_INDEX_URL to your mirror of it.
PIP    := $(BIN)/python -m pip --disable-pip-version-check
# One BLAS thread in each process: small solves cost seconds otherwise.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: install demo test check bench clean
install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "GeoWeaver needs Python 3.11 or newer; set PYTHON=python3.x"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (a few minutes the first time)"
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[dev,viewer]'
	@touch $@

demo: install
	$(BIN)/geoweaver demo -o demo-out

test: install
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: install
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow and not realdata' -q

bench: install
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) demo-out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
