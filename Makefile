# make            set everything up and build the main figure at laptop scale
# make env        only the environment, .venv
# make test       set everything up and run the tests
# make test-slurm only those on a real Slurm, which they install (as root, from Debian's packages) and start
# make format     format and lint
# make lock       resolve envs/requirements.in anew into the exact pins of envs/requirements.txt and environment.yaml
# make docs       write the option tables of config/README.md

VENV := .venv
PYTHON ?= python3
RUN := . $(VENV)/bin/activate &&

.PHONY: figure env test test-slurm format docs lock

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

docs: env
	$(RUN) PYTHONPATH=src python -m compositional.documentation

# CPU and CUDA builds of torch have one version number; what follows a "+" names the build and is dropped.
lock:
	$(PYTHON) -m venv --clear .lock
	.lock/bin/python -m pip install --quiet --disable-pip-version-check --requirement envs/requirements.in
	.lock/bin/python -m pip freeze | grep -v -i -E '^(nvidia|triton|cuda)' | sed 's/+.*//' > envs/requirements.txt
	$(PYTHON) envs/lock.py
	rm -r .lock
