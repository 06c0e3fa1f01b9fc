"""What wrong answers on GeoQuery in FunQL get wrong: only names, such as a city instead of a state, or functions.

    COMPOSITIONAL_MIRROR=<folder> snakemake results/figures/readings_funql_swaps.pdf
    python benchmarks/wrong_names.py

Of every run, 200 answers are stored. Shares of them are compared with those of the plain run of the same seed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd
from arguments import parser_of

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))

from compositional.figures.shared import style

RUNS = ROOT / "results/runs/geoquery_funql_plain/pointer_generator_small"
METHODS = ("none/lambda=0", *(f"recombination{of}/lambda=1" for of in ("", "_of_kinds", "_of_both")))
NAME = re.compile(r"(\w+)id \( [^()]* \)")  # stateid ( texas ), cityid ( austin , _ )


def judged(path: Path) -> pd.Series:
    """How many answers of a run are stored and wrong, wrong only in their names, a city instead of a state, or in functions."""
    table = pd.read_csv(path)
    wrong = table[table.correct == 0].fillna("")
    names = wrong[[NAME.sub("name", row.target) == NAME.sub("name", row.prediction) for row in wrong.itertuples()]]
    kinds = [zip(NAME.findall(row.target), NAME.findall(row.prediction), strict=True) for row in names.itertuples()]
    cities = sum(("state", "city") in pairs for pairs in kinds)
    counts = len(table), len(wrong), len(names), cities, len(wrong) - len(names)
    return pd.Series(counts, ["stored", "wrong", "names", "cities", "functions"])


def main() -> None:
    parser_of(__doc__).parse_args()
    found = {}
    for method in METHODS:
        paths = sorted((RUNS / method).glob("seed=*/predictions.csv"))
        if not paths:
            sys.exit(f"{RUNS / method} has no runs: build them first (see the head of this file)")
        found[method] = pd.DataFrame({path.parent.name: judged(path) for path in paths}).T
        print(f"{method}, {len(paths)} seeds:", found[method].sum().to_dict())
        for what in ("names", "functions"):
            fewer = found[METHODS[0]][what] / found[METHODS[0]].stored - found[method][what] / found[method].stored
            print(f"  share with wrong {what}, less than plain: {style.summary(fewer.dropna(), '+')}")


if __name__ == "__main__":
    main()
