# Everything starts here. On a machine with Python 3.11 or later, make and a C++ compiler,
# `make demo` and `make test` set up .venv, build the extension and do their job.
#
#   make build    (re)build the extension, as far as cpp/ changed
#   make lint     ruff, mypy, the layers, clang-format and the workflows
#   make format   let ruff and clang-format rewrite the files
#   make coverage which lines of Python the tests reach
#   make api      write tests/public_api.txt anew, after a change of the interface
#   make bench    every benchmark in a quick form; ARGS= for the whole, which writes its results
#   make experiments    the papers' tables likewise; ARGS= for the whole, in hours
#   make wheel    a wheel for PYTHON, repaired, and tried where there is no compiler; `make wheels`
#                 does so for every python3.N that answers, and for the sdist
#   make pages    write the pages that scripts make: verdicts, figures, licences
#   make fuzz     random tests until Ctrl-C, or FUZZ_SECONDS=600 make fuzz

PYTHON ?= python3
FUZZ_SECONDS ?= 0
JOBS ?= 2

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt
KERNELS := $(wildcard cpp/*/*.hpp cpp/*/*.cpp)

.DELETE_ON_ERROR:
.PHONY: build demo test lint format pytest coverage wheel-check wheel wheels oldest oldest-torch docs audit \
	licences install-check release-check fuzz sanitize bench experiments pages api clean

# ---- Set-up. A stamp in .venv stands for each step, so that a step runs when it must and no more.

# `pip install --group` needs a newer pip than Python 3.11 brings along.
.venv/.tools: constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) --upgrade "pip>=25.1"
	$(INSTALL) --group build
	@touch $@

# An editable install knows the modules that there were: it is made anew when some come or go.
.venv/.modules: .venv/.tools FORCE
	@find src -name '*.py' | sort | cmp -s - $@ || find src -name '*.py' | sort > $@
FORCE:

# Without build isolation nanobind stays in one place and the next build is an incremental one.
.venv/.built: .venv/.tools .venv/.modules pyproject.toml CMakeLists.txt src/setwise/__init__.py \
		$(KERNELS)
	$(INSTALL) --no-build-isolation --editable ".[demo,plot,app,dask,volumes]"
	@touch $@

.venv/.dev: .venv/.tools pyproject.toml
	$(INSTALL) --group dev
	@touch $@

.venv/.docs: .venv/.tools pyproject.toml
	$(INSTALL) --group docs
	@touch $@

# torch is large: a step of its own. mypy, the tests and the documentation read setwise.torch.
.venv/.torch: .venv/.tools pyproject.toml
	$(INSTALL) --group torch
	@touch $@

# segmentation-models-pytorch asks for torchvision, which its losses do not need.
.venv/.bench: .venv/.tools pyproject.toml
	$(INSTALL) --group bench
	$(INSTALL) --no-deps segmentation-models-pytorch
	@touch $@

.venv/.experiments: .venv/.tools pyproject.toml
	$(INSTALL) --group experiments
	@touch $@

build: .venv/.built

# ---- Jobs

demo: .venv/.built
	$(BIN)/python -m demo
	@echo "the page to draw on: $(BIN)/setwise app"

test: lint pytest wheel-check

lint: .venv/.built .venv/.dev .venv/.torch
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run -Werror $(FORMATTED)
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) custom.github-workflows-require-timeout .github/workflows/*.yml
	$(SCHEMA) vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	$(SCHEMA) vendor.dependabot .github/dependabot.yml
	$(SCHEMA) vendor.citation-file-format CITATION.cff
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/repo-review --show err .

# The schemas lie in the tool's own wheel.
SCHEMA := $(BIN)/check-jsonschema --quiet --builtin-schema
FORMATTED := $$(find cpp -name '*.[ch]pp')

format: .venv/.dev
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(FORMATTED)

pytest: .venv/.built .venv/.dev .venv/.torch
	$(BIN)/python -m pytest -n $(JOBS)

coverage: .venv/.built .venv/.dev .venv/.torch
	@mkdir -p build
	COVERAGE_FILE=build/coverage.data $(BIN)/python -m pytest -n $(JOBS) --cov --cov-report=term

# The wheel is built from the sdist and tried in an environment without extras: where every extra
# is at hand a missing dependency hides.
wheel-check: .venv/.tools .venv-wheel/.made
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	.venv-wheel/bin/python -m pip uninstall --quiet --yes setwise
	.venv-wheel/bin/python -m pip install --quiet dist/setwise-*.whl
	.venv-wheel/bin/python -W error tests/smoke.py

# The wheel that a release would carry, for PYTHON; and for every python3.N that answers.
wheel:
	$(PYTHON) tests/wheel.py $(PYTHON)

wheels:
	$(PYTHON) tests/wheel.py --all

# Made anew with pyproject.toml, so that a dependency taken out of it is not there by accident.
.venv-wheel/.made: pyproject.toml
	$(PYTHON) -m venv --clear .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@

# The tests with the oldest versions that pyproject.toml admits; torch is the one of constraints.txt,
# whose CPU build is a plain install.
oldest: .venv/.tools
	rm -rf dist
	$(BIN)/python -m build --no-isolation --wheel --outdir dist .
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python tests/oldest.py > .venv-oldest/oldest.txt
	sed -E '/^(pandas|dask|distributed|zarr)==/d' constraints.txt > .venv-oldest/tools.txt
	.venv-oldest/bin/python -m pip install --quiet --constraint .venv-oldest/tools.txt \
		--constraint .venv-oldest/oldest.txt --group test \
		"$$(ls dist/setwise-*.whl)[demo,plot,app,dask,volumes,torch]"
	.venv-oldest/bin/python -m pytest -n $(JOBS) tests

# The tests of setwise.torch with the oldest torch that pyproject.toml admits and the oldest NumPy. Not
# for CI: an old torch brings gigabytes of CUDA packages. TORCH=2.7.0 tries a release in between.
TORCH ?= $$(sed -n 's/^torch = \["torch>=\([0-9.]*\)"\].*/\1.0/p' pyproject.toml | head -1)
oldest-torch: .venv/.tools
	rm -rf dist
	$(BIN)/python -m build --no-isolation --wheel --outdir dist .
	$(PYTHON) -m venv --clear .venv-oldest-torch
	.venv-oldest-torch/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python tests/oldest.py > .venv-oldest-torch/oldest.txt
	.venv-oldest-torch/bin/python -m pip install --quiet \
		--constraint .venv-oldest-torch/oldest.txt "torch==$(TORCH)" \
		pytest pytest-xdist hypothesis "$$(ls dist/setwise-*.whl)"
	.venv-oldest-torch/bin/python -m pytest -n $(JOBS) tests/test_torch_*.py

# Known vulnerabilities of the packages that setwise needs, with all extras but torch.
audit: .venv/.tools .venv/.built
	$(INSTALL) --group audit
	$(BIN)/pip-audit --local --skip-editable

# The packages that setwise installs, with their licences; fails where one is missing or not allowed.
licences: .venv/.built .venv/.torch
	$(BIN)/python docs/licences.py

# The wheel with all extras in a fresh environment: it installs, runs the code of every page, and can be
# removed without a trace.
install-check: .venv/.tools
	rm -rf dist
	$(BIN)/python -m build --no-isolation --wheel --outdir dist .
	$(BIN)/python tests/install.py dist/setwise-*.whl

# Everything that a release needs and that can be tried on one machine: the tests, the oldest versions,
# the documentation, the licences, the sanitizers, and each wheel in a clean environment.
release-check: test demo oldest docs licences sanitize install-check wheels

docs: .venv/.built .venv/.docs .venv/.torch
	$(BIN)/sphinx-build -W --keep-going -n -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

fuzz: .venv/.built .venv/.dev .venv/.torch
	@$(BIN)/python tests/fuzz.py $(FUZZ_SECONDS) $(JOBS)

sanitize: build/sanitize build/sanitize_threads
	build/sanitize tests/corpus
	build/sanitize_threads

# The kernels know nothing of Python, so that plain programs can run them under the sanitizers.
SANITIZED := -std=c++17 -Icpp -O1 -g -Wall -Wextra -Wshadow -Werror -pthread -fno-omit-frame-pointer

build/sanitize: cpp/tests/sanitize.cpp $(KERNELS)
	@mkdir -p build
	$(CXX) $(SANITIZED) -fsanitize=address,undefined -fno-sanitize-recover=all $< -o $@

build/sanitize_threads: cpp/tests/sanitize_threads.cpp $(KERNELS)
	@mkdir -p build
	$(CXX) $(SANITIZED) -fsanitize=thread $< -o $@

# Two builds against each other: these ask for the other one, or compile it.
OF_TWO_BUILDS := benchmarks/same_answers.py benchmarks/side_by_side.py benchmarks/instruction_sets.py

# A script that fails does not keep the others from running; the job fails at its end. What asks for
# a GPU, data or a browser that is not there says so in one line and is no failure: status 77, as in
# automake.
ARGS ?= --quick
define EACH
failed=""; for script in $(1); do \
	echo "== $$script"; $(BIN)/python $$script $(ARGS) || [ $$? = 77 ] || failed="$$failed $$script"; \
done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }
endef

bench: .venv/.built .venv/.bench
	@$(call EACH,$(sort $(filter-out $(OF_TWO_BUILDS),$(wildcard benchmarks/*.py))))

# What others read comes first: MSRC-21's unaries and superpixels, and tables before figures. The data
# is looked for where SETWISE_DATA says (see experiments/README.md).
EXPERIMENTS := experiments/msrc21/unaries.py experiments/msrc21/superpixels.py \
	$(sort $(wildcard experiments/*/table*.py)) $(sort $(wildcard experiments/*/figure*.py))
EXPERIMENTS += $(filter-out experiments/shared/% $(EXPERIMENTS),\
	$(sort $(wildcard experiments/*/[!_]*.py)))

experiments: .venv/.built .venv/.torch .venv/.experiments
	@$(call EACH,$(EXPERIMENTS))

# The pages that scripts write: goals and verdicts, tables of the guide, where figures come from, licences.
pages: .venv/.built .venv/.dev .venv/.torch licences
	$(BIN)/python benchmarks/tables.py > /dev/null
	$(BIN)/python benchmarks/verdicts.py
	$(BIN)/python docs/figures/sources.py

api: .venv/.built .venv/.torch
	$(BIN)/python tests/helpers/public_api.py

clean:
	rm -rf .venv .venv-wheel .venv-oldest .venv-oldest-torch build dist out docs/_build docs/gallery \
		docs/api/generated .hypothesis .pytest_cache .mypy_cache \
		.ruff_cache .import_linter_cache
	find src -name '_core*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
