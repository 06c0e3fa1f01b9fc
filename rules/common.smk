# Shared by all rules, and all that only Snakemake can do. What is made, of what, and what is out of date, says compositional.planning.

import gc
import logging
import os
import shlex
import sys
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

from compositional import files
from compositional.configuration import files as config_files
from compositional.configuration.configuration import Configuration
from compositional.configuration.messages import ConfigurationError
from compositional.planning import packs
from compositional.planning import targets
from compositional.planning.archived import Archived
from compositional.planning.recipes import content_of
from compositional.planning.recipes import Recipes
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


CONFIG_FILES = config_files.shipped(ROOT / "config")
# Of a module, the configuration is what the other workflow gives it. That one's --configfile is its own.
AS_MODULE = of_snakemake("modifier.skip_configfile")
OVERLAYS = [] if AS_MODULE else of_snakemake("config_settings.configfiles")
# Jobs of packs, on whichever machine, are told all by their recipe files: they need no configuration.
MAIN = of_snakemake("is_main_process")
SHOWS = MAIN and not AS_MODULE  # another workflow shows what it likes
if MAIN:
    try:
        # A pipe can't be read again.
        config_files.check(CONFIG_FILES, [path for path in OVERLAYS if path.is_file()])
    except (ConfigurationError, OSError) as error:
        sys.exit(str(error))
# Behind targets: what follows --configfile is taken for one more file.
OPTIONS = shlex.join(["--configfile", *map(os.path.relpath, OVERLAYS)] if OVERLAYS else [])
if SHOWS:
    SHOWN = display.Display(
        logging.getLogger("snakemake.logging"),
        of_snakemake("output_settings"),
        lambda target: missing.nearest(target, RECIPES.figures, RECIPES.configuration.names("tasks")),
        OPTIONS,
    )
if AS_MODULE:
    given, config = config, {}
    for path in CONFIG_FILES:
        update_config(config, config_files.read(path))
    update_config(config, given)
else:
    for path in CONFIG_FILES:

        configfile: path


# Called without --cores, use this machine's; executors that submit jobs elsewhere have --jobs instead.
settings = of_snakemake("resource_settings")
if settings.cores is None and settings.nodes is None:
    settings.cores = surroundings.cores()
    of_snakemake("register_resource")("_cores", settings.cores)

# A store in the environment goes before the one in the configuration.
config["store"] = os.environ.get("COMPOSITIONAL_STORE") or config["store"]

if MAIN:
    try:
        RECIPES = Recipes(Configuration(config, ROOT / "config" / "schema.yaml"))
        wanted = targets.wanted_runs(RECIPES.configuration, targets.targets(sys.argv))
        WANTED = {stage: packs.needed(stage, wanted, RECIPES.figures) for stage in packs.STAGES}
        PACKS = {stage: packs.plan(stage, WANTED[stage], RECIPES) for stage in packs.STAGES}
        if {"--list-target-rules", "--lt"} & {*sys.argv}:
            PACKS = {stage: [] for stage in packs.STAGES}  # rules whose names are digests are not for people
        REASONS = {stage: packs.reasons(stage, WANTED[stage], RECIPES) for stage in packs.STAGES}
        ARCHIVED = Archived(RECIPES)
    except (ConfigurationError, ValueError, OSError) as error:
        sys.exit(str(error))
else:
    named = packs.read(Path("results/recipes"), sys.argv)
    PACKS = {stage: [pack for pack in named if pack.content["stage"] == stage] for stage in packs.STAGES}
JOBS = {}  # by the names of their recipe files, as Snakemake asks for them
NEEDED = set()  # of these, what is missing or out of date
SAID = set()


def made_from(name, content, inputs, outputs, outdated, reasons):
    """A job's inputs. Their times decide nothing: what is out of date is forced, and below it, where Snakemake looks at no other
    reason, they are plain: of what is missing below what `-R` forces, too."""
    JOBS[name] = content
    # Snakemake's markers of jobs that were killed say nothing: what is whole its record says. To force such a job, as it does, would
    # hide from Snakemake what is missing below it.
    of_snakemake("dag.ignore_incomplete")
    workflow.dag.ignore_incomplete = True
    by_hand = of_snakemake("dag_settings.forcerun")
    missing = not all(map(os.path.exists, outputs))
    if outdated or missing:
        NEEDED.add(name)
    if outdated:
        of_snakemake("dag.forcefiles").update(outputs)
        for line in [line for line in reasons if line not in SAID]:
            SAID.add(line)
            print(line, file=sys.stderr)
    elif not by_hand or not missing:
        return [ancient(path) for path in inputs]
    return inputs


def of_pack(pack):
    """The inputs of a pack's job. It runs if a run that is asked for is out of date."""
    if not MAIN:
        return pack.inputs
    stage = pack.content["stage"]

    def inputs(wildcards):
        outdated = any(
            RECIPES.outdated(record) is not None for run, record in zip(pack.runs, pack.records) if run in WANTED[stage]
        )
        records = [f"results/{record}" for record in pack.records]
        return made_from(pack.name, pack.content, pack.inputs, records, outdated, REASONS[stage].get(pack.family, []))

    return inputs


def of_one(job, outdated):
    """The inputs of the job that makes one result; job: from its wildcards, outdated: why it is (None: it is not)."""

    def inputs(wildcards):
        one = job(wildcards)
        why = outdated(one)
        reasons = [f"made again: {one.title}: {why}"] if why else []
        if why:
            of_snakemake("dag.forcefiles").update(RECIPES.altered(one))
        return made_from(one.name, one.content, one.inputs, [f"results/{one.record}"], why is not None, reasons)

    return inputs


def resources_of(pack):
    """Of what a profile asks for by default: withheld from jobs that are told to compute on the CPU."""
    return {"gpu": 0, "gpu_model": "", "gres": ""} if pack.content["job"]["device"] == "cpu" else {}


def begin():
    """What is written when a build starts, before any job."""
    if MAIN:
        if why := provenance.without_commit():
            print(f"warning: records will name no commit, though there is {ROOT}/.git: {why}", file=sys.stderr)
        if of_snakemake("touch"):
            sys.exit("--touch changes nothing here: whether a result is out of date its record says, not its time")
        if of_snakemake("executor_plugin.name") == "slurm" and (why := failures.no_slurm()):
            sys.exit(why)
        try:
            for name, content in JOBS.items():
                if not os.path.exists(f"results/recipes/{name}.json"):
                    files.write_json(Path(f"results/recipes/{name}.json"), content)
            if SHOWS:
                every = [pack for stage in packs.STAGES for pack in PACKS[stage]]
                SHOWN.begin(every, Path("results"), settings.nodes or settings.cores)
            # To import the libraries once is worth it where it saves more than that.
            if settings.nodes is None and len(NEEDED) > 4 * settings.cores:
                forks.start(os.environ)
        except OSError as error:
            sys.exit(f"{error}. Nothing can be written to results/: make room, or the folder writable, and call again")


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
