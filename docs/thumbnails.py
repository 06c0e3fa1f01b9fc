"""Draw docs/thumbnails, a small picture of every figure that is built here or has a table in reference/, and the pictures of
figures in pages (make thumbnails)."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

from compositional.configuration.configuration import configuration
from compositional.files import replacing
from compositional.planning.recipes import Recipes
from compositional.runs import figure_runs
from compositional.stages import plot
from compositional.tables.shared.reading import read_table

ROOT = Path(__file__).resolve().parents[1]
WIDTH, COLORS = 360, 256  # pixels, and number of colors
PAGES = {"ablation": "ablation", "selection": "selection_digits"}  # docs/<table>.png: its rows of the runs of this figure


def picture(recipes: Recipes, name: str) -> Image.Image | None:
    """A figure as it was built here, or drawn from its table in reference/; None if there is neither."""
    built, table = recipes.results / "figures" / f"{name}.png", ROOT / "reference" / f"{name}.csv"
    if built.is_file():
        return Image.open(built)
    if not table.is_file():
        return None
    return _drawn(recipes.figures[name], read_table(table))


def _drawn(figure: dict[str, Any], table: pd.DataFrame) -> Image.Image:
    stream = io.BytesIO()
    with plot.drawn(figure["module"], table, figure["options"]) as (drawing, _):
        drawing.savefig(stream)
    return Image.open(stream)


def pages(recipes: Recipes, folder: Path) -> None:
    """Write the pictures of PAGES from tables in reference/."""
    for name, shown in PAGES.items():
        table = read_table(ROOT / "reference" / f"{name}.csv")
        own = table[table.task.isin({run.task for run in figure_runs(recipes.figures[shown])})]
        _save(_drawn(recipes.figures[shown], own), folder / f"{name}.png")


def _save(picture: Image.Image, path: Path) -> None:
    with replacing(path) as temporary:
        picture.convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE).save(temporary, format="png", optimize=True)


def thumbnails(recipes: Recipes, folder: Path) -> None:
    """Write NAME.png for every figure that has a picture; the files of other figures are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in recipes.figures:
        if found := picture(recipes, name):
            size = WIDTH, round(found.height * WIDTH / found.width)
            _save(found.convert("RGB").resize(size, Image.Resampling.LANCZOS), folder / f"{name}.png")


if __name__ == "__main__":
    thumbnails(Recipes(configuration()), ROOT / "docs" / "thumbnails")
    pages(Recipes(configuration()), ROOT / "docs")
