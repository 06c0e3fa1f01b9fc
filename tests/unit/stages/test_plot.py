"""A figure's bytes are its table's and options' alone, whatever the user's matplotlib is told."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import pytest
from support import small

from compositional.plugins import defaults
from compositional.stages.plot import plot


def drawn(folder) -> list[bytes]:
    small.table("per_category").to_csv(folder / "table.csv", index=False)
    paths = {kind: folder / f"figure.{kind}" for kind in ("pdf", "png", "caption")}
    plot("per_category", folder / "table.csv", defaults("figures.per_category"), **paths)
    return [path.read_bytes() for path in paths.values()]


@pytest.mark.parametrize(
    "settings",
    [
        {"font.size": 20, "lines.linewidth": 9, "axes.facecolor": "red", "savefig.transparent": True},
        {"text.usetex": True},
        {"font.family": "serif", "font.serif": ["DejaVu Serif"], "mathtext.fontset": "cm"},
        {"path.sketch": (1, 100, 2), "axes.unicode_minus": False, "pdf.compression": 0, "figure.autolayout": True},
        "dark_background",
    ],
    ids=str,
)
def test_a_matplotlibrc_or_a_style_of_the_user_changes_no_byte(tmp_path, settings):
    expected = drawn(tmp_path)
    with plt.rc_context():
        if isinstance(settings, str):
            plt.style.use(settings)
        else:
            (tmp_path / "matplotlibrc").write_text("")
            matplotlib.rc_file(tmp_path / "matplotlibrc")
            matplotlib.rcParams.update(settings)
        assert drawn(tmp_path) == expected
        assert matplotlib.rcParams["savefig.dpi"] == "figure"  # as before: what a figure needs stays with it
