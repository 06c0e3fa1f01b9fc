"""The small pictures of figures: from what is built here, else from the table in reference/."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

from PIL import Image

from compositional.configuration.configuration import configuration

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = runpy.run_path(str(DOCS / "thumbnails.py"))
NAME = "comparison_geoquery_terms"  # has a table in reference/


def test_a_built_figure_goes_before_its_reference_table(tmp_path):
    figures = {name: configuration().figures[name] for name in (NAME, "kernel_context")}
    recipes, folder = SimpleNamespace(results=tmp_path, figures=figures), tmp_path / "thumbnails"
    SCRIPT["thumbnails"](recipes, folder)
    assert [path.name for path in folder.iterdir()] == [f"{NAME}.png"]  # the other one has neither
    drawn = Image.open(folder / f"{NAME}.png")
    assert drawn.width == SCRIPT["WIDTH"] < 2 * drawn.height
    (tmp_path / "figures").mkdir()
    Image.new("RGB", (20, 10), "red").save(tmp_path / f"figures/{NAME}.png")
    SCRIPT["thumbnails"](recipes, folder)
    assert Image.open(folder / f"{NAME}.png").convert("RGB").getcolors() == [(SCRIPT["WIDTH"] ** 2 // 2, (255, 0, 0))]


def test_every_reference_table_of_a_figure_has_a_thumbnail():
    tables = {path.stem for path in (DOCS.parent / "reference").glob("*.csv")} & configuration().figures.keys()
    assert tables <= {path.stem for path in (DOCS / "thumbnails").glob("*.png")}, "make thumbnails"
