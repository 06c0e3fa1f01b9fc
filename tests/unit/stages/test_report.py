"""A report shows names and numbers as text, whatever they contain."""

from __future__ import annotations

from compositional import files
from compositional.stages import report


def test_nothing_that_is_shown_is_code(tmp_path):
    strange = "<script>alert(1)</script>"
    grid = {"task": "t", "model": "m", "regularizers": {}, "seeds": [0]}
    figure = {"study": strange, "grids": [grid], "sources": ["metrics.csv"]}
    for folder in ("figures", "tables"):
        (tmp_path / folder).mkdir()
    header = ["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"]
    files.write_csv(tmp_path / "tables" / "f.csv", header, [("t", "m", "none", 0.0, 0, strange, strange, 0.5)])
    for ending in ("png", "pdf", "rst"):
        (tmp_path / "figures" / f"f.{ending}").write_text(strange)
    run = {"run": strange, "status": strange, "source": {"commit": strange}}
    files.write_json(tmp_path / "runs/t/m/none/lambda=0/seed=0/run.json", run)
    recipe = {"figures": {"f": figure}, "digests": {}, "config": {"a": strange}, "options": strange, "stage": "report"}
    page = report.render(tmp_path, recipe)
    assert "&lt;script&gt;alert" in page
    assert "<script>alert" not in page
