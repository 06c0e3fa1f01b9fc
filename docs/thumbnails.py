"""Draw docs/thumbnails: a small picture of every figure that is built here or has a table in reference/ (make thumbnails)."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from compositional.files import replacing
from compositional.notebook.training import configuration
from compositional.planning.recipes import Recipes
from compositional.stages import plot
from compositional.tables.shared.reading import read_table

ROOT = Path(__file__).resolve().parents[1]
WIDTH, COLORS = 360, 256  # pixels, and number of colors


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
                small.quantize(COLORS, Image.Quantize.MAXCOVERAGE).save(temporary, format="png", optimize=True)


if __name__ == "__main__":
    thumbnails(Recipes(configuration()), ROOT / "docs" / "thumbnails")
