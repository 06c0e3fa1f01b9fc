"""What every figure must do, with a small table that has the right columns (support/small.yaml)."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest
from support import judged, small

from compositional.figures import Figure
from compositional.figures.shared import style
from compositional.plugins import defaults, load
from compositional.stages.plot import plot

FIGURES = small.names("figures")


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_drawn_twice_has_the_same_bytes_and_a_caption(figure, tmp_path, monkeypatch):
    # Pixels and complete outlines of characters take most of the time.
    monkeypatch.setitem(style.RC, "savefig.dpi", 20)
    monkeypatch.setitem(style.RC, "pdf.fonttype", 3)
    options = defaults(f"figures.{figure}") | small.entry("figures", figure).get("options", {})
    table = tmp_path / "table.csv"
    small.table(figure).to_csv(table, index=False)
    written = []
    for name in ("one", "two"):
        paths = {kind: tmp_path / name / f"figure.{kind}" for kind in ("pdf", "png", "caption")}
        plot(figure, table, options, **paths)
        written.append([path.read_bytes() for path in paths.values()])
    assert written[0] == written[1]
    pdf, png, caption = written[0]
    assert pdf.startswith(b"%PDF")
    assert png.startswith(b"\x89PNG")
    assert len(caption.decode().split()) > 10
    assert "nan" not in caption.decode().split()
    assert judged.misread(caption.decode()) == []


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_uses_words_has_a_label_on_every_axis_and_no_overlapping_text(figure):
    options = defaults(f"figures.{figure}") | small.entry("figures", figure).get("options", {})
    with plt.rc_context(style.RC):
        drawn, _ = load(Figure, f"figures.{figure}").draw(small.table(figure), options)
        try:
            found = [*judged.overlapping(drawn), *judged.unlabelled(drawn), *judged.in_code(drawn)]
        finally:
            plt.close(drawn)
    assert found == []
