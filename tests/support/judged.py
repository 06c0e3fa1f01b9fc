"""Automatic checks of drawn figures: labels exist, consist of words, and are not covered; captions are valid."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
from docutils import nodes
from docutils.core import publish_doctree
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

_NUMBER = re.compile(r"[-+−]?[\d.,]+(\\times)?|.*\$.*|")  # including powers of ten


def _panels(figure: Figure) -> Iterator[Axes]:
    yield from (axes for axes in figure.axes if axes.axison and axes.get_visible())


def _ticks(axis: Axis) -> list[Text]:
    """Visible tick labels."""
    low, high = sorted(axis.get_view_interval())
    return [
        tick.label1
        for tick in axis.get_major_ticks()
        if tick.label1.get_visible() and tick.label1.get_text() and low <= tick.get_loc() <= high
    ]


def unlabelled(figure: Figure) -> list[str]:
    """Axes with numbers but without a label."""
    shared = [text.get_text() for part in (figure, *figure.subfigs) for text in part.texts]
    return [
        f"panel {index} ({axes.get_title()!r}): no label on its {name} axis"
        for index, axes in enumerate(_panels(figure))
        for name, axis in (("x", axes.xaxis), ("y", axes.yaxis))
        if not axis.get_label_text()
        and (ticks := _ticks(axis))
        and all(_NUMBER.fullmatch(tick.get_text()) for tick in ticks)
        and len(shared) < 2  # one shared label for all panels in each direction
    ]


def _texts(figure: Figure) -> list[Text]:
    """All visible texts: titles, labels, legends, annotations."""
    hidden = {text for axes in figure.axes if not (axes.get_visible() and axes.axison) for text in axes.findobj(Text)}
    kept = {
        text
        for axes in figure.axes
        if axes.get_visible()
        for text in (*axes.texts, axes.title, axes._left_title, axes._right_title)
    }
    ticks = {text for axes in _panels(figure) for axis in (axes.xaxis, axes.yaxis) for text in _ticks(axis)}
    every_tick = {text for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for text in axis.get_ticklabels(which="both")}
    found = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return [text for text in found if text in kept | ticks or text not in hidden | every_tick]


def in_code(figure: Figure) -> list[str]:
    """Texts that contain configured names instead of words."""
    return [text.get_text() for text in _texts(figure) if re.search(r"[a-z]_[a-z]", text.get_text())]


def misread(caption: str) -> list[str]:
    """What reStructuredText reads in another way than a person: its warnings, and items of lists that are part of a sentence."""
    document = publish_doctree(caption, settings_overrides={"report_level": 5})
    warned = [message.astext() for message in document.findall(nodes.system_message)]
    written, read = len(re.findall(r"^ *[*-] ", caption, re.MULTILINE)), len([*document.findall(nodes.list_item)])
    return warned + ([f"{written} items are written, {read} are read"] if written != read else [])


def overlapping(figure: Figure) -> list[str]:
    """Texts that overlap another text, and texts in a panel that a line crosses."""
    figure.draw_without_rendering()
    # The bounding box of rotated text is meaningless.
    boxes = [(text, text.get_window_extent().padded(-1.5)) for text in _texts(figure) if text.get_rotation() % 90 == 0]
    wrong = [
        f"{one.get_text()!r} lies on {other.get_text()!r}"
        for (one, box), (other, beside) in itertools.combinations(boxes, 2)
        if Bbox.intersection(box, beside) is not None
    ]
    for axes in _panels(figure):
        inside = [*axes.texts, *(axes.get_legend().get_texts() if axes.get_legend() else [])]
        for text in inside:
            patch = text.get_bbox_patch() or (axes.get_legend() and axes.get_legend().get_frame_on())
            if not text.get_text() or patch:
                continue
            text.update_bbox_position_size(figure.canvas.get_renderer()) if isinstance(text, Annotation) else None
            box = text.get_window_extent().padded(-1)
            for line in axes.lines:
                path = line.get_transform().transform_path(line.get_path())
                drawn = line.get_linestyle() not in ("None", "") and len(path.vertices) > 1 and np.isfinite(path.vertices).all()
                if drawn and path.intersects_bbox(box, filled=False):
                    wrong.append(f"{text.get_text()!r} is struck through by the line {line.get_label()!r}")
    return wrong
