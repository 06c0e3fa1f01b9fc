# make            set everything up and build the main figure at laptop scale
# make env        only the environment, .venv; with LOCK=envs/requirements.lock, packages whose sha256 is pinned, too
# make develop    what tests, documentation and formatting need, too, and the hooks that look at each commit (CONTRIBUTING.md)
# make test       set everything up and run the tests
# make test-slurm only those on a real Slurm, which they install (as root, from Debian's packages) and start
# make test-gpu   only those on a GPU, with the environment's PyTorch (docs/gpu.md); bench-gpu: runs per hour beside plain PyTorch
# make archive   results/archive.zip: sources, tables, figures and where they come from, in one file (docs/archive.md)
# make reproduce ARCHIVE=results/archive.zip   rebuild an archive from raw data in a new folder and say what agrees
# make pack-runs FIGURES="ablation" FILE=runs.zip   the finished runs behind figures in one file; unpack-runs FILE=... adds them to a store
# make check-runs FIGURES="ablation" SAMPLE=5   train a random sample of finished runs again and compare bytes
# make prune     remove finished runs that no configured run uses, after saying which (docs/archive.md)
# make reference FIGURES="ablation comparison"   build figures' tables (by default the main one's) and keep them in reference/
# make report    results/report.html: figures, tables, status of every run, on one page
# make test-ends PYTHON=python3.13 SNAKEMAKE=9.27.1   a tiny build and unit tests at an end of the supported ranges
# make test-newest   a tiny build with the newest of everything: what will break, early
# make new KIND=model NAME=my_model   a minimal working plug-in to start from (docs/extending.md)
# make check NAME=my_model   the contract tests of the plug-ins with this in their name
# make format     format, lint and check types
# make lock       resolve envs/*.in anew into the exact pins of envs/*.txt, environment.yaml and requirements.lock (with hashes)
# make verdict  docs/verdict.png and .md: gains by task and term, from the tables that there are
# make docs       site/index.html: the documentation as a site; writes what it takes from the code, too (option tables, picture of the floors)

VENV := .venv
PYTHON ?= python3
RUN := . $(VENV)/bin/activate &&
# Without hashes any build of these versions will do: PyTorch's for CPUs alone, say. With them, those of the package index.
LOCK ?= envs/requirements.txt

.PHONY: figure env develop archive reproduce pack-runs unpack-runs check-runs prune reference report test test-slurm test-ends test-newest test-gpu bench-gpu new check format docs verdict lock

# Without Snakemake's reasons: of a first build they name every file that is missing.
figure: env
	$(RUN) snakemake --quiet reason -- results/figures/ablation.pdf

env: $(VENV)/.complete

# The marker is written last: an interrupted installation starts again. The package itself is installed as it stands here, for
# notebooks and scripts elsewhere; the workflow finds it beside itself.
$(VENV)/.complete: envs/requirements.txt
	@case "$(CURDIR)" in *[{}]*) echo "Snakemake takes braces in a path for wildcards. Move this folder to a path without braces"; exit 1;; esac
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $(LOCK)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

# Tools for the developer beside the user's environment, which stays as it is.
$(VENV)/.development: $(VENV)/.complete envs/development.txt
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --requirement envs/development.txt --constraint envs/requirements.txt
	touch $@

develop: $(VENV)/.development
	$(RUN) pre-commit install

archive: env
	$(RUN) snakemake results/archive.zip

# On a fresh machine: installs the archive's own environment in the new folder. OPTIONS: see workflow/reproduce.py --help
reproduce:
	$(PYTHON) workflow/reproduce.py "$(ARCHIVE)" $(if $(RUNS),--runs "$(RUNS)") $(if $(SAMPLE),--sample $(SAMPLE)) $(OPTIONS)

# OPTIONS: such as "--configfile config/paper.yaml", the overlays that the figures were built with.
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

# Two files at a time: much of a build, and nearly all of a Slurm, is waiting. In the order of tests/conftest.py.
test: $(VENV)/.development
	$(RUN) python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# Shows what the jobs cost, too.
test-slurm: $(VENV)/.development
	$(RUN) python -m pytest -s tests/workflow/test_slurm.py

test-gpu: $(VENV)/.development
	$(RUN) python -m pytest tests/gpu

bench-gpu: env
	$(RUN) python benchmarks/packed_training.py --device cuda --problem scan mnist cogs --runs 1 4 16 64

# The project's own pins with another Python and another Snakemake, which brings along what it needs. In .ends, a folder of its own.
SNAKEMAKE ?= 9.0.0
test-ends:
	$(PYTHON) -m venv --clear .ends
	grep -v -h -E '^(#|snakemake)' envs/requirements.in > .ends/requirements.txt
	grep -E '^(hypothesis|pytest)' envs/development.in >> .ends/requirements.txt
	.ends/bin/python -m pip install --quiet --disable-pip-version-check -r .ends/requirements.txt "snakemake==$(SNAKEMAKE)"
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
	$(RUN) python -m pytest -v -k "$(NAME)" tests/unit/datasets/test_contract.py tests/unit/tasks/test_contract.py tests/unit/models/test_contract.py tests/unit/regularizers/test_contract.py tests/unit/figures/test_contract.py tests/unit/kinds/test_contract.py tests/unit/tables/test_contract.py

format: $(VENV)/.development
	$(RUN) ruff format src tests benchmarks docs workflow && ruff check --fix src tests benchmarks docs workflow && snakefmt Snakefile rules && codespell && mypy

docs: $(VENV)/.development
	$(RUN) PYTHONPATH=src python -m compositional.configuration.documentation && python docs/architecture.py
	$(RUN) NO_MKDOCS_2_WARNING=1 mkdocs build --quiet
	@echo open site/index.html

verdict: env
	$(RUN) PYTHONPATH=src python docs/verdict.py

# CPU and CUDA builds of torch have one version number; what follows a "+" names the build and is dropped.
lock:
	$(PYTHON) -m venv --clear .lock
	.lock/bin/python -m pip install --quiet --disable-pip-version-check --requirement envs/requirements.in
	.lock/bin/python -m pip freeze | grep -v -i -E '^(nvidia|triton|cuda)' | sed 's/+.*//' > envs/requirements.txt
	.lock/bin/python -m pip install --quiet --disable-pip-version-check --requirement envs/optional.in --constraint envs/requirements.txt
	.lock/bin/python -m pip freeze | grep -v -i -E '^(nvidia|triton|cuda)' | sed 's/+.*//' | grep -v -x -F -f envs/requirements.txt > envs/optional.txt
	.lock/bin/python -m pip uninstall --quiet --yes --requirement envs/optional.txt
	.lock/bin/python -m pip install --quiet --disable-pip-version-check --requirement envs/development.in --constraint envs/requirements.txt
	.lock/bin/python -m pip freeze | grep -v -i -E '^(nvidia|triton|cuda)' | sed 's/+.*//' | grep -v -x -F -f envs/requirements.txt > envs/development.txt
	$(PYTHON) envs/lock.py
	.lock/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	.lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --constraint envs/requirements.txt envs/requirements.in --output-file envs/requirements.lock
	rm -r .lock
