"""How much of the gain from swaps of terms on GeoQuery's query splits is exposure: which test pairs the exchanges make.

    COMPOSITIONAL_MIRROR=<folder> snakemake results/splits/geoquery_{query,funql,funql_plain}
    python benchmarks/geoquery_exposure.py

Shown is the "pair" if exchanges of training pairs make the test pair, and the "form" if they make a pair with its logical form.
The accuracy on each is printed if the figure `comparison_geoquery_terms`, `readings_funql` or `readings_funql_swaps` was built.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from arguments import parser_of

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))

from compositional import plugins
from compositional.configuration.configuration import configuration
from compositional.kinds.sequence import load
from compositional.regularizers import Regularizer

SWAPS = {  # by task and model
    ("geoquery_query", "lstm_input_feeding_small"): ["recombination_terms"],
    ("geoquery_funql", "lstm_input_feeding_small"): [f"recombination_of_{types}" for types in ("places", "kinds", "both")],
    ("geoquery_funql_plain", "pointer_generator_small"): ["recombination_of_kinds", "recombination_of_both"],
}


def main() -> None:
    parser_of(__doc__).parse_args()
    known = configuration()
    for (task, model), terms in SWAPS.items():
        if not (ROOT / "results/splits" / task).is_dir():
            sys.exit(f"results/splits/{task} is missing: build it first (see the head of this file)")
        splits = load(ROOT / "results/splits" / task, "cpu")
        test = list(zip(splits["test"].input_sentences(), splits["test"].output_sentences(), strict=True))
        for term in terms:
            told = known.family_parameters((task, model, term))
            swaps = plugins.load(Regularizer, told["regularizer_module"])
            swapped = swaps.prepare(told["regularizer_parameters"], splits["train"]).split
            pairs = set(zip(swapped.input_sentences(), swapped.output_sentences(), strict=True))
            forms = {form for _, form in pairs}

            def shown(pair: tuple[str, str], pairs: set = pairs, forms: set = forms) -> str:
                return "pair" if pair in pairs else "form" if pair[1] in forms else "neither"

            counts = pd.Series(map(shown, test)).value_counts()
            print(f"{task}, {term}: of {len(test)} test pairs, shown are", counts.to_dict())
            for method in ("none/lambda=0", f"{term}/lambda=1"):
                runs = (ROOT / "results/runs" / task / model / method).glob("seed=*/predictions.csv")
                if tables := [pd.read_csv(path) for path in sorted(runs)]:
                    table = pd.concat(tables)
                    means = table.correct.groupby([shown(pair) for pair in zip(table.input, table.target, strict=True)]).mean()
                    print(f"  {method}, {len(tables)} seeds, all {table.correct.mean():.3f}:", means.round(3).to_dict())


if __name__ == "__main__":
    main()
