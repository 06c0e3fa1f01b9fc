"""List the figures that can be built: make figures. With --page, write docs/figures.md (make docs)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from compositional.configuration.configuration import configuration
from compositional.configuration.messages import ConfigurationError
from compositional.files import replacing
from compositional.planning.recipes import Recipes
from compositional.records import surroundings
from compositional.terminal import figures, overlays

CORES, NOWHERE = 2, Path("nowhere")  # for the page: cores of the machine where costs were measured, and no results

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--configfile", nargs="+", type=Path, default=[], help="overlays, as for Snakemake")
    parser.add_argument("--page", type=Path, help="file that is written instead of printing the list")
    arguments = parser.parse_args()
    overlays.check(sys.argv)
    try:
        known = configuration(*arguments.configfile)
    except ConfigurationError as error:
        sys.exit(str(error))
    if arguments.page:
        with replacing(arguments.page) as temporary:
            text = figures.page(figures.described(Recipes(known, NOWHERE), CORES), arguments.page.parent)
            temporary.write_text(text, encoding="utf-8")
    else:
        print(figures.listing(figures.described(Recipes(known), surroundings.cores()), known.config["device"]))
