# Shared by all rules, and all that only Snakemake can do. What is made, of what, and what is out of date, says compositional.planning.

import gc
import logging
import os
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path

# What is made while files are parsed and jobs are found stays: to look for garbage in it often is a seventh of the time of a dry
# run. Rarely, not never, as this can be another program's process.
gc.set_threshold(1_000_000)
# Not workflow.basedir: where this is a module of another workflow, that is the other's folder.
ROOT = Path(str(workflow.current_basedir)).parent
SOURCES = ROOT / "src"
if set(str(ROOT)) & set("{}"):
    sys.exit(f"{ROOT}: Snakemake takes braces in the path of a workflow for wildcards. Move this folder to a path without braces")
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
    """What no documented way leads to. Without it nothing could be believed, so a Snakemake that does not have it is refused."""
    found = workflow
    for part in name.split("."):
        if not hasattr(found, part):
            sys.exit(f"This Snakemake has no workflow.{name}; use one that envs/requirements.txt or the README names")
        found = getattr(found, part)
    return found


@contextmanager
def in_a_sentence(advice=""):
    """What goes wrong here is the user's to mend, and no traceback helps."""
    try:
        yield
    except (ValueError, OSError) as error:
        sys.exit(f"{error}{advice}")


# Called without --cores, use this machine's; executors that submit jobs elsewhere have --jobs instead.
settings = of_snakemake("resource_settings")
if settings.cores is None and settings.nodes is None:
    settings.cores = surroundings.cores()
    of_snakemake("register_resource")("_cores", settings.cores)

# Of a module, the configuration is what the other workflow gives it. That one's --configfile is its own.
AS_MODULE = of_snakemake("modifier.skip_configfile")
OVERLAYS = [] if AS_MODULE else of_snakemake("config_settings.configfiles")
MAIN = of_snakemake("is_main_process")
# Behind targets: what follows --configfile is taken for one more file.
OPTIONS = shlex.join(["--configfile", *map(os.path.relpath, OVERLAYS)] if OVERLAYS else [])
SHOWS = MAIN and not AS_MODULE  # another workflow shows what it likes
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
        # A pipe can't be read again.
        config_files.check(shipped, [path for path in OVERLAYS if path.is_file()])
        # Not `configfile:`, which parses for a quarter of a second, and says of each file that the command line extends it.
        given, config = config, {}
        for path in shipped:
            update_config(config, config_files.read(path))
        update_config(config, given)
        # A store in the environment goes before the one in the configuration.
        config["store"] = os.environ.get("COMPOSITIONAL_STORE") or config.get("store")
        PLAN = Plan(Configuration(config, ROOT / "config" / "schema.yaml"), sys.argv)
    PACKS = PLAN.packs
    if {"--list-target-rules", "--lt"} & {*sys.argv}:
        PACKS = {stage: [] for stage in PACKS}  # rules whose names are digests are not for people
else:
    # Jobs of packs, on whichever machine, are told all by their recipe files: they need no configuration.
    named = packs.read(Path("results/recipes"), sys.argv)
    PACKS = {stage: [pack for pack in named if pack.content["stage"] == stage] for stage in packs.STAGES}


def made_from(job):
    """The inputs of a pack's job, or of the job that `job` finds for wildcards. Their times decide nothing: what is out of date is
    forced, and below it, where Snakemake looks at no other reason, they are plain; of what is missing below what `-R` forces, too.
    """
    if not MAIN:
        return job.inputs

    def inputs(wildcards):
        with in_a_sentence():
            one = job(wildcards) if callable(job) else job
            forced, reasons = PLAN.due(one)
        for line in reasons:
            print(line, file=sys.stderr)
        # Snakemake's markers of jobs that were killed say nothing: what is whole its record says. To force such a job, as it does,
        # would hide from Snakemake what is missing below it.
        of_snakemake("dag.ignore_incomplete")
        workflow.dag.ignore_incomplete = True
        of_snakemake("dag.forcefiles").update(forced)
        by_hand = of_snakemake("dag_settings.forcerun") and one.name in PLAN.needed
        return one.inputs if forced or by_hand else [ancient(path) for path in one.inputs]

    return inputs


def resources_of(pack):
    """Of what a profile asks for by default: withheld from jobs that are told to compute on the CPU."""
    return {"gpu": 0, "gpu_model": "", "gres": ""} if pack.content["job"]["device"] == "cpu" else {}


def begin():
    """What is written when a build starts, before any job."""
    if why := provenance.without_commit():
        print(f"warning: records will name no commit, though there is {ROOT}/.git: {why}", file=sys.stderr)
    if of_snakemake("touch"):
        sys.exit("--touch changes nothing here: whether a result is out of date its record says, not its time")
    if of_snakemake("executor_plugin.name") == "slurm" and (why := failures.no_slurm()):
        sys.exit(why)
    with in_a_sentence(". Nothing can be written to results/: make room, or the folder writable, and call again"):
        PLAN.begin()
        if SHOWS:
            SHOWN.begin(
                [pack for planned in PACKS.values() for pack in planned], Path("results"), settings.nodes or settings.cores
            )
        # To import the libraries once is worth it where it saves more than that.
        if settings.nodes is None and len(PLAN.needed) > 4 * settings.cores:
            forks.start(os.environ)


if MAIN:
    # Not `onstart:`, which Snakemake passes over in a module. One that the other workflow has above the module comes first.
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
