# The two commands of README are `make demo` and `make test`; both install first.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
DOCS_STAMP := $(VENV)/.installed-docs
AUDIT := build/audit
PEERS := build/peers
PIP := $(BIN)/pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --no-deps --no-compile --progress-bar on
# On all cores, which pip does not; a few files of old templates never compile.
COMPILE := $(BIN)/python -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib || true

CHROMIUM := { apt-get update -q && apt-get install -q -y chromium; }
IMAGE_TOOLS := { apt-get update -q && apt-get install -q -y buildah mmdebstrap iproute2; }

# Every process of a graph and of the tests imports our modules: they are compiled once, even where
# the shell forbids it.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo serve check test test-durability test-nightly coverage lint bench bench-peers docs sbom audit lock clean

demo: $(STAMP)
	$(BIN)/citeray demo

serve: $(STAMP)
	$(BIN)/citeray serve

PYTEST := $(BIN)/python -m pytest --no-loadscope-reorder --durations 15
UNITS := $(PYTEST) --numprocesses $(shell nproc) -m unit
# One worker runs the tests on Ray, which wait for processes of their own about half of the time. In
# `make test-durability`, another one builds the image.
OTHERS := $(PYTEST) --numprocesses $(shell echo $$(( $$(nproc) + 1 )))

# Before a commit: style, types and unit tests.
check: lint
	$(UNITS)

# Everything but the nightly tests. Unit tests have a run of their own, in which nothing may import
# torch or Ray.
test: check
	$(OTHERS) -m "not unit and not nightly"

# The nightly tests that protect data and users; CI runs them after `make test`.
test-durability: $(DEV_STAMP)
	@command -v buildah >/dev/null && command -v mmdebstrap >/dev/null || $(IMAGE_TOOLS) >/dev/null 2>&1 || \
		echo "no buildah or mmdebstrap: the test of the image is skipped (on Debian: apt-get install buildah mmdebstrap)"
	$(OTHERS) -m "nightly and durability"

# Every nightly test.
test-nightly: $(DEV_STAMP)
	$(PYTEST) --numprocesses 2 -m nightly

# Lines and branches, in processes of Ray too; the tests of `make test`, a third slower.
coverage: $(DEV_STAMP)
	$(OTHERS) -m "not nightly" --cov --cov-report=
	$(BIN)/coverage report --skip-covered --sort=cover

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers $(shell nproc)

bench: $(DEV_STAMP)
	$(BIN)/python -m benchmarks.bench_parse
	$(BIN)/python -m benchmarks.bench_peers --part build

# Part by part beside what one would use instead; the sample corpus, or QUESTIONS=... SOURCES=...
bench-peers: $(PEERS)/.installed
	PYTHONPATH=$(PEERS) $(BIN)/python -m benchmarks.bench_peers $(QUESTIONS) $(SOURCES)

# Reads commands and settings from the code, so it needs the whole set-up; --strict: a broken link,
# anchor or page outside the navigation is an error.
docs: $(DOCS_STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# --no-deps: the locks are complete, and leave out wheels that clash on a CPU
# (see the head of requirements/cpu.txt).
$(STAMP): requirements/cpu.txt requirements/torch-cpu.txt requirements/torch-index.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "citeray: $(PYTHON) not found; install Python 3.11 or name one: make PYTHON=python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo "installing $$(grep -c '==' requirements/cpu.txt) pinned packages into $(VENV) (about 1.5 GB to fetch the first time)"
	$(INSTALL) -r requirements/cpu.txt
	@$(INSTALL) -r requirements/torch-cpu.txt 2>$(VENV)/torch.log || { \
		grep -q "No matching distribution" $(VENV)/torch.log || { cat $(VENV)/torch.log; exit 1; }; \
		echo "no build of torch for CPUs at hand: taking the index's, with CUDA's libraries (about 3 GB)"; \
		$(INSTALL) -r requirements/torch-index.txt; }
	$(COMPILE)
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV_STAMP): $(STAMP) requirements/dev.txt
	$(PIP) install --quiet --no-deps -r requirements/dev.txt
	@command -v chromium >/dev/null || $(CHROMIUM) >/dev/null 2>&1 || \
		echo "no chromium on PATH: the page's tests are skipped (on Debian: apt-get install chromium)"
	@touch $@

$(PEERS)/.installed: $(DEV_STAMP) requirements/peers.txt
	$(PIP) install --quiet --no-deps --target $(PEERS) -r requirements/peers.txt
	@touch $@

$(DOCS_STAMP): $(STAMP) requirements/docs.txt
	$(PIP) install --quiet --no-deps -r requirements/docs.txt
	@touch $@

# What is installed, with licences: build/sbom.json (CycloneDX) and build/licences.md.
sbom: $(STAMP) $(AUDIT)/.installed
	$(AUDIT)/bin/cyclonedx-py environment $(BIN)/python --output-format JSON --output-file build/sbom.json
	$(AUDIT)/bin/pip-licenses --python $(BIN)/python --format markdown --order license --output-file build/licences.md

# Known vulnerabilities of what the locks pin, as OSV lists them; fails if there are any.
OSV_URL ?= https://api.osv.dev/v1/query
SCAN := $(AUDIT)/bin/pip-audit --disable-pip --require-hashes --progress-spinner off \
	--vulnerability-service osv --osv-url $(OSV_URL)

audit: $(AUDIT)/.installed
	@status=0; for locks in "cpu torch-index" gpu; do \
		echo "$$locks:"; \
		$(SCAN) $$(printf -- '-r requirements/%s.txt ' $$locks) || status=1; \
	done; exit $$status

$(AUDIT)/.installed: requirements/audit.txt
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/pip install --quiet --no-deps -r requirements/audit.txt
	@touch $@

# Resolves the newest versions that pyproject.toml allows, then freezes them.
lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/pip install --quiet ".[cpu,llm-cpu]" setuptools-scm
	$(PYTHON) requirements/freeze.py build/lock/bin/pip > requirements/cpu.txt
	build/lock/bin/python requirements/add_hashes.py requirements/cpu.txt
	build/lock/bin/python requirements/check_lock.py

clean:
	rm -rf $(VENV) .citeray build
