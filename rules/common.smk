# Shared by all rules: everything that needs Snakemake itself. compositional.planning decides what is made from what, and what is
# out of date.

import gc
import logging
import os
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path

# Objects that are created while parsing files and finding jobs stay in memory. Frequent garbage collection takes a seventh of the
# time of a dry run. It is made rare but not turned off, because this may be the process of another program.
gc.set_threshold(1_000_000)
# Not workflow.basedir: if this is a module of another workflow, that is the folder of the other workflow.
ROOT = Path(str(workflow.current_basedir)).parent
SOURCES = ROOT / "src"
if set(str(ROOT)) & set("{}"):
    sys.exit(f"{ROOT}: Snakemake reads braces in the path of a workflow as wildcards. Move this folder to a path without braces")
sys.path.insert(0, str(SOURCES))

from snakemake.utils import update_config

from compositional.configuration import files as config_files
from compositional.configuration.configuration import Configuration
from compositional.planning import packs
from compositional.planning.plan import Plan
from compositional.planning.recipes import content_of
from compositional.records import provenance
from compositional.records import surroundings
from compositional.runs import NAME
from compositional.stages.shared import forks
from compositional.terminal import display
from compositional.terminal import failures
from compositional.terminal import missing

surroundings.settle(os.environ, ROOT)


def of_snakemake(name):
    """An undocumented part of Snakemake. The workflow would be unreliable without it, so it refuses a Snakemake that lacks it."""
    found = workflow
    for part in name.split("."):
        if not hasattr(found, part):
            sys.exit(f"This Snakemake has no workflow.{name}; use a version from envs/requirements.txt or the README")
        found = getattr(found, part)
    return found


@contextmanager
def in_a_sentence(advice=""):
    """Report an error that the user can fix in one sentence, without a traceback."""
    try:
        yield
    except (ValueError, OSError) as error:
        sys.exit(f"{error}{advice}")


# Without --cores, use all cores of this machine. Executors that submit jobs elsewhere use --jobs instead.
settings = of_snakemake("resource_settings")
if settings.cores is None and settings.nodes is None:
    settings.cores = surroundings.cores()
    of_snakemake("register_resource")("_cores", settings.cores)

# A module gets its configuration from the workflow that imports it. The --configfile belongs to that workflow.
AS_MODULE = of_snakemake("modifier.skip_configfile")
OVERLAYS = [] if AS_MODULE else of_snakemake("config_settings.configfiles")
MAIN = of_snakemake("is_main_process")
# These options come last in a command, because any word after --configfile is read as another file.
OPTIONS = shlex.join(["--configfile", *map(os.path.relpath, OVERLAYS)] if OVERLAYS else [])
SHOWS = MAIN and not AS_MODULE  # an importing workflow controls its own output
if SHOWS:
    SHOWN = display.Display(
        logging.getLogger("snakemake.logging"),
        of_snakemake("output_settings"),
        lambda target: missing.nearest(target, PLAN.recipes.figures, PLAN.recipes.configuration.names("tasks")),
        OPTIONS,
    )
if MAIN:
    with in_a_sentence():
        shipped = [] if of_snakemake("config_settings.replace_workflow_config") else config_files.shipped(ROOT / "config")
        # Only regular files are checked: a pipe cannot be read twice.
        config_files.check(shipped, [path for path in OVERLAYS if path.is_file()])
        # Not `configfile:`, which takes a quarter of a second to parse, and reports for each file that the command line extends
        # it.
        given, config = config, {}
        for path in shipped:
            update_config(config, config_files.read(path))
        update_config(config, given)
        # A store in the environment has priority over the one in the configuration.
        config["store"] = os.environ.get("COMPOSITIONAL_STORE") or config.get("store")
        PLAN = Plan(Configuration(config, ROOT / "config" / "schema.yaml"), sys.argv)
    PACKS = PLAN.packs
    if {"--list-target-rules", "--lt"} & {*sys.argv}:
        PACKS = {stage: [] for stage in PACKS}  # hide rules whose names are digests, which users never type
else:
    # On any machine, jobs of packs read everything from their recipe files and need no configuration.
    named = packs.read(Path("results/recipes"), sys.argv)
    PACKS = {stage: [pack for pack in named if pack.content["stage"] == stage] for stage in packs.STAGES}


def made_from(job):
    """The inputs of a pack's job, or of the job that `job` finds for wildcards. File times decide nothing: they are ignored for
    jobs that are up to date, and outdated jobs are forced. Jobs that are forced, also by `-R`, get plain inputs, because
    otherwise Snakemake would not make the missing files below them.
    """
    if not MAIN:
        return job.inputs

    def inputs(wildcards):
        with in_a_sentence():
            one = job(wildcards) if callable(job) else job
            forced, reasons = PLAN.due(one)
        for line in reasons:
            print(line, file=sys.stderr)
        # Ignore Snakemake's markers of killed jobs: records show which results are complete. Snakemake would force such jobs, and
        # would then not notice what is missing below them.
        of_snakemake("dag.ignore_incomplete")
        workflow.dag.ignore_incomplete = True
        of_snakemake("dag.forcefiles").update(forced)
        by_hand = of_snakemake("dag_settings.forcerun") and one.name in PLAN.needed
        return one.inputs if forced or by_hand else [ancient(path) for path in one.inputs]

    return inputs


def resources_of(pack):
    """Resources of a pack. A profile's requests for a GPU are withheld from jobs that compute on the CPU."""
    return {"gpu": 0, "gpu_model": "", "gres": ""} if pack.content["job"]["device"] == "cpu" else {}


def begin():
    """Write what jobs need when a build starts, before any job."""
    if why := provenance.without_commit():
        print(f"warning: records will name no commit although {ROOT}/.git exists: {why}", file=sys.stderr)
    if of_snakemake("touch"):
        sys.exit("--touch changes nothing here: a result's record decides whether it is out of date, not its modification time")
    if of_snakemake("executor_plugin.name") == "slurm" and (why := failures.no_slurm()):
        sys.exit(why)
    with in_a_sentence(". Nothing can be written to results/: free some space or make the folder writable, and call again"):
        PLAN.begin()
        if SHOWS:
            SHOWN.begin(
                [pack for planned in PACKS.values() for pack in planned], Path("results"), settings.nodes or settings.cores
            )
        # Import the libraries once for all jobs if that saves more time than it takes.
        if settings.nodes is None and len(PLAN.needed) > 4 * settings.cores:
            forks.start(os.environ)


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
