"""How much earlier figures are built if packs are made smaller for idle cores: python benchmarks/cores.py CORES [FIGURE ...].

The times are estimates for training at laptop scale: steps times the cost of a step (`planning/costs.csv`), which is assumed to
be the same in smaller packs.
"""

from __future__ import annotations

from pathlib import Path

from arguments import count, parser_of

from compositional.configuration.configuration import configuration
from compositional.configuration.messages import ConfigurationError
from compositional.planning import packs
from compositional.planning.recipes import Recipes
from compositional.planning.targets import wanted_runs


def main() -> None:
    """Print one line per figure."""
    parser = parser_of(__doc__)
    parser.add_argument("cores", type=count, help="number of cores of the machine")
    parser.add_argument("figures", nargs="*", metavar="figure", help="all figures if none is given")
    options = parser.parse_args()
    recipes, cores = Recipes(configuration({"device": "cpu"}), Path("none")), options.cores
    try:
        for name in options.figures:
            recipes.configuration.check_name("figure", name)
    except ConfigurationError as error:
        parser.error(str(error))
    for name in options.figures or recipes.figures:
        wanted = wanted_runs(recipes.configuration, [f"results/figures/{name}.pdf"])
        usual, shared = (packs.shared_out("train", wanted, recipes, number) for number in (None, cores))
        seconds = {family: packs.seconds_of("train", family, recipes) for family in {run.family for run in wanted}}
        before, after = (packs.until_made(planned, seconds, cores) for planned in (usual, shared))
        if wanted:
            print(f"{name}: {len(usual)} -> {len(shared)} packs, {before:.0f} -> {after:.0f} s, {before / after:.1f} times")


if __name__ == "__main__":
    main()
