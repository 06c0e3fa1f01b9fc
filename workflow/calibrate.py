"""Measure which pack sizes are fast on this machine, for the runs of figures: make calibrate FIGURES="ablation comparison"

Results are kept in results/pack_sizes.csv, which later calls of Snakemake plan with. As many families are measured at the same
time as the machine has cores. Nothing is trained.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from compositional.configuration.configuration import Configuration, configuration
from compositional.configuration.messages import ConfigurationError
from compositional.notebook.training import split
from compositional.planning import pack_sizes
from compositional.planning.targets import wanted_runs
from compositional.records import surroundings
from compositional.stages.shared.pack_times import pack_times
from compositional.terminal import commands
from compositional.training.reading import read_problem


def measured(folder: Path, family: dict[str, Any], most: int, memory: float) -> list[tuple[int, str, str]]:
    """In a process of its own: the rows of a family."""
    times = pack_times(read_problem(folder, family, "cpu"), most, memory)
    return [(runs, f"{milliseconds:.3g}", f"{megabytes:.0f}") for runs, milliseconds, megabytes in times]


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Threads and processes that start within the context do not receive Ctrl-C."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def measure(pool: Executor, known: Configuration, families: dict[pack_sizes.Key, pack_sizes.Key], file: Path) -> None:
    """Measure the families, print their times and keep them in the file."""
    waiting = {}
    for key, family in sorted(families.items()):
        try:
            folder = split(known, family[0], Path("results"))
        except (ValueError, OSError) as error:
            print(f"{'/'.join(family)}: not measured: {error}", file=sys.stderr)
            continue
        most = known.config["pack_size"].get(family[0], known.config["pack_size"]["default"])
        with uninterrupted():
            job = pool.submit(measured, folder, known.family_parameters(family), most, pack_sizes.room())
        waiting[job] = key
    for done in as_completed(waiting):
        key, error = waiting[done], done.exception()
        if error is not None:
            print(f"{'/'.join(key)}: not measured: {error}", file=sys.stderr)
            continue
        rows = done.result()
        pack_sizes.keep(file, key, rows)
        print("/".join(key), *(f"{runs}: {own} ms, {megabytes} MB" for runs, own, megabytes in rows), sep="  ", flush=True)


def main() -> int:
    """Measure, print and write; exit status 2 if something cannot be measured at all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--figures", nargs="*", default=[], help="all figures if none is given")
    parser.add_argument("--configfile", type=Path, nargs="+", default=[], help="overlays, as for Snakemake")
    parser.add_argument("--file", type=Path, default=Path("results") / pack_sizes.OWN, help="where results are kept")
    arguments = parser.parse_args()
    try:
        known = configuration(*arguments.configfile)
        for name in arguments.figures:
            known.check_name("figure", name)
        runs = wanted_runs(known, [f"results/tables/{name}.csv" for name in arguments.figures])
        families = {pack_sizes.key_of(known, run.family): run.family for run in sorted(runs, key=str, reverse=True)}
    except (ConfigurationError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    surroundings.settle(os.environ, ROOT)  # as for jobs
    sys.warnoptions.append("ignore:resource_tracker")  # of what is left after Ctrl-C, in a process that Python starts
    # A process per family, so that each measures its own memory.
    spawn, cores = multiprocessing.get_context("spawn"), surroundings.cores()
    with ProcessPoolExecutor(cores, mp_context=spawn, max_tasks_per_child=1) as pool:
        try:
            measure(pool, known, families, arguments.file)
        except KeyboardInterrupt:
            print(f"Stopped. What was measured is kept in {arguments.file}.", file=sys.stderr, flush=True)
            for process in multiprocessing.active_children():
                process.kill()
            os._exit(commands.STOPPED)  # the pool would wait for ever
    return 0


if __name__ == "__main__":
    sys.exit(main())
