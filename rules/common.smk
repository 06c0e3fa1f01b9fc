# Shared by all rules: the checked configuration, the packs, and what each job depends on.

import os
import re
import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
PACKAGE = ROOT / "src" / "compositional"
SCRIPTS = ROOT / "workflow" / "scripts"
# Scripts import the package from here, installed or not, on this machine and on compute nodes.
sys.path.insert(0, str(PACKAGE.parent))
os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [str(PACKAGE.parent), os.getenv("PYTHONPATH")])))

from compositional import plan, progress
from compositional.configuration import Configuration, ConfigurationError
from compositional.fingerprint import fingerprint
from compositional.grid import NAME, figure_runs

# Called without --cores, use this machine's; executors that submit jobs elsewhere have --jobs instead.
settings = workflow.resource_settings
if settings.cores is None and settings.nodes is None:
    settings.cores = len(os.sched_getaffinity(0))
    workflow.register_resource("_cores", settings.cores)

try:
    CONFIGURATION = Configuration(config, ROOT / "config" / "schema.yaml")
    FIGURES = CONFIGURATION.figures
    # Jobs, also on other machines, read the plan that the main process made.
    if not workflow.is_main_process:
        PACKS = plan.read(Path("results/plan.json"))
    else:
        wanted = plan.wanted_runs(CONFIGURATION, "results", sys.argv[1:])
        PACKS = plan.make(Path("results/plan.json"), "results", wanted, config["pack_size"])
        # A dry run leaves no trace, least of all in the plan of a build that is going on.
        if not any(re.fullmatch(r"-[a-z]*n[a-z]*|--dry-?run", argument) for argument in sys.argv[1:]):
            plan.write(Path("results/plan.json"), PACKS)
            steps = {pack: CONFIGURATION.settings(*pack.family[:2])["steps"] for pack in PACKS}
            progress.announce(Path("results/progress"), plan.work(PACKS, "results", steps))
except (ConfigurationError, ValueError, OSError) as error:
    sys.exit(str(error))

# What a profile asks for by default, withheld from jobs that are told to compute on the CPU.
DEVICE_RESOURCES = {"gpu": 0, "gpu_model": "", "gres": ""} if config["device"] == "cpu" else {}


wildcard_constraints:
    task=NAME,
    dataset=NAME,
    figure=NAME,


def code_of(script, *modules):
    """Fingerprint of a script, of the modules that it loads by name, and of all that these import."""
    return fingerprint(SCRIPTS / f"{script}.py", *(PACKAGE / f"{name.replace('.', '/')}.py" for name in modules))


def modules_of(family):
    """The modules that a family of runs loads by name."""
    parameters = CONFIGURATION.family_parameters(family)
    return [parameters[key] for key in ("model_module", "regularizer_module") if key in parameters]


def numerics_of(family):
    """Fingerprint of the code that determines a run's numbers, without the workflow around it."""
    return fingerprint(*(PACKAGE / f"{name.replace('.', '/')}.py" for name in ("training", "curves", *modules_of(family))))


def work_of(family):
    """Examples that a run of this family sees in training: a rough measure of how long it takes."""
    settings = CONFIGURATION.settings(*family[:2])
    return settings["steps"] * settings["batch_size"]


def raw_files(wildcards):
    """Downloads that a task is made from; none for generated and bundled datasets."""
    dataset = CONFIGURATION.dataset(wildcards.task)
    return [f"results/raw/{dataset}/{name}" for name in CONFIGURATION.raw_files(wildcards.task)]


def figure_sources(wildcards):
    """The file of every run that a figure's table is made from."""
    figure = FIGURES[wildcards.figure]
    return [f"results/runs/{run.path}/{figure['source']}" for run in figure_runs(figure)]
