"""The page of a figure: its size and its font, for a column of a paper."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from matplotlib import font_manager
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from compositional.figures.shared.style import RC, legend_entries

_COLUMNS = 5
_PANEL = 0.4  # inches: no panel is narrower
_EDGE = 0.03  # inches: how far a mark on an axis may exceed the edge of the page

# Every figure has this option (see configuration/figures.py); it can also be set for all figures together.
PARAMETERS = {
    "style": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "width": {"type": "number", "exclusiveMinimum": 0},
            "height": {"type": "number", "exclusiveMinimum": 0},
            "font": {"type": "string"},
            "size": {"type": "number", "exclusiveMinimum": 0},
        },
        "default": {},
        "description": "`width` and `height` of the page in inches (without a height, it shrinks less than the width), `font`: a "
        "family such as serif, or an installed font, `size`: of axis labels in points (9); other texts are scaled with it",
    },
}


def rc(style: dict[str, Any]) -> dict[Any, Any]:
    """Matplotlib's settings for the option `style`.

    Raises:
        ValueError: its font is not installed.
    """
    if "font" in style:
        try:
            font_manager.findfont(style["font"], fallback_to_default=False)
        except ValueError as error:
            generic = "serif, sans-serif and monospace are always available"
            raise ValueError(f"style.font: no font {style['font']!r} is installed; {generic}") from error
    given = {"font.size": style.get("size"), "font.family": style.get("font")}
    found = RC | {name: value for name, value in given.items() if value is not None}
    return found | ({"savefig.bbox": None} if _sized(style) else {})  # exactly this size


def _sized(style: dict[str, Any]) -> bool:
    return bool(style.keys() & {"width", "height"})


def fit(figure: Figure, style: dict[str, Any]) -> None:
    """Give a figure the size of the option `style`. The height shrinks less than the width, because texts keep their size."""
    if _sized(style):
        across, up = figure.get_size_inches()
        width = style.get("width", across)
        figure.set_size_inches(width, style.get("height", up * (width / across) ** 0.5))
        with warnings.catch_warnings():  # about missing space: the legend may change this, and saving the figure checks it again
            warnings.simplefilter("ignore")
            figure.draw_without_rendering()
        for axes in figure.axes:
            panel = axes.get_window_extent()
            for text, room in ((axes.title, panel.width), (axes.xaxis.label, panel.width), (axes.yaxis.label, panel.height)):
                _wrap(text, room)
            boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
            if any(box.overlaps(after) for box, after in pairwise(boxes)):
                axes.tick_params(axis="x", labelrotation=90)


def _wrap(text: Text, room: float) -> None:
    """Break lines of a title or a label that are longer than `room`, the size of its panel in pixels."""
    box, lines = text.get_window_extent(), text.get_text().splitlines()
    extent = box.height if text.get_rotation() else box.width
    if extent > room:
        letters = int(room / extent * max(map(len, lines)))
        text.set_text("\n".join(textwrap.fill(line, max(letters, 1), break_long_words=False) for line in lines))


def _is_cut(figure: Figure) -> bool:
    """Whether a text exceeds the page, or a panel is too narrow."""
    figure.draw_without_rendering()
    width, height = figure.get_size_inches()
    drawn = figure.get_tightbbox()
    narrowest = min(axes.get_window_extent().width for axes in figure.axes) / figure.dpi
    return narrowest < _PANEL or min(drawn.x0, drawn.y0, width - drawn.x1, height - drawn.y1) < -_EDGE


@contextmanager
def fitting(figure: Figure, style: dict[str, Any]) -> Iterator[None]:
    """Inside, a figure is saved. It is refused if its page is too small for its panels or, with the size from `style`, cuts off a
    text.

    Raises:
        ValueError: the texts leave no room for the panels, or a text exceeds the page.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "constrained_layout not applied")
            if _sized(style) and _is_cut(figure):
                raise UserWarning("a text is cut off")
            yield
    except UserWarning as warning:
        width, height = figure.get_size_inches()
        raise ValueError(
            f"style: the text of this figure leaves no room for its panels on a page of {width:.3g} x {height:.3g} inches; give "
            "`style` a larger width or height or a smaller size, or shorten the words in `labels`"
        ) from warning


def legend(figure: Figure, panels: Iterable[Axes], options: dict[str, Any], *marks: str | Artist) -> None:
    """Draw one legend for several panels, below them, in as many columns as fit on the page."""
    fit(figure, options.get("style", {}))
    handles, names = legend_entries(panels, *marks)
    if not names:
        return
    for columns in range(min(len(names), _COLUMNS), 0, -1):
        found = figure.legend(handles, names, loc="outside lower center", ncols=columns, handlelength=2.8)
        if found.get_window_extent().width <= figure.bbox.width or columns == 1:
            break
        found.remove()
    if "width" in options.get("style", {}) and "height" not in options["style"]:
        figure.set_figheight(figure.get_figheight() + found.get_window_extent().height / figure.dpi)
