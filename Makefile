# Build
#   make            install the environment and build the main figure at laptop scale
#   make figures    list every figure: what it shows, its data, runs, time on this machine, and whether it is built
#   make report     write results/report.html: figures, tables and the status of every run on one page
#   make env        only install the environment, .venv; LOCK=envs/requirements.lock checks the sha256 of every package
#   make calibrate FIGURES="ablation"   measure which pack sizes are fast on this machine; later builds use them (docs/performance.md)
#
# Archive and share (docs/archive.md)
#   make archive    write results/archive.zip: sources, tables, figures and their records
#   make reproduce ARCHIVE=results/archive.zip   rebuild an archive from raw data in a new folder, and report what agrees
#   make pack-runs FIGURES="ablation" FILE=runs.zip   write the finished runs behind figures into one file
#   make unpack-runs FILE=runs.zip   add the runs of a file to the store
#   make check-runs FIGURES="ablation" SAMPLE=5   train a random sample of finished runs again, and compare bytes
#   make prune      list finished runs that no configured run uses, ask, and remove them
#
# Develop (CONTRIBUTING.md)
#   make develop    also install the tools for tests, documentation and formatting, and the hooks that check each commit
#   make new KIND=model NAME=my_model   write a minimal working plug-in to start from (docs/extending.md)
#   make check NAME=my_model   run the contract tests of the plug-ins whose names contain this
#   make format     format, lint and check types
#   make test       run all tests
#   make test-slurm run the tests on a real Slurm, which they install (as root, from Debian's packages) and start
#   make test-gpu   run the tests on a GPU (docs/gpu.md)
#   make test-ends PYTHON=python3.13 SNAKEMAKE=9.27.1 TORCH=2.14.1   make a tiny build and run tests with other supported versions
#   make test-newest   make a tiny build with the newest release of every package
#   make bench      compare every family of runs with plain PyTorch, and report what became slower (docs/performance.md)
#   make bench-gpu  measure runs per hour on a GPU, compared with plain PyTorch (docs/gpu.md)
#   make lock       resolve envs/*.in into exact pins: envs/*.lock (with sha256), *.txt and environment.yaml
#
# Write pages
#   make docs       build the documentation as a site, site/index.html; also write the pages made from the code
#   make reference FIGURES="ablation comparison"   build figures' tables (default: the main figure's) and copy them to reference/
#   make thumbnails draw docs/thumbnails: a small picture of every figure that is built here or has a table in reference/
#   make verdict    draw docs/verdict.png and write docs/verdict.md: gains by task and term, from existing tables
#
# Build with other configuration files: OPTIONS="--configfile config/paper.yaml" (figures, calibrate, pack-runs, unpack-runs, check-runs, prune)

VENV := .venv
PYTHON ?= python3
RUN := . $(VENV)/bin/activate &&
# Without hashes, any build of these versions is accepted, such as PyTorch's CPU-only build. With hashes, only those of the package index.
LOCK ?= envs/requirements.txt
# Packages in the user's PYTHONPATH would count as installed, and jobs do not search it.
unexport PYTHONPATH
NEW_ENOUGH = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'

.PHONY: figure help figures env install develop archive reproduce pack-runs unpack-runs check-runs prune reference report test test-slurm test-ends test-newest test-gpu bench bench-gpu calibrate new check format docs thumbnails verdict lock

figure: env
	$(RUN) snakemake results/figures/ablation.pdf

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

figures: env
	@$(RUN) python workflow/figures.py $(OPTIONS)

env: $(VENV)/.complete

# The marker holds the pins that were installed. If the file only has another time, as after `git checkout`, nothing is installed.
$(VENV)/.complete: envs/requirements.txt
	@if cmp -s $< $@; then touch $@; else $(MAKE) --no-print-directory install; fi

# The marker is written last, so an interrupted installation starts again. The package is installed in editable mode for notebooks and
# scripts elsewhere; the workflow itself uses src/.
install:
	@[ "$$(uname)" = Linux ] || { echo "Linux is needed, and this is $$(uname): use a container (envs/Dockerfile) or a virtual machine"; exit 1; }
	@case "$(CURDIR)" in *[{}]*) echo "Snakemake takes braces in a path for wildcards. Move this folder to a path without braces"; exit 1;; esac
	@if [ -L $(VENV) ]; then echo "$(VENV) is a link, and installing would clear the folder that it points to. Remove the link, or update that environment and copy envs/requirements.txt to $(VENV)/.complete"; exit 1; fi
	$(NEW_ENOUGH)
	$(PYTHON) -m venv --clear $(VENV)
	@echo Installing the packages of $(LOCK)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --requirement $(LOCK) || \
	  { echo "The packages of $(LOCK) could not be installed, see above. They need a package index (PIP_INDEX_URL names another one)" \
	  "and Python 3.11 to 3.13. This is $$($(VENV)/bin/python --version): make PYTHON=python3.13 uses another one"; exit 1; }
	@# On all cores; pip would use one. Some packages contain files that Python cannot compile.
	$(VENV)/bin/python -m compileall -qq -j 0 $(VENV)/lib || true
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	cp envs/requirements.txt $(VENV)/.complete

# Development tools are added to the user's environment without changing its packages. A new installation removes this marker, too.
$(VENV)/.development: envs/development.txt | $(VENV)/.complete
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement $(subst requirements,development,$(LOCK))
	touch $@

develop: $(VENV)/.development
	$(RUN) pre-commit install

archive: env
	$(RUN) snakemake results/archive.zip

# This also works on a fresh machine: it installs the archive's own environment. OPTIONS: see workflow/reproduce.py --help
ARCHIVE ?= results/archive.zip
reproduce:
	@$(NEW_ENOUGH)
	$(PYTHON) workflow/reproduce.py "$(ARCHIVE)" $(if $(RUNS),--runs "$(RUNS)") $(if $(SAMPLE),--sample $(SAMPLE)) $(OPTIONS)

# OPTIONS: the overlays that the figures were built with, such as "--configfile config/paper.yaml".
FIGURES ?= ablation
FILE ?= results/runs.zip
pack-runs: env
	$(RUN) python workflow/runs.py pack "$(FILE)" --figures $(FIGURES) $(OPTIONS)

unpack-runs: env
	$(RUN) python workflow/runs.py unpack "$(FILE)" $(OPTIONS)

check-runs: env
	$(RUN) python workflow/runs.py check --figures $(FIGURES) --sample $(or $(SAMPLE),5) $(OPTIONS)

prune: env
	$(RUN) python workflow/runs.py prune $(OPTIONS)

reference: env
	$(RUN) snakemake $(FIGURES:%=results/tables/%.csv)
	mkdir -p reference
	cp $(foreach figure,$(FIGURES),results/tables/$(figure).csv results/tables/$(figure).provenance.json) reference

report: env
	$(RUN) snakemake results/report.html

# Three test files at a time on two cores, because builds, and even more so Slurm, spend much time waiting. tests/conftest.py sets the order.
test: $(VENV)/.development
	$(RUN) python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# -s shows what the jobs cost.
test-slurm: $(VENV)/.development
	$(RUN) python -m pytest -s tests/workflow/test_slurm.py

test-gpu: $(VENV)/.development
	$(RUN) python -m pytest tests/gpu -n 4

# OPTIONS: the overlays that the figures are built with, such as "--configfile config/paper.yaml".
calibrate: env
	$(RUN) python workflow/calibrate.py --figures $(FIGURES) $(OPTIONS)

# OPTIONS: such as --family "COGS, transformer".
bench: env
	$(RUN) python benchmarks/families.py --short $(OPTIONS)

bench-gpu: env
	$(RUN) python benchmarks/packed_training.py --device cuda --problem scan mnist cogs --runs 1 4 16 64 --minutes 9

# The project's pins with another Python, Snakemake or PyTorch and their own dependencies, installed in the folder .ends.
SNAKEMAKE ?= 9.14.0
TORCH ?= $(shell sed -n 's/^torch==//p' envs/requirements.in)
test-ends:
	$(PYTHON) -m venv --clear .ends
	grep -v -h -E '^(#|snakemake|torch==)' envs/requirements.in > .ends/requirements.txt
	grep -E '^(hypothesis|pytest)' envs/development.in >> .ends/requirements.txt
	.ends/bin/python -m pip install --quiet --disable-pip-version-check -r .ends/requirements.txt "snakemake==$(SNAKEMAKE)" "torch==$(TORCH)"
	. .ends/bin/activate && python -m pytest -q tests/workflow/test_ends.py tests/unit/planning tests/unit/configuration \
	  tests/unit/records/test_fingerprint.py tests/unit/figures/test_figures.py tests/unit/records/test_store.py tests/unit/archive/test_comparison.py

test-newest:
	$(PYTHON) -m venv --clear .newest
	sed -n 's/==.*//p' envs/requirements.in > .newest/requirements.txt
	sed -n -E 's/^(hypothesis|pytest)==.*/\1/p' envs/development.in >> .newest/requirements.txt
	.newest/bin/python -m pip install --quiet --disable-pip-version-check -r .newest/requirements.txt
	. .newest/bin/activate && python -m pytest -q tests/workflow/test_ends.py

new: env
	@$(RUN) python workflow/new.py "$(KIND)" "$(NAME)"

check: $(VENV)/.development
	$(RUN) python -m pytest -v -k "$(NAME)" tests/unit/*/test_contract.py

format: $(VENV)/.development
	$(RUN) ruff format src tests benchmarks docs workflow && ruff check --fix src tests benchmarks docs workflow && snakefmt Snakefile rules && codespell && mypy

docs: $(VENV)/.development
	$(RUN) PYTHONPATH=src python -m compositional.configuration.documentation && python docs/architecture.py && python workflow/figures.py --page docs/figures.md
	$(RUN) NO_MKDOCS_2_WARNING=1 mkdocs build --quiet
	@echo open site/index.html

thumbnails: env
	$(RUN) PYTHONPATH=src python docs/thumbnails.py

verdict: env
	$(RUN) PYTHONPATH=src python docs/verdict.py

# Pins that still fit are kept. OPTIONS=--upgrade takes the newest versions that envs/*.in permit.
COMPILE := cd envs && ../.lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
lock:
	$(PYTHON) -m venv --clear .lock
	.lock/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.9 packaging==25.0
	$(COMPILE) $(OPTIONS) requirements.in --output-file requirements.lock
	$(COMPILE) $(OPTIONS) development.in --constraint requirements.lock --output-file development.lock
	$(COMPILE) $(OPTIONS) optional.in --constraint requirements.lock --constraint development.lock --output-file optional.lock
	.lock/bin/python envs/lock.py
	rm -r .lock
