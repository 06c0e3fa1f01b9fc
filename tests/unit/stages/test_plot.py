"""A figure's bytes depend only on its table and options, not on the user's settings of matplotlib."""

from __future__ import annotations

from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image
from support import small

from compositional.plugins import defaults
from compositional.stages import plot as stage
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
def test_the_users_matplotlibrc_or_style_changes_no_byte(tmp_path, settings):
    expected = drawn(tmp_path)
    with plt.rc_context():
        if isinstance(settings, str):
            plt.style.use(settings)
        else:
            (tmp_path / "matplotlibrc").write_text("")
            matplotlib.rc_file(tmp_path / "matplotlibrc")
            matplotlib.rcParams.update(settings)
        assert drawn(tmp_path) == expected
        assert matplotlib.rcParams["savefig.dpi"] == "figure"  # as before: a figure's settings are not global


def sized(folder, style, module="ablation"):
    small.table(module).to_csv(folder / "table.csv", index=False)
    paths = {kind: folder / f"figure.{kind}" for kind in ("pdf", "png", "caption")}
    plot(module, folder / "table.csv", defaults(f"figures.{module}") | {"style": style}, **paths)
    with Image.open(paths["png"]) as image:
        return image.width / 200, image.height / 200, paths["pdf"].read_bytes()


def test_a_figure_has_the_configured_width_and_font(tmp_path):
    width, height, pdf = sized(tmp_path, {"width": 3.3, "font": "serif", "size": 7})
    assert width == pytest.approx(3.3, abs=0.01)
    assert 2.5 < height < 6
    assert b"DejaVuSerif" in pdf
    assert sized(tmp_path, {"width": 5, "height": 4})[:2] == pytest.approx((5, 4), abs=0.01)


def test_a_width_that_is_too_small_and_a_missing_font_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no room for its panels on a page of 0\.3 x .* inches; give `style` a larger width"):
        sized(tmp_path, {"width": 0.3})
    with pytest.raises(ValueError, match=r"style\.font: no font 'Serify' is installed"):
        sized(tmp_path, {"font": "Serify"})
    assert not (tmp_path / "figure.pdf").exists()


@pytest.mark.parametrize(
    ("made", "said"),
    [(plt.figure(), "Figure"), ((plt.figure(), 3), r"\(Figure, int\)"), ((plt.figure().subplots(), ""), r"\(Axes, str\)")],
)
def test_a_figure_module_that_returns_something_else_is_named(monkeypatch, made, said):
    monkeypatch.setattr(stage.plugins, "load", lambda contract, name: SimpleNamespace(draw=lambda table, options: made))
    message = rf"figures/ablation.py: draw must return \(Figure, str\), it returns {said}"
    with pytest.raises(TypeError, match=message), stage.drawn("ablation", None, {}):
        pass


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda axes: np.random.random(), "draws random numbers from a global generator"),
        (lambda axes: axes.remove() or "Numbers.", "returns a figure without axes"),
        (lambda axes: " ", "returns an empty caption"),
    ],
)
def test_a_figure_module_that_draws_at_random_or_shows_or_says_nothing_is_named(monkeypatch, draw, said):
    def drawn(table, options):
        figure, axes = plt.subplots()
        return figure, draw(axes)

    monkeypatch.setattr(stage.plugins, "load", lambda contract, name: SimpleNamespace(draw=drawn))
    with pytest.raises(ValueError, match=f"figures/mine.py: draw {said}"), stage.drawn("mine", None, {}):
        pass


@pytest.mark.parametrize("name", ["results/runs/history.csv", "config/note.txt", "colors.json"])
def test_a_figure_that_reads_more_than_its_table_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("other numbers")

    def draw(table, options):
        return plt.figure(), open(name).read()

    monkeypatch.setattr(stage.plugins, "load", lambda contract, module: SimpleNamespace(draw=draw))
    with (
        pytest.raises(PermissionError, match=f"drawn from its table alone, .*: not {tmp_path}/{name}"),
        stage.drawn("mine", None, {}),
    ):
        pass
    assert (tmp_path / name).read_text() == "other numbers"
