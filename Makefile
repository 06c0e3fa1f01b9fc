# make            set everything up and build the main figure at laptop scale
# make env        only the environment, .venv
# make test       set everything up and run the tests
# make test-slurm only those on a real Slurm, which they install (as root, from Debian's packages) and start

VENV := .venv
PYTHON ?= python3
RUN := . $(VENV)/bin/activate &&

.PHONY: figure env test test-slurm format

figure: env
	$(RUN) snakemake results/figures/ablation.pdf

env: $(VENV)/.complete

# The marker is written last: an interrupted installation starts again.
$(VENV)/.complete: envs/requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --requirement envs/requirements.txt
	touch $@

test: env
	$(RUN) python -m pytest

# Shows what the jobs cost, too.
test-slurm: env
	$(RUN) python -m pytest -s tests/test_slurm.py

format: env
	$(RUN) ruff format src tests benchmarks && ruff check --fix src tests benchmarks && snakefmt Snakefile rules
