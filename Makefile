# Everything a developer does, each by one command. CI calls the same targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
PY_SOURCES := $(shell find python -name '*.py' -o -name '*.pyi' 2>/dev/null)
RUST_SOURCES := $(shell find rust -name '*.rs' 2>/dev/null) Cargo.toml Cargo.lock pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help run test test-newest test-explorer test-oracle test-deep test-rust test-python fuzz coverage lint fmt bench wheel deny docs site build clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMPS)/python: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet 'maturin>=1.9.4,<2' --group test --group lint
	@mkdir -p $(STAMPS) && touch $@

# An environment that happens to be active in the shell is not the one to install into.
$(STAMPS)/build: $(STAMPS)/python $(RUST_SOURCES) $(PY_SOURCES)
	env -u CONDA_PREFIX VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --quiet
	@touch $@

build: $(STAMPS)/build  ## build the extension and install the package into .venv

# Without a checkout that is built, `make run` needs nothing of tests and checks, and no optimization.
RUN := $(if $(wildcard $(STAMPS)/build),$(VENV),.cache/run)
.cache/run/done: $(RUST_SOURCES) $(PY_SOURCES)
	$(PYTHON) -m venv .cache/run
	MATURIN_PEP517_ARGS="--profile quick" .cache/run/bin/python -m pip install --quiet .
	@touch $@

run: $(if $(wildcard $(STAMPS)/build),build,.cache/run/done)  ## complete the shardings of the shipped GPT training step, show the table and what it costs
	$(RUN)/bin/shardcore propagate examples/gpt_step.mlir --limit 40
	@echo
	$(RUN)/bin/shardcore cost examples/gpt_step.mlir --hardware tpu-v5p

test: test-rust test-python  ## set up, build and run all tests

test-rust:
	cargo test --quiet

test-python: build
	$(BIN)/python -m pytest -q -n auto --dist worksteal

# What test-newest runs.
NEWEST_TESTS ?= tests/jax tests/bench tests/shardy tests/unit/test_notebooks.py
test-newest: wheel  ## the tests of JAX, of Shardy and of the notebooks with the newest JAX, in an environment of its own
	.ci/with_jax.sh dist/*.whl $(NEWEST_TESTS)

test-explorer: build  ## Google's Model Explorer opens the graphs that are written for it
	$(BIN)/python -m pip install --quiet --group explorer
	$(BIN)/python -m pytest -q tests/page/test_model_explorer.py

ORACLE := .cache/oracle
test-oracle: wheel  ## XLA's own compilers for TPUs and GPUs, 2 GB in an environment of its own: what they say beside costs
	$(PYTHON) -m venv $(ORACLE)
	$(ORACLE)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(ORACLE)/bin/python -m pip install --quiet --group test
	$(ORACLE)/bin/python -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	$(ORACLE)/bin/python -m pip install --quiet "$$(echo dist/*.whl)[tpu-oracle,gpu-oracle]"
	$(ORACLE)/bin/python -m pytest -q -p no:cacheprovider tests/xla

test-deep: build  ## the same comparisons on tens of thousands of random programs; a minute of fuzzing
	SHARDCORE_FUZZ_SECONDS=60 cargo test --release --quiet --test fuzz
	HYPOTHESIS_PROFILE=deep SHARDCORE_DEEP=1 $(BIN)/python -m pytest -q
	$(BIN)/python -m tests.shardy.generator --hits --count 2000
	$(BIN)/python -m tests.shardy.generator.seeded
	$(BIN)/python -m tests.spmd.seeded
	$(BIN)/python -m tests.session.seeded

fuzz: build  ## ten minutes for each target: mutated programs, arguments, changed ops, command lines, files, figures
	SHARDCORE_FUZZ_SECONDS=600 cargo test --release --quiet --test fuzz -- --nocapture
	$(BIN)/python -m tests.fuzz.surfaces --seconds 600

coverage:  ## how much of the parser the fuzzers' corpus reaches by itself; needs rustup's llvm-tools
	$(PYTHON) tests/fuzz/coverage.py

lint: build  ## formatting, clippy, ruff, mypy and the stubs
	cargo fmt --check
	cargo clippy --quiet -- -D warnings
	cargo clippy --quiet --all-targets --features python -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy python/shardcore
	MYPYPATH=python $(BIN)/python -m mypy.stubtest shardcore._core

fmt:  ## format everything
	cargo fmt
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: build  ## measure against jaxlib in one run; write table, figures and plot to out/bench
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python benches/vs_shardy.py --out out/bench
	$(BIN)/python -m benches.bytes_sent
	$(BIN)/python -m benches.vs_xla
	$(BIN)/python -m benches.edits
	$(BIN)/python -m benches.pages
	cargo bench --quiet

wheel: $(STAMPS)/python  ## build the wheel of this machine into dist, install it into an empty environment, run it
	rm -rf dist
	$(BIN)/maturin build --release --locked --quiet --out dist
	$(BIN)/python .ci/check_wheel.py dist/*.whl

deny:  ## licences, sources and duplicates of crates; needs `cargo install cargo-deny`
	cargo deny check

docs: build  ## build the Rust documentation and run the examples of README and docs
	cargo doc --no-deps --quiet
	$(BIN)/python -m pytest -q tests/contract

site: build  ## build the site of the documentation in out/site; a broken link or name is an error
	$(BIN)/python -m pip install --quiet --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

clean:  ## remove what was built
	rm -rf $(VENV) target dist
