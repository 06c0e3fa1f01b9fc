"""The page of a figure: texts fit the column of a paper, otherwise the figure is refused."""

from __future__ import annotations

import io

import matplotlib.pyplot as plt
import pytest

from compositional.figures.shared import page

LONG = "a title of several words that is much longer than its panel"


def saved(figure, style):
    with page.fitting(figure, style):
        figure.savefig(io.BytesIO())


@pytest.fixture
def panels():
    with plt.rc_context(page.rc({"width": 3})):
        figure, axes = plt.subplots(1, 2, figsize=(8, 2), layout="constrained")
        yield figure, axes
        plt.close(figure)


def test_titles_and_labels_break_where_their_panel_ends(panels):
    figure, (left, right) = panels
    left.set(title=LONG, ylabel=LONG)
    right.set(title="short")
    page.fit(figure, {"width": 5})
    assert left.get_title().split() == left.get_ylabel().split() == LONG.split()
    assert left.get_title().count("\n") >= 1 <= left.get_ylabel().count("\n")
    assert right.get_title() == "short"
    saved(figure, {"width": 5})


def test_a_label_a_little_longer_than_its_panel_breaks(panels):
    figure, (_, right) = panels
    page.fit(figure, {"width": 5})
    while right.xaxis.label.get_window_extent().width < 1.05 * right.get_window_extent().width:
        right.set_xlabel(f"{right.get_xlabel()} word")
        figure.draw_without_rendering()
    page.fit(figure, {"width": 5})
    assert "\n" in right.get_xlabel()
    saved(figure, {"width": 5})


@pytest.mark.parametrize("width", [0.8, 0.3])
def test_a_page_without_room_is_refused_with_its_size(panels, width):
    figure, (left, _) = panels
    left.set(ylabel="accuracy")
    page.fit(figure, {"width": width, "height": 2})
    with pytest.raises(ValueError, match=rf"leaves no room for its panels on a page of {width} x 2 inches; give"):
        saved(figure, {"width": width, "height": 2})


def test_a_text_that_leaves_the_page_is_refused_if_the_page_has_a_size(panels):
    figure, _ = panels
    figure.text(0.9, 0.5, "over the edge of the page")  # not part of the layout
    saved(figure, {})  # without a size, the page is cropped to the drawing
    with pytest.raises(ValueError, match="leaves no room"):
        saved(figure, {"height": 2})
