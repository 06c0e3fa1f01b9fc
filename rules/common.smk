# Shared by all rules: the checked configuration, the packs, and what each job depends on.

import os
import shlex
import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
SOURCES = ROOT / "src"
if set(str(ROOT)) & set("{}"):
    sys.exit(f"{ROOT}: Snakemake takes braces in the path of a workflow for wildcards. Move this folder to a path without braces")
# Scripts import the package from here, installed or not, on this machine and on compute nodes.
sys.path.insert(0, str(SOURCES))
os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [str(SOURCES), os.getenv("PYTHONPATH")])))

from compositional.archive import bundle as archive
from compositional.configuration import files as config_files
from compositional import files
from compositional.records import integrity
from compositional.planning import plan
from compositional.stages.shared import progress
from compositional.records import provenance
from compositional.configuration.configuration import Configuration
from compositional.configuration.configuration import ConfigurationError
from compositional.plugins import declarations
from compositional.plugins import module_path
from compositional.records.fingerprint import fingerprint
from compositional.records.fingerprint import of_script
from compositional.runs import NAME
from compositional.runs import figure_runs

# The default and the studies; not what an editor hides there while a file is open.
CONFIG_FILES = [ROOT / "config" / "config.yaml", *sorted((ROOT / "config" / "studies").glob("[!.]*.y*ml"))]
try:
    # Of overlays Snakemake has read those that are no YAML files: JSON, or a pipe.
    overlays = [path for path in workflow.config_settings.configfiles if path.suffix in (".yaml", ".yml")]
    config_files.check(CONFIG_FILES, overlays)
except (ConfigurationError, OSError) as error:
    sys.exit(str(error))
for path in CONFIG_FILES:

    configfile: path


# Called without --cores, use this machine's; executors that submit jobs elsewhere have --jobs instead.
settings = workflow.resource_settings
if settings.cores is None and settings.nodes is None:
    settings.cores = len(os.sched_getaffinity(0))
    workflow.register_resource("_cores", settings.cores)


def numerics_of(family):
    """Fingerprint of the code that determines a run's numbers, without the workflow around it."""
    return fingerprint(*map(module_path, ("training.loop", "evaluation.learning_curves", "stages.shared.devices", *CONFIGURATION.modules(family))))


# Options with which Snakemake builds nothing.
ONLY_LOOK = (
    *("dryrun", "touch", "unlock", "lint", "report", "archive", "summary", "detailed_summary", "print_compilation"),
    *("dag", "rulegraph", "filegraph", "d3dag", "list_rules", "list_target_rules", "list_untracked", "list_conda_envs"),
    *("list_changes", "list_input_changes", "list_params_changes", "cleanup_metadata", "delete_all_output", "delete_temp_output"),
    *("containerize", "export_cwl", "generate_unit_tests", "conda_cleanup_envs", "conda_create_envs_only"),
    *("cleanup_shadow", "container_cleanup_images"),
)


def call():
    """What Snakemake was called with, as it reads its command line and profiles itself."""
    from snakemake.cli import parse_args

    return parse_args(sys.argv[1:])[1]


try:
    CONFIGURATION = Configuration(config, ROOT / "config" / "schema.yaml")
    FIGURES = CONFIGURATION.figures
    # Jobs, also on other machines, read the plan that the main process made; another call's packs may be in it, too.
    planned = plan.read(Path("results/plan.json"))
    if not workflow.is_main_process:
        PACKS = [pack for pack in planned if CONFIGURATION.knows(pack.runs[0])]
    else:
        called = call()
        wanted = plan.wanted_runs(CONFIGURATION, "results", called.targets)
        only_look = called.executor == "dryrun" or any(getattr(called, name, None) for name in ONLY_LOOK)
        only_look = only_look and not getattr(called, "report_after_run", False)
        # Another call builds here (or was killed); Snakemake refuses this one if both make the same files.
        others = not called.nolock and any(Path(".snakemake/locks").glob("*.lock"))
        # What was damaged after it was made is made again, with all that comes of it. A rule, the archive and the report ask for
        # figures that they do not name.
        targets = called.targets or ["all"]
        whole = any(len(Path(target.removeprefix("results/")).parts) < 2 for target in targets)
        asked = set(FIGURES) if whole else FIGURES.keys() & {Path(target).name.partition(".")[0] for target in targets}
        tasks = {run.task for run in wanted} | {grid["task"] for name in asked for grid in FIGURES[name]["grids"]}
        tasks |= {Path(target).parts[2].partition(".")[0] for target in targets if target.startswith("results/splits/")}
        tasks |= {source for task in tasks for source in CONFIGURATION.built_from(task)[0]}
        records = integrity.records(Path("results"), tasks, wanted, asked)
        made_from = {name: figure_runs(figure) for name, figure in FIGURES.items()}
        for path in integrity.repair(Path("results"), records, made_from, only_look=only_look or others):
            print(f"damaged, made again: {path}", file=sys.stderr)
        PACKS, pending = plan.make(planned, "results", wanted, CONFIGURATION, numerics_of, others)
        if not only_look and not others and {"params", "code"} <= set(map(str, called.rerun_triggers)):
            # Not the records alone: Snakemake does not miss what it made something else of.
            expected = plan.today(Path("results"), tasks, wanted, asked, CONFIGURATION, numerics_of)
            for record in plan.outdated(expected, Path(".snakemake/metadata")):
                integrity.discard(Path("results"), record, {name: made_from[name] for name in asked})
except (ConfigurationError, ValueError, OSError) as error:
    sys.exit(str(error))


# Not when the files are read: Snakemake locks later, and of two calls that begin together each would take the plan for its own.
# One that builds nothing, or is refused, does not come here.
onstart:
    if not only_look:
        now = plan.read(Path("results/plan.json"))
        beside = now if others or now != planned else []
        try:
            plan.write(Path("results/plan.json"), PACKS, beside)
            if not beside:
                steps = {pack: CONFIGURATION.settings(*pack.family[:2])["steps"] for pack in pending}
                progress.announce(Path("results/progress"), plan.work(steps))
        except OSError as error:
            sys.exit(f"{error}. Nothing can be written to results/: make room, or the folder writable, and call again")


# What a profile asks for by default, withheld from jobs that are told to compute on the CPU.
DEVICE_RESOURCES = {"gpu": 0, "gpu_model": "", "gres": ""} if config["device"] == "cpu" else {}


wildcard_constraints:
    task=NAME,
    dataset=NAME,
    figure=NAME,


def code_of(script, *modules):
    """What a job's code is, for `stages.job.logged`: a script, the modules that it loads by name, their fingerprint."""
    return {"script": script, "modules": list(modules), "fingerprint": of_script(script, modules)}


def content_of(wildcards):
    """What a download must be: its published checksum; where there is none, what the code that fetches it gives."""
    entry = declarations(f"datasets.{wildcards.dataset}")["FILES"][wildcards.file]
    return entry.get("sha256") or entry.get("git_blob") or of_script("download", [f"datasets.{wildcards.dataset}"])


def work_of(pack):
    """Examples that the runs of a pack see in training: a rough measure of how long it takes."""
    settings = CONFIGURATION.settings(*pack.family[:2])
    return len(pack.runs) * settings["steps"] * settings["batch_size"]


def raw_files_of(task):
    """Downloads that a task is made from; none for generated and bundled datasets."""
    return [f"results/raw/{CONFIGURATION.dataset(task)}/{name}" for name in CONFIGURATION.raw_files(task)]


def raw_files(wildcards):
    """As an input function."""
    return raw_files_of(wildcards.task)


def figure_sources(wildcards):
    """The files of every run that a figure's table is made from, or its tasks' folders if it shows their examples."""
    figure = FIGURES[wildcards.figure]
    if figure["sources"] == ["split"]:
        return [f"results/splits/{grid['task']}" for grid in figure["grids"]]
    return [f"results/runs/{run.path}/{name}" for name in figure["sources"] for run in figure_runs(figure)]


def figure_records(wildcards):
    """The records of the runs that a figure's table is made from; none if it shows tasks' examples."""
    return [f"results/runs/{run.path}/run.json" for run in figure_runs(FIGURES[wildcards.figure])]


# Of the figures that the archive is made of.
ARCHIVED = CONFIGURATION.archived
ARCHIVED_RUNS = sorted({run for name in ARCHIVED for run in figure_runs(FIGURES[name])})
ARCHIVED_TASKS = sorted({grid["task"] for name in ARCHIVED for grid in FIGURES[name]["grids"]})


def digest_of_sources():
    """Changes with the commit and with every file that an archive would hold."""
    try:
        return files.digest(archive.sources())
    except archive.ArchiveError:
        return "unknown"


def archived_runs(*names):
    """These files of every run."""
    return [f"results/runs/{run.path}/{name}" for run in ARCHIVED_RUNS for name in names]


def archived_records():
    """The records of all that is archived."""
    of_runs = {
        f"results/runs/{run.path}/{record}"
        for name in ARCHIVED
        for record, made in provenance.RUN_RECORDS.items()
        if record == "run.json" or not set(made).isdisjoint(FIGURES[name]["sources"])
        for run in figure_runs(FIGURES[name])
    }
    return (
        [f"results/splits/{task}.provenance.json" for task in ARCHIVED_TASKS]
        + sorted(of_runs)
        + [f"results/{kind}/{name}.provenance.json" for kind in ("tables", "figures") for name in ARCHIVED]
    )


def built_besides():
    """Figures and runs that the report shows because they are there, not because it asks for them: a change makes a new page."""
    others = [name for name in FIGURES if name not in ARCHIVED]
    paths = [f"results/figures/{name}.provenance.json" for name in others]
    paths += [
        f"results/runs/{run.path}/run.json" for name in others for run in figure_runs(FIGURES[name]) if run not in ARCHIVED_RUNS
    ]
    return sorted(path for path in set(paths) if os.path.exists(path))
