# Everything happens in a virtual environment inside the checkout. PYTHON chooses the interpreter it is made with.
PYTHON ?= python3
# The processes that test.
JOBS   ?= 2
VENV   := .venv
BIN    := $(VENV)/bin
# Compiling all that is installed would take longer than the rest, and most of it is never imported.
PIP    := $(BIN)/python -m pip install -q --disable-pip-version-check --no-compile --no-warn-conflicts -c constraints.txt

# One environment, three stamps: the package with what searching needs, its server on top, and the tools of its developers
# with all of Pyserini on top.
PACKAGE := $(VENV)/package.stamp
SERVER  := $(VENV)/server.stamp
TOOLS   := $(VENV)/tools.stamp
INPUTS  := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help search serve test test-all parity lint format types docs jar dist clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

search: $(PACKAGE) ## index the sample that comes with the package, and search it
	@$(BIN)/compneg demo

serve: $(SERVER) | indexes/sample ## serve the sample: a page, REST and MCP at http://127.0.0.1:8081/
	$(BIN)/compneg serve --index indexes/sample --mcp http

indexes/sample: | $(PACKAGE)
	$(BIN)/compneg index --collection pyserini_compneg/resources/sample/vectors --index $@ \
	  --encoder bm25+mini --store-raw --filter-fields year

test: $(TOOLS) ## run the tests that take little, in three minutes
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadscope --no-loadscope-reorder -m 'not slow'

test-all: $(TOOLS) ## run all tests and doctests
	$(BIN)/python -m pytest -n $(JOBS) --dist loadscope --no-loadscope-reorder

parity: $(TOOLS) ## compare vectors of all kinds of checkpoints with those of sentence-transformers
	COMPNEG_PARITY=all $(BIN)/python -m pytest -q -n $(JOBS) tests/encode/parity

lint: $(TOOLS) ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	find java -name '*.java' | xargs $(BIN)/clang-format --dry-run --Werror

format: $(TOOLS) ## format Python and Java
	$(BIN)/ruff format .
	find java -name '*.java' | xargs $(BIN)/clang-format -i

types: $(TOOLS) ## check types
	$(BIN)/mypy

docs: $(TOOLS) ## build the site of the documentation in build/site; a link without an end fails
	$(BIN)/python tools/pages.py
	$(BIN)/zensical build --strict --clean

jar: $(PACKAGE) ## rebuild the Java companion jar (needs a JDK, 21 or later)
	$(BIN)/python java/build.py

dist: $(TOOLS) ## build the wheel and the source distribution of the last commit, the same bytes each time
	$(BIN)/python tools/dist.py
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz

clean: ## remove the environment and whatever was built; indexes and runs stay
	rm -rf $(VENV) .venv-* .cache build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find pyserini_compneg tests tools java benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: Python 3.11 or later is needed, and $(PYTHON) is '$$($(PYTHON) --version 2>&1)': make PYTHON=..." >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# Of Pyserini only the package itself, for its Anserini jar: its dependencies, torch among them, take 1.2 GB.
$(PACKAGE): $(INPUTS) | $(BIN)/python
	$(PIP) -e .
	$(PIP) --no-deps pyserini
	@touch $@

$(SERVER): $(PACKAGE)
	$(PIP) -e '.[serve]'
	@touch $@

$(TOOLS): $(PACKAGE)
	$(PIP) -e '.[dev]'
	@touch $(SERVER) $@
