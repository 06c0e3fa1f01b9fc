"""Finished runs: pack, unpack, check and prune them. make pack-runs FIGURES="ablation comparison", unpack-runs, check-runs, prune

Exit status: 0 done, 1 a retrained run differs, 2 it could not be done.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import fsspec

from compositional import files
from compositional.archive import finished_runs
from compositional.archive.bundle import ArchiveError
from compositional.configuration.configuration import Configuration
from compositional.configuration.messages import ConfigurationError
from compositional.notebook.training import configuration
from compositional.planning.recipes import Recipes
from compositional.planning.targets import wanted_runs
from compositional.records.store import entry_of, read
from compositional.runs import Run

OWN = Path("results/store")


def stores(known: Configuration) -> list[Path]:
    """Where finished runs are looked for, as jobs do."""
    shared = os.environ.get("COMPOSITIONAL_STORE") or known.config["store"]
    return [Path(shared).expanduser(), OWN] if shared else [OWN]


def runs_of(known: Configuration, figures: list[str]) -> dict[str, Run]:
    """The runs that figures need, by what configuration and code say of them; without figures: of all."""
    recipes = Recipes(known)
    runs = wanted_runs(known, [f"results/tables/{figure}.csv" for figure in figures])
    identities = {run: recipes.common("train", run.family) | {"lambda": run.strength, "seed": run.seed} for run in runs}
    return {finished_runs.planned(identity): run for run, identity in identities.items()}


def pack(arguments: argparse.Namespace, known: Configuration) -> str:
    """Write the runs behind figures into one file."""
    wanted = runs_of(known, arguments.figures)
    found = finished_runs.entries_of(stores(known), wanted)
    if missing := sorted(run.path for digest, run in wanted.items() if digest not in found):
        raise ArchiveError(
            f"{len(missing)} of {len(wanted)} runs are not in the store, such as {missing[0]}. Build the figures first: "
            f"snakemake {' '.join(f'results/figures/{name}.pdf' for name in arguments.figures)}"
        )
    paths = [path for own in found.values() for path in own]
    with tempfile.TemporaryDirectory(prefix="packed-") as temporary:
        remote, place = fsspec.url_to_fs(arguments.file)
        file = Path(temporary) / "runs.zip" if "://" in arguments.file else Path(arguments.file)
        finished_runs.pack(file, paths, arguments.figures)
        size = file.stat().st_size / 1e6
        if "://" in arguments.file:
            remote.put_file(str(file), place)
    return f"{len(wanted)} runs are in {arguments.file} ({size:.1f} MB)"


def unpack(arguments: argparse.Namespace, known: Configuration) -> str:
    """Add the runs of a file to the store."""
    with tempfile.TemporaryDirectory(prefix="packed-") as temporary:
        remote, place = fsspec.url_to_fs(arguments.file)
        file = Path(temporary) / "runs.zip" if "://" in arguments.file else Path(arguments.file)
        if "://" in arguments.file:
            remote.get_file(place, str(file))
        added, there = finished_runs.unpack(file, stores(known)[0])
    return f"every digest is right: {added} runs added to {stores(known)[0]}, {there} were there already"


def same_numbers(one: Path, other: Path) -> bool:
    """Whether two entries have the same weights and curves, to the bit."""
    (left, weights), (right, others) = ((found[0]["state"], found[1]) for path in (one, other) if (found := read(path)))
    # As bytes and as text: numbers that are none are equal, too.
    equal = weights["weights"].numpy().tobytes() == others["weights"].numpy().tobytes()
    return equal and files.json_bytes(left | {"seconds": 0}) == files.json_bytes(right | {"seconds": 0})


def retrain(runs: list[Run], overlays: list[Path], folder: Path) -> None:
    """Train runs in an empty folder from raw data, with an empty store.

    Raises:
        ArchiveError: the build failed.
    """
    (folder / "results").mkdir()
    if (raw := Path("results/raw").resolve()).is_dir():
        (folder / "results" / "raw").symlink_to(raw)
    environment = os.environ | {"COMPOSITIONAL_STORE": str(folder / OWN)}
    targets = [f"results/runs/{run.path}/run.json" for run in runs]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder), *targets]
    command += ["--configfile", *map(str, overlays)] if overlays else []
    done = subprocess.run([*command, "--quiet", "reason"], env=environment, check=False)
    if done.returncode:
        raise ArchiveError("the runs could not be trained again, see above")


def check(arguments: argparse.Namespace, known: Configuration) -> str:
    """Train a random sample of the runs behind figures again and compare it with the store."""
    wanted = runs_of(known, arguments.figures)
    found = {digest: paths[0] for digest, paths in finished_runs.entries_of(stores(known), wanted).items()}
    if not found:
        raise ArchiveError("none of these runs is in the store: build the figures, or unpack a file of runs, first")
    chosen = random.Random(arguments.seed).sample(sorted(found), min(arguments.sample, len(found)))
    wrong = []
    with tempfile.TemporaryDirectory(prefix="retrained-") as temporary:
        retrain([wanted[digest] for digest in chosen], [path.resolve() for path in arguments.configfile], Path(temporary))
        for digest in chosen:
            again = entry_of(Path(temporary) / OWN, found[digest].stem)
            verdict = "identical" if again.exists() and same_numbers(found[digest], again) else "DIFFERS"
            verdict = verdict if again.exists() else "DIFFERS (other data or another kind of device)"
            wrong += [digest] if verdict != "identical" else []
            print(f"{wanted[digest].path}: {verdict}")
    if wrong:
        sys.exit(f"{len(wrong)} of {len(chosen)} runs that were trained again have other bytes than those in the store")
    return f"{len(chosen)} of {len(found)} runs were trained again: the same bytes"


def prune(arguments: argparse.Namespace, known: Configuration) -> str:
    """Remove entries that no configured run uses: at laptop scale, at paper scale, or with the overlays that are given."""
    paper = [ROOT / "config" / "paper.yaml", *sorted((ROOT / "config" / "paper").glob("*.yaml"))]
    used = runs_of(known, []) | runs_of(configuration(), []) | runs_of(configuration(*paper), [])
    identities = {path: finished_runs.identity_of(path) for path in finished_runs.entries([arguments.store])}
    unknown = sum(identity is None for identity in identities.values())
    unused = [path for path, identity in identities.items() if identity and finished_runs.planned(identity) not in used]
    size = sum(path.stat().st_size for path in unused) / 1e6
    kept = len(identities) - len(unused)
    about = f", {unknown} of them damaged or older than this command" if unknown else ""
    for path in unused:
        family = (finished_runs.identity_of(path) or {})["family"]
        print(f"{path}: {'/'.join(family[key] for key in ('task', 'model', 'regularizer'))}")
    print(f"{arguments.store}: {len(unused)} runs are used by no configured run ({size:.1f} MB), {kept} stay{about}")
    if unused and not arguments.yes:
        try:
            agreed = input("Remove them? [y/N] ").strip().lower() in ("y", "yes")
        except EOFError:
            agreed = False
        if not agreed:
            return "Nothing was removed"
    for path in unused:
        path.unlink(missing_ok=True)
    return f"{len(unused)} runs removed"


def main() -> int:
    """Do one of the four."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    options: dict[Any, dict[str, dict[str, Any]]] = {
        pack: {"file": {}, "--figures": {"nargs": "+", "required": True}},
        unpack: {"file": {}},
        check: {"--figures": {"nargs": "+", "required": True}, "--sample": {"type": int, "default": 5}, "--seed": {"type": int}},
        prune: {"--store": {"type": Path, "default": OWN}, "--yes": {"action": "store_true"}},
    }
    for function, named in options.items():
        command = commands.add_parser(function.__name__, help=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument("--configfile", type=Path, nargs="+", default=[], help="overlays, as Snakemake takes them")
        for name, about in named.items():
            command.add_argument(name, **about)
    arguments = parser.parse_args()
    try:
        print(arguments.function(arguments, configuration(*arguments.configfile)))
    except (ArchiveError, ConfigurationError, OSError, ImportError) as error:  # a remote may need a package of its own
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
