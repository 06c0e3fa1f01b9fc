"""How much of the gain from swaps of terms on GeoQuery's query split is exposure: accuracy by what they show of a test pair.

    COMPOSITIONAL_MIRROR=<folder> snakemake results/figures/comparison_geoquery_terms.pdf
    python benchmarks/geoquery_exposure.py

Shown is the "pair" if exchanges of training pairs make the test pair, and the "form" if they make a pair with its logical form.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))

from compositional.kinds.sequence import load
from compositional.regularizers import recombination

RUNS = ROOT / "results/runs/geoquery_query/lstm_input_feeding_small"


def main() -> None:
    methods = {
        method: [pd.read_csv(path) for path in sorted((RUNS / method).glob("seed=*/predictions.csv"))]
        for method in ("none/lambda=0", "recombination_terms/lambda=1")
    }
    if not all(methods.values()):
        sys.exit(f"not all runs are in {RUNS}: build the figure first (see the head of this file)")
    splits = load(ROOT / "results/splits/geoquery_query", "cpu")
    swapped = recombination.prepare({"form": "hard", "exchange": "terms"}, splits["train"]).split
    pairs = set(zip(swapped.input_sentences(), swapped.output_sentences(), strict=True))
    forms = {form for _, form in pairs}
    for method, tables in methods.items():
        table = pd.concat(tables)
        rows = zip(table.input, table.target, strict=True)
        shown = ["pair" if pair in pairs else "form" if pair[1] in forms else "neither" for pair in rows]
        print(f"{method}, {len(tables)} seeds, all {table.correct.mean():.3f}")
        for what, own in table.correct.groupby(shown):
            print(f"  shown: {what}, {len(own) // len(tables)} test pairs, {own.mean():.3f}")
        print(f"  shown: pair or form, {table.correct[[what != 'neither' for what in shown]].mean():.3f}")


if __name__ == "__main__":
    main()
