"""Every point of a figure that shows a run's value is found with its run, and the image has ink there."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from support import small

from compositional.plugins import defaults
from compositional.records.order import order_of
from compositional.stages import plot
from compositional.stages.shared import hover


def test_equal_values_are_made_different_by_small_changes():
    table = pd.DataFrame({"metric": ["accuracy"] * 4 + ["diverged"], "value": [1.0, 1.0, 0.0, 0.0, 1.0]})
    changed, places = hover.tagged(table)
    assert changed.value.iloc[:4].nunique() == 4
    assert [places[value] for value in changed.value.iloc[:4]] == [0, 1, 2, 3]
    assert changed.value.iloc[4] == 1.0
    assert changed.value.between(0, 1).all()
    assert np.abs(changed.value - table.value).max() < 1e-12


@pytest.mark.parametrize("module", ["per_category", "ablation", "comparison"])
def test_points_are_where_the_image_has_ink(tmp_path, module):
    table, options = small.table(module), defaults(f"figures.{module}")
    table.to_csv(tmp_path / "table.csv", index=False)
    (width, height), found = hover.points(
        {"module": module, "options": options, "order": order_of(options)}, tmp_path / "table.csv"
    )
    with plot.drawn(module, table, options) as (figure, _):
        figure.savefig(picture := io.BytesIO(), format="png")
    ink = np.asarray(Image.open(picture).convert("L"))
    assert (width, height) == pytest.approx(ink.shape[::-1], abs=1)
    assert found
    for point in found:
        assert ink[int(point.y) - 1 : int(point.y) + 2, int(point.x) - 1 : int(point.x) + 2].min() < 240
        rows = table[(table.task == point.run.task) & (table.model == point.run.model) & (table.seed == point.run.seed)]
        rows = rows[(rows.regularizer == point.run.regularizer) & np.isclose(rows["lambda"], point.run.strength)]
        said = {f"{split} {metric} {value:.4g}" for split, metric, value in zip(rows.split, rows.metric, rows.value, strict=True)}
        assert point.value in said


def test_a_table_without_runs_has_no_points(tmp_path):
    (tmp_path / "table.csv").write_text("task,split,input,target\nscan_jump,test,jump twice,I_JUMP I_JUMP\n")
    assert hover.points({"module": "contact_sheet", "options": {}, "order": []}, tmp_path / "table.csv")[1] == []
