"""Measure packs of the families of `benchmarks/families.py`, for the table that planning uses on machines without a calibration:

python benchmarks/pack_sizes.py                         # minutes; writes src/compositional/planning/pack_sizes.csv
python benchmarks/pack_sizes.py "COGS, transformer"     # the rows of some of them
"""

from __future__ import annotations

import csv
import multiprocessing
import os
import sys
from pathlib import Path

from arguments import parser_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import problems

from compositional import files
from compositional.configuration.configuration import configuration
from compositional.configuration.messages import options_for
from compositional.planning import pack_sizes
from compositional.records import surroundings
from compositional.stages.shared.pack_times import pack_times

MOST = 128


def measured(name: str) -> list[list[str]]:
    """The rows of a family."""
    own = problems.FAMILIES[name]
    key = pack_sizes.key_of(configuration(), (own.task, own.model, own.regularizer))
    rows, case = [], problems.problem_of(name)
    most = len(case.about.get("population", range(MOST)))  # a run needs a program of its own
    for runs, milliseconds, megabytes in pack_times(case, most, pack_sizes.room()):
        rows.append([pack_sizes.machine(), *key, str(runs), f"{milliseconds:.3g}", f"{megabytes:.0f}"])
    return rows


def main() -> None:
    """Measure, print and write."""
    parser = parser_of(__doc__)
    parser.add_argument("families", nargs="*", metavar="family", help="all families if none is given")
    cores, names = len(os.sched_getaffinity(0)), parser.parse_args().families
    if unknown := [name for name in names if name not in problems.FAMILIES]:
        parser.error(f"there is no family {unknown[0]!r}{options_for(unknown[0], list(problems.FAMILIES))}")
    with pack_sizes.SHIPPED.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))[1:]
    os.environ.update(surroundings.SET)  # the environment of jobs, which only a new process takes
    with multiprocessing.get_context("spawn").Pool(cores, maxtasksperchild=1) as pool:
        for found in pool.imap_unordered(measured, names or problems.FAMILIES, chunksize=1):
            print(*(" ".join(row[1:]) for row in found), sep="\n", flush=True)
            rows = [row for row in rows if not found or row[1:4] != found[0][1:4]] + found
            files.write_csv(pack_sizes.SHIPPED, pack_sizes.COLUMNS, sorted(rows, key=lambda row: (row[:4], int(row[4]))))


if __name__ == "__main__":
    main()
