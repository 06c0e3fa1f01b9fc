"""Finished runs: pack, unpack, check and prune them. make pack-runs FIGURES="ablation comparison", unpack-runs, check-runs, prune

Exit status: 0 success, 1 a retrained run differs, 2 the command failed, 130 it was stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import fsspec

from compositional import files
from compositional.archive import finished_runs
from compositional.archive.finished_runs import identity_of
from compositional.archive.layout import ArchiveError
from compositional.configuration.configuration import Configuration, configuration
from compositional.configuration.messages import ConfigurationError
from compositional.planning.recipes import Recipes
from compositional.planning.targets import wanted_runs
from compositional.records import surroundings
from compositional.records.entries import entries, plan_of, stores
from compositional.records.store import read, tensors_of
from compositional.runs import Run
from compositional.stages import download
from compositional.stages.shared import devices
from compositional.terminal import commands

OWN = Path("results/store")


def at_least_one(text: str) -> int:
    """A number of runs from the command line."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of runs, such as 5")
    return int(text)


def folders(known: Configuration) -> list[Path]:
    """The stores where finished runs are searched for, as by jobs."""
    return stores(os.environ.get("COMPOSITIONAL_STORE") or known.config["store"])


def runs_of(known: Configuration, figures: list[str]) -> dict[str, Run]:
    """The runs that figures need, by their plans; all runs if no figure is given."""
    recipes = Recipes(known)
    runs = wanted_runs(known, [f"results/tables/{figure}.csv" for figure in figures])
    return {plan_of(recipes.common("train", run.family) | {"lambda": run.strength, "seed": run.seed}): run for run in runs}


def found(known: Configuration, wanted: dict[str, Run]) -> dict[str, list[Path]]:
    """The intact entries of runs, by plan; several if a run was made on several devices or with several versions of the data."""
    device = known.config["device"]
    there = {plan: [path for path in entries(folders(known), plan, device) if identity_of(path)] for plan in wanted}
    return {plan: paths for plan, paths in there.items() if paths}


@contextmanager
def at(address: str) -> Iterator[tuple[Path, Callable[[str], None]]]:
    """A local path for an address, and a function that moves the file here (`get_file`) or there (`put_file`) if it is remote."""
    remote = "://" in address

    def move(way: str) -> None:
        try:
            if way == "get_file" and address.startswith(("https://", "http://")):  # fsspec would need a package of its own
                file.write_bytes(download.received(address))
            elif remote:
                system, place = fsspec.url_to_fs(address)
                getattr(system, way)(*{"get_file": (place, str(file)), "put_file": (str(file), place)}[way])
        except Exception as error:  # each kind of remote raises other exceptions
            what = "reading" if way == "get_file" else "writing"
            raise ArchiveError(f"{address}: {what} failed: {type(error).__name__}: {error}") from error

    with tempfile.TemporaryDirectory(prefix="packed-") as temporary:
        file = Path(temporary) / "runs.zip" if remote else Path(address)
        yield file, move


def pack(arguments: argparse.Namespace, known: Configuration) -> str:
    """Write the runs behind figures into one file."""
    wanted = runs_of(known, arguments.figures)
    there = found(known, wanted)
    if missing := sorted(run.path for plan, run in wanted.items() if plan not in there):
        targets = [f"results/figures/{name}.pdf" for name in arguments.figures]
        overlays = ["--configfile", *map(str, arguments.configfile)] if arguments.configfile else []
        raise ArchiveError(
            f"{len(missing)} of {len(wanted)} runs are not in the store, such as {missing[0]}. Build the figures first: "
            f"{shlex.join(['snakemake', *targets, *overlays])} (if you built them with --directory, call this in that folder)"
        )
    paths = [path for own in there.values() for path in own]
    with at(arguments.file) as (file, move):
        finished_runs.pack(file, paths, arguments.figures)
        size = file.stat().st_size / 1e6
        move("put_file")
    return f"{len(wanted)} runs are in {arguments.file} ({size:.1f} MB)"


def unpack(arguments: argparse.Namespace, known: Configuration) -> str:
    """Add the runs of a file to the store."""
    with at(arguments.file) as (file, move):
        move("get_file")
        added, there = finished_runs.unpack(file, folders(known)[0])
    said = f"every digest is right: {len(added)} runs added to {folders(known)[0]}, {len(there)} already existed"
    used, plans = runs_of(known, []), [*added, *there]
    if other := sum(plan not in used for plan in plans):
        said += (
            f"\n{other} of these {len(plans)} runs are used by no figure here, because they were made with other options, code "
            'or versions of libraries. Name the overlays that they were made with (OPTIONS="--configfile ..."), or build at '
            "their commit, in the environment of its `make env`"
        )
    return said


def same_numbers(one: Path, other: Path) -> bool:
    """Whether two entries have the same weights and curves, to the bit."""
    # Compare the weights by their digest and the curves as text, because NaN does not equal itself.
    found = [
        (place.name, files.json_bytes(whole[0]["state"] | {"seconds": 0}))
        for path in (one, other)
        if (whole := read(path)) and (place := tensors_of(path))
    ]
    return len(found) == 2 and found[0] == found[1]


def retrain(runs: list[Run], overlays: list[Path], folder: Path, mirror: str) -> None:
    """Train runs in an empty folder from raw data, with an empty store.

    Raises:
        ArchiveError: the build failed.
    """
    (folder / "results").mkdir()
    if (raw := Path("results/raw").resolve()).is_dir():
        (folder / "results" / "raw").symlink_to(raw)
    environment = os.environ | {"COMPOSITIONAL_STORE": str(folder / OWN), surroundings.MIRROR: mirror}
    targets = [f"results/runs/{run.path}/run.json" for run in runs]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder), *targets]
    command += ["--configfile", *map(str, overlays)] if overlays else []
    try:
        failed = commands.run(command, environment)
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if failed:
        raise ArchiveError(f"the runs could not be trained again. The paths above are in {folder}, which is kept")


def check(arguments: argparse.Namespace, known: Configuration) -> str:
    """Train a random sample of the runs behind figures again and compare it with the store."""
    wanted = runs_of(known, arguments.figures)
    device = "cuda" if known.config["device"] != "cpu" and devices.visible() else "cpu"
    own = {plan: [path for path in paths if path.name.startswith(device)] for plan, paths in found(known, wanted).items()}
    there = {plan: paths[0] for plan, paths in own.items() if paths}
    if not there:
        raise ArchiveError(
            f"none of these runs is in the store, trained on this machine's {device}: build the figures, or unpack a file of runs"
        )
    chosen = random.Random(arguments.seed).sample(sorted(there), min(arguments.sample, len(there)))
    print(f"Training {len(chosen)} of {len(there)} runs again, in a temporary folder", flush=True)
    wrong = 0
    folder = Path(tempfile.mkdtemp(prefix="retrained-"))
    mirror = surroundings.mirror(os.environ, known.config["mirror"])
    retrain([wanted[plan] for plan in chosen], [path.resolve() for path in arguments.configfile], folder, mirror)
    for plan in chosen:
        again = folder / OWN / "entries" / plan / there[plan].name
        equal = again.exists() and same_numbers(there[plan], again)
        wrong += not equal
        print(f"{wanted[plan].path}: {'identical' if equal else 'DIFFERS' if again.exists() else 'DIFFERS (in its data)'}")
    if wrong:
        sys.exit(f"{wrong} of {len(chosen)} retrained runs differ from the store. They are in {folder}/results/runs")
    shutil.rmtree(folder)
    return f"{len(chosen)} of {len(there)} runs were trained again and have the same bytes"


def abandoned(store: Path, used: set[str]) -> dict[Path, str]:
    """What no configured run resumes from, and what killed processes left; each with a description. With the build's own store,
    also what they left among the other results, such as a split that was half written.

    Args:
        used: the plans of the configured runs.
    """
    yesterday = time.time() - 24 * 60 * 60  # running builds have hidden files, too
    found = {
        path: "an unfinished run" for path in sorted(store.glob("checkpoints/[!.]*")) if path.name.partition("-")[0] not in used
    }
    ours = rf"{re.escape(finished_runs.UNPACKING)}\w+|{files.TEMPORARY}"
    place = store.parent if store == OWN else store
    hidden = []
    # Not rglob, which fails if a running build meanwhile removes a folder of its own.
    for folder, folders_in, files_in in os.walk(place):
        for path in (Path(folder, name) for name in (*folders_in, *files_in) if re.fullmatch(ours, name)):
            with suppress(FileNotFoundError):
                if path.lstat().st_mtime < yesterday:
                    hidden.append(path)
    return found | dict.fromkeys(sorted(hidden), "left by a process that was killed")


def prune(arguments: argparse.Namespace, known: Configuration) -> str:
    """Remove what no configured run uses, at laptop scale, on a GPU, at paper scale, or with the given overlays."""
    if not arguments.store.is_dir():
        raise ArchiveError(f"{arguments.store}: there is no such folder; --store names the folder that has entries/")
    paper = [ROOT / "config" / "paper.yaml", *sorted((ROOT / "config" / "paper").glob("*.yaml"))]
    shipped = [configuration(), configuration(ROOT / "config" / "gpu.yaml"), configuration(*paper)]
    used = set().union(*(runs_of(one, []) for one in [known, *shipped]))
    # Files are listed first. Reading all entries takes minutes, and what other builds finish meanwhile must not be listed.
    files_there = {path for path in arguments.store.glob("entries/**/[!.]*") if path.is_file()}
    # What this user may not read belongs to others. It is not known which files next to it do, too.
    closed = {path.parent for path in files_there if not os.access(path, os.R_OK)}
    files_there = {path for path in files_there if path.parent not in closed}
    every = {path: identity_of(path) for path in entries([arguments.store]) if path.parent not in closed}
    used_by = {path for path, identity in every.items() if identity and path.parent.name in used}
    held = {path: {path, tensors_of(path)} for path in every}
    # Unused entries, and files that belong to no entry.
    unused = [path for path in every if path not in used_by]
    unused += sorted(files_there.difference(every, *held.values()))
    for path in unused:
        identity = every.get(path)
        family = (
            [identity["family"][key] for key in ("task", "model", "regularizer")] if identity else ["damaged or of an old format"]
        )
        print(f"{path}: {'/'.join(family)}")
    gone = files_there.difference(*(held[path] for path in used_by))
    left = abandoned(arguments.store, used)
    for path, description in left.items():
        print(f"{path}: {description}")
    within = [path for top in left for path in (top, *top.rglob("*"))]
    size = sum(path.lstat().st_size for path in [*gone, *within]) / 1e6
    print(
        f"{arguments.store}: {len(unused)} entries and {len(left)} other files are used by no configured run ({size:.1f} MB), "
        f"{len(used_by)} runs are kept{', and what you may not read' if closed else ''}"
    )
    if (unused or left) and not arguments.yes and not commands.agreed("Remove them?"):
        return "Nothing was removed"
    # Other builds may have finished runs since then, to which some of these files belong.
    came = [path for path in entries([arguments.store]) if not every.get(path) and identity_of(path)]
    refused = []
    for path in sorted([*gone.difference(came, map(tensors_of, came)), *left]):
        try:
            with suppress(FileNotFoundError):  # another call removed it
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        except OSError as error:
            refused.append(error)
    if refused:
        raise ArchiveError(f"{len(refused)} files or folders could not be removed, all others were. The first one: {refused[0]}")
    return f"{len(unused) + len(left)} removed"


def main() -> int:
    """Run one of the four commands."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    named_commands = parser.add_subparsers(required=True)
    figures = {"nargs": "+", "required": True, "help": "figures whose runs are meant"}
    options: dict[Any, dict[str, dict[str, Any]]] = {
        pack: {"file": {"help": "file or address to write"}, "--figures": figures},
        unpack: {"file": {"help": "file or address to read"}},
        check: {
            "--figures": figures,
            "--sample": {"type": at_least_one, "default": 5, "help": "number of runs (default: 5)"},
            "--seed": {"type": int, "help": "of the random choice, to repeat it"},
        },
        prune: {
            "--store": {"type": Path, "default": OWN, "help": "folder to clean (default: results/store)"},
            "--yes": {"action": "store_true", "help": "do not ask before anything is removed"},
        },
    }
    for function, named in options.items():
        command = named_commands.add_parser(function.__name__, help=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument("--configfile", type=Path, nargs="+", default=[], help="overlays, as for Snakemake")
        for name, about in named.items():
            command.add_argument(name, **about)
    arguments = parser.parse_args()
    try:
        print(arguments.function(arguments, configuration(*arguments.configfile)))
    except (ArchiveError, ConfigurationError, OSError, ImportError) as error:  # some remotes need a package that may be missing
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped. The same call begins again.", file=sys.stderr)
        return commands.STOPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
