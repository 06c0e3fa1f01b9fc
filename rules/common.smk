# Shared by all rules: everything that needs Snakemake itself. compositional.planning decides what is made from what, and what is
# out of date.

import atexit
import gc
import logging
import os
import shlex
import site
import sys
from functools import partial
from pathlib import Path

# Objects that are created while parsing files and finding jobs stay in memory. Frequent garbage collection takes a seventh of the
# time of a dry run. It is made rare but not turned off, because this may be the process of another program.
gc.set_threshold(1_000_000)
# Nor does Python have to look for garbage when it ends, which takes another seventh.
atexit.register(gc.freeze)
# Not workflow.basedir: if this is a module of another workflow, that is the folder of the other workflow.
ROOT = Path(str(workflow.current_basedir)).parent
if set(str(ROOT)) & set("{}"):
    sys.exit(f"{ROOT}: Snakemake reads braces in the path of a workflow as wildcards. Move this folder to a path without braces")
if os.pathsep in str(ROOT):
    sys.exit(f"{ROOT}: Python reads {os.pathsep} in PYTHONPATH as the end of a folder. Move this folder to a path without it")
sys.path.insert(0, str(ROOT / "src"))

from snakemake import persistence
from snakemake.settings.types import RerunTrigger

from compositional.configuration import files as config_files
from compositional.configuration.configuration import Configuration
from compositional.planning import literals
from compositional.planning import packs
from compositional.planning.plan import Plan
from compositional.planning.recipes import content_of
from compositional.planning.targets import targets
from compositional.records import links
from compositional.records import surroundings
from compositional.records.places import STAGES
from compositional.runs import NAME
from compositional.stages.shared import forks
from compositional.terminal import commands
from compositional.terminal import display
from compositional.terminal import failures
from compositional.terminal import missing
from compositional.terminal import refusals

refusals.another_system(sys.platform)
if not Path(links.__file__).resolve().is_relative_to(ROOT.resolve()):
    sys.exit(f"This process has imported compositional from {links.__file__}, which is not of {ROOT}: call it in a new process")
# Another call in this process, such as a notebook's, may have read sources that were edited since.
for name in [name for name in sys.modules if name.partition(".")[0] == "compositional"]:
    for own in vars(sys.modules[name]).values():
        if hasattr(type(own), "cache_clear"):
            own.cache_clear()
# A module gets its configuration from the workflow that imports it. Options about configuration files are for that workflow.
AS_MODULE = Path(workflow.basedir).resolve() not in (ROOT.resolve(), ROOT.resolve() / "workflow")
theirs = {os.path.abspath(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder}
theirs = {*theirs, site.getusersitepackages()}.difference(site.getsitepackages())
surroundings.settle(os.environ, ROOT)
if "snakemake" in sys.argv[0] and not AS_MODULE:
    # The versions that are planned must be those of jobs, which search neither the user's PYTHONPATH nor the home folder.
    sys.path[:] = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), *(folder for folder in sys.path if folder not in theirs)]
# Parts of Snakemake that are not documented: docs/architecture.md lists each with its reason.
of_snakemake = partial(refusals.inside, workflow)
with refusals.in_a_sentence():
    links.keep_backups_apart(persistence)

# Without --cores, use all cores of this machine. Executors that submit jobs elsewhere use --jobs instead.
settings = of_snakemake("resource_settings")
if settings.cores is None and settings.nodes is None:
    settings.cores = surroundings.cores()
    of_snakemake("register_resource")("_cores", settings.cores)

MAIN = of_snakemake("is_main_process")
DRY = getattr(of_snakemake("output_settings"), "dryrun", False)
HERE = MAIN and settings.nodes is None and not DRY
DRAWS = HERE and any(target.startswith("results/figures/") for target in targets(sys.argv))
if DRAWS:
    # The libraries of drawing are imported while the plan is made.
    forks.start(os.environ, forks.OF_DRAWING)
SHOWS = MAIN and not AS_MODULE  # an importing workflow controls its own output
OVERLAYS = [] if AS_MODULE else of_snakemake("config_settings.configfiles")
# These options come last in a command, because any word after --configfile is read as another file.
OPTIONS = shlex.join(["--configfile", *map(os.path.relpath, OVERLAYS)] if OVERLAYS else [])
if MAIN:
    refusals.below_one(cores=settings.cores, jobs=settings.nodes)
    with refusals.in_a_sentence():
        # Not `configfile:`, which takes a quarter of a second to parse, and reports for each file that the command line extends
        # it.
        replaces = not AS_MODULE and of_snakemake("config_settings.replace_workflow_config")
        config = config_files.whole(ROOT / "config", config, OVERLAYS, replaces, os.environ.get("COMPOSITIONAL_STORE"))
        written = map(Path, map(os.path.relpath, [*([] if replaces else config_files.shipped(ROOT / "config")), *OVERLAYS]))
        known = Configuration(config, [*written], "" if AS_MODULE else "--config")
        PLAN = Plan(known, sys.argv, options=OPTIONS, cores=None if settings.nodes else settings.cores)
    PACKS = PLAN.rules
    if SHOWS:
        nearest = partial(missing.nearest, figures=PLAN.recipes.figures, tasks=PLAN.recipes.configuration.names("tasks"))
        alone = failures.options_of(map(Path, OVERLAYS), ROOT)
        SHOWN = display.Display(logging.getLogger("snakemake.logging"), of_snakemake("output_settings"), nearest, alone)
else:
    # On any machine, jobs of packs read everything from their recipe files and need no configuration.
    PACKS = packs.by_stage(packs.read(Path("results/recipes"), sys.argv))


def made_from(job):
    """The inputs of a pack's job, or of the job that `job` finds for wildcards. File times decide nothing: outdated jobs are
    forced, and the times of inputs are ignored wherever outputs exist.
    """
    if not MAIN:
        return job.inputs

    def inputs(wildcards):
        with refusals.in_a_sentence():
            one = job(wildcards) if callable(job) else job
            forced, plain, reasons = PLAN.due(one)
        for line in reasons:
            commands.put(line, sys.stderr)
        # Ignore Snakemake's markers of killed jobs: records show which results are complete. Snakemake would force such jobs, and
        # would then not notice what is missing below them.
        of_snakemake("dag.ignore_incomplete")
        workflow.dag.ignore_incomplete = True
        if not AS_MODULE:
            # Nor does it matter what Snakemake remembers of earlier calls, which may be about other results.
            of_snakemake("dag_settings").rerun_triggers = frozenset({RerunTrigger.MTIME})
        of_snakemake("dag.forcefiles").update(forced)
        # Below a job that it runs, also by `-R`, Snakemake passes only through plain inputs.
        return one.inputs if plain else [ancient(path) for path in one.inputs]

    return inputs


def duration(pack):
    """Milliseconds that a pack is expected to train; only the process that plans needs them."""
    return round(1000 * len(pack.runs) * packs.seconds_of("train", pack.family, PLAN.recipes)) if MAIN else 0


def begin():
    """Write what jobs need when a build starts, before any job."""
    given = [] if AS_MODULE else [*settings.resources, *(name for rule in workflow.rules for name in rule.resources)]
    refusals.before_a_build(of_snakemake("executor_plugin.name"), given)
    # With a limit of job starts, each finished job makes Snakemake look for jobs once more per second, as long as others wait. The
    # default limit is lifted, and another one kept.
    limit = of_snakemake("scheduler.job_rate_limiter")
    if limit and (limit.max_jobs, limit.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None
    with refusals.in_a_sentence(
        ". Nothing can be written to results/: free some space or make the folder writable, and call again"
    ):
        PLAN.begin()
        if SHOWS:
            SHOWN.begin(sum(PACKS.values(), []), PLAN.recipes.costs, settings.nodes or settings.cores)
        if HERE:
            # Import libraries once for all jobs if that saves more time than it takes.
            many = len(PLAN.needed) > 4 * settings.cores
            several = sum(name.partition("_")[0] in STAGES for name in PLAN.needed) > 1
            if many or several:
                (forks.extend if DRAWS else forks.start)(os.environ, forks.LIBRARIES if many else forks.OF_TRAINING)


if MAIN:
    # Not `onstart:`, which Snakemake ignores in a module. An `onstart` of the importing workflow, if it precedes the module, runs
    # first.
    theirs = of_snakemake("_onstart")
    workflow._onstart = lambda log: (theirs(log), begin())


onsuccess:
    if SHOWS:
        SHOWN.succeed()


onerror:
    if SHOWS:
        SHOWN.fail()


wildcard_constraints:
    task=NAME,
    dataset=NAME,
    figure=NAME,
