"""List the figures that can be built: make figures. With --page, write docs/figures.md (make docs); with --thumbnails, write a
small picture per figure (make thumbnails)."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from compositional.configuration.messages import ConfigurationError
from compositional.files import replacing
from compositional.notebook.training import configuration
from compositional.planning.recipes import Recipes
from compositional.records import surroundings
from compositional.stages import plot
from compositional.tables.shared.reading import read_table
from compositional.terminal import figures, overlays

CORES, NOWHERE = 2, Path("nowhere")  # for the page: cores of the machine where costs were measured, and no results
WIDTH, COLORS = 360, 64  # of a thumbnail: pixels, and number of colors


def picture(recipes: Recipes, name: str) -> Image.Image | None:
    """A figure as it was built here, or drawn from its table in reference/; None if there is neither."""
    built, table = recipes.results / "figures" / f"{name}.png", ROOT / "reference" / f"{name}.csv"
    if built.is_file():
        return Image.open(built)
    if not table.is_file():
        return None
    figure, drawn = recipes.figures[name], io.BytesIO()
    with plot.drawn(figure["module"], read_table(table), figure["options"]) as (drawing, _):
        drawing.savefig(drawn)
    return Image.open(drawn)


def thumbnails(recipes: Recipes, folder: Path) -> None:
    """Write NAME.png for every figure that has a picture; the files of other figures are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in recipes.figures:
        if found := picture(recipes, name):
            small = found.convert("RGB").resize((WIDTH, round(found.height * WIDTH / found.width)), Image.Resampling.LANCZOS)
            with replacing(folder / f"{name}.png") as temporary:
                small.quantize(COLORS).save(temporary, format="png", optimize=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--configfile", nargs="+", type=Path, default=[])
    parser.add_argument("--page", type=Path)
    parser.add_argument("--thumbnails", type=Path)
    arguments = parser.parse_args()
    overlays.check(sys.argv)
    try:
        known = configuration(*arguments.configfile)
    except ConfigurationError as error:
        sys.exit(str(error))
    if arguments.thumbnails:
        thumbnails(Recipes(known), arguments.thumbnails)
    elif arguments.page:
        with replacing(arguments.page) as temporary:
            text = figures.page(figures.described(Recipes(known, NOWHERE), CORES), arguments.page.parent)
            temporary.write_text(text, encoding="utf-8")
    else:
        print(figures.listing(figures.described(Recipes(known), surroundings.cores())))
