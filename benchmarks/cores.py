"""How much earlier figures are built if packs are made smaller for idle cores: python benchmarks/cores.py CORES [FIGURE ...].

The times are estimates for training at laptop scale: steps times the cost of a step (`planning/costs.csv`), which is assumed to
be the same in smaller packs.
"""

from __future__ import annotations

import sys
from pathlib import Path

from compositional.notebook.training import configuration
from compositional.planning import packs
from compositional.planning.costs import START, until_the_last_ends
from compositional.planning.recipes import Recipes
from compositional.planning.targets import wanted_runs
from compositional.runs import Run


def seconds(planned: list[list[Run]], recipes: Recipes, cores: int) -> float:
    """Until all packs are trained, the longest first."""
    own = [START + len(pack) * packs.seconds_of("train", pack[0].family, recipes) for pack in planned]
    return until_the_last_ends(sorted(own, reverse=True), cores)


def main() -> None:
    """Print one line per figure."""
    cores, names = int(sys.argv[1]), sys.argv[2:]
    recipes = Recipes(configuration({"device": "cpu"}), Path("none"))
    for name in names or recipes.figures:
        wanted = wanted_runs(recipes.configuration, [f"results/figures/{name}.pdf"])
        usual, shared = (packs.shared_out("train", wanted, recipes, number) for number in (None, cores))
        before, after = (seconds(planned, recipes, cores) for planned in (usual, shared))
        if wanted:
            print(f"{name}: {len(usual)} -> {len(shared)} packs, {before:.0f} -> {after:.0f} s, {before / after:.1f} times")


if __name__ == "__main__":
    main()
