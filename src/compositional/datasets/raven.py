"""Generated matrices like Raven's progressive matrices: nine panels of shapes, with the same rules in every row.

The distribution is that of RAVEN (Zhang et al., "RAVEN: A Dataset for Relational and Analogical Visual rEasoning", CVPR 2019)
as restricted by Whitehouse, "Symbolic Synthesis of Neural Networks" (arXiv 2303.03340): six layouts, constant sizes, angles in
quarter turns. A matrix has one or two components (such as an outer and an inner shape). Each component has rules for its
configuration (number or positions of its shapes), shape, size and color. The generator of random numbers is counter-based, so a
matrix depends only on its seed and number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from PIL import Image, ImageDraw

from compositional import randomness

FILES: dict = {}
SHAPES = {"triangle": 3, "square": 4, "pentagon": 5, "hexagon": 6, "circle": 0}  # number of corners
SIZES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
COLORS = (255, 224, 196, 168, 140, 112, 84, 56, 28, 0)
ANGLES = (-90, 0, 90, 180)
BACKGROUNDS = (28, 56, 84, 112, 140, 168, 196, 224)
RULES = ("constant", "progression", "arithmetic", "distribute_three")
UNIFORM_SHARE = 0.25  # share of components whose shapes all have the same angle


@dataclass(frozen=True)
class Layout:
    """Slots for a component's shapes in the unit square: their centers (x, y), and the side of the box around each."""

    slots: tuple[tuple[float, float], ...]
    box: float
    smallest: int = 0  # index of the smallest size
    darkest: int = len(COLORS) - 1  # index of the darkest color


_CENTER = ((0.5, 0.5),)
# Matrix type -> (probability, components)
TYPES: dict[str, tuple[float, tuple[Layout, ...]]] = {
    "one_shape": (0.15, (Layout(_CENTER, 1.0),)),
    "four_shape": (0.2, (Layout(((0.25, 0.25), (0.75, 0.25), (0.25, 0.75), (0.75, 0.75)), 0.5, smallest=3),)),
    "five_shape": (0.2, (Layout(((0.2, 0.2), (0.8, 0.2), (0.5, 0.5), (0.2, 0.8), (0.8, 0.8)), 0.33, smallest=5),)),
    "two_shape_vertical_separator": (
        0.15,
        (Layout(((0.25, 0.5),), 0.5, smallest=3), Layout(((0.75, 0.5),), 0.5, smallest=3)),
    ),
    "two_shape_horizontal_separator": (
        0.15,
        (Layout(((0.5, 0.25),), 0.5, smallest=3), Layout(((0.5, 0.75),), 0.5, smallest=3)),
    ),
    # The outer shape is always white, so that the inner one is visible.
    "shape_in_shape": (0.15, (Layout(_CENTER, 1.0, smallest=5, darkest=0), Layout(_CENTER, 0.33, smallest=5))),
}


@dataclass(frozen=True)
class Rule:
    """The rule for one attribute in every row; `step` is the progression's step or the sign of the arithmetic."""

    name: str
    attribute: str  # configuration (if constant), number, position, shape, size, color
    step: int = 0

    def __str__(self) -> str:
        return f"{self.attribute}={self.name}{f'({self.step:+d})' if self.step else ''}"


@dataclass(frozen=True)
class Panel:
    """A component in one panel: its occupied slots, indices of shape, size and color, and an angle for each slot."""

    slots: tuple[int, ...]
    shape: int
    size: int
    color: int
    angles: tuple[int, ...]


@dataclass(frozen=True)
class Matrix:
    """A complete matrix: for every component its rules and its panels by row and column."""

    type: str
    rules: tuple[tuple[Rule, ...], ...]
    panels: tuple[tuple[tuple[Panel, Panel, Panel], ...], ...]
    background: int

    def has(self, name: str, attribute: str) -> bool:
        """Whether any component follows the rule `name` for the attribute; "configuration" is number, position or constant."""
        names = ("configuration", "number", "position") if attribute == "configuration" else (attribute,)
        return any(rule.name == name and rule.attribute in names for rules in self.rules for rule in rules)


def _draw_rule(source: np.random.Generator, attribute: str, names: tuple[str, ...]) -> Rule:
    name = names[source.integers(len(names))]
    if name == "constant" and attribute in ("number", "position"):
        attribute = "configuration"
    steps = {"progression": (-2, -1, 1, 2), "arithmetic": (-1, 1)}.get(name, (0,))
    return Rule(name, attribute, int(steps[source.integers(len(steps))]))


def _draw_rules(source: np.random.Generator) -> tuple[Rule, ...]:
    configuration = ("position", "number")[source.integers(2)]
    return (
        _draw_rule(source, configuration, RULES),
        _draw_rule(source, "shape", ("constant", "progression", "distribute_three")),
        _draw_rule(source, "size", ("constant",)),
        _draw_rule(source, "color", RULES),
    )


def first_column(rule: Rule, low: int, high: int) -> tuple[int, int] | None:
    """Bounds of the value in the first column for which the rule stays within low..high; None if there is no such value.

    Numbers count from 1, other values from 0. For positions, the bounds are for the number of shapes.
    """
    if rule.name == "progression":
        if rule.attribute == "position":  # with so few shapes, two steps do not return to the start
            high -= 2 * abs(rule.step)
        else:
            low, high = low - min(0, 2 * rule.step), high - max(0, 2 * rule.step)
    elif rule.name == "arithmetic":
        if rule.attribute == "position":  # a union must grow, a difference must leave something
            low, high = (low if rule.step > 0 else max(low, (high + 1) // 2)), high - 1
        elif rule.step > 0:
            high -= low
        else:
            low *= 2
        if rule.attribute == "color" and high == low:
            return None
    elif rule.name == "distribute_three":
        if high - low < 2:
            return None
        if rule.attribute == "position":
            high -= 1
    return (low, high) if low <= high else None


def _ordinal_rows(
    source: np.random.Generator, rule: Rule, low: int, high: int, bounds: tuple[int, int]
) -> list[tuple[int, int, int]]:
    """The values in three rows for an attribute with ordered values in low..high; `bounds` from `first_column`."""
    if rule.name == "distribute_three":
        return _latin_rows(source, [int(value) for value in low + source.choice(high - low + 1, size=3, replace=False)])
    rows: list[tuple[int, int, int]] = []
    while len(rows) < 3:
        first = int(source.integers(bounds[0], bounds[1] + 1))
        if rule.name != "arithmetic":
            rows.append((first, first + rule.step, first + 2 * rule.step))
            continue
        # Adding nothing in two rows would hide the rule, so at most one of the first two rows may do so.
        hidden = len(rows) == 1 and rows[0][1] == 0
        last = high - first if rule.step > 0 else first - low
        if options := [value for value in range(low, last + 1) if value or not hidden]:
            second = options[source.integers(len(options))]
            rows.append((first, second, first + rule.step * second))
    return rows


def _latin_rows(source: np.random.Generator, values: list) -> list[tuple]:
    """Three values, each once per row and column, in one of the two cyclic orders."""
    order = (0, 1, 2) if source.random() < 0.5 else (0, 2, 1)
    return [tuple(values[(start + column) % 3] for column in range(3)) for start in order]


def _some(source: np.random.Generator, slots: int, count: int) -> frozenset[int]:
    return frozenset(int(slot) for slot in source.choice(slots, size=count, replace=False))


def _position_rows(
    source: np.random.Generator, rule: Rule, slots: int, bounds: tuple[int, int]
) -> list[tuple[frozenset[int], frozenset[int], frozenset[int]]]:
    """Occupied slots in three rows, for a constant configuration or a rule for positions; `bounds` are for their number."""

    def number() -> int:
        return int(source.integers(bounds[0], bounds[1] + 1))

    if rule.name == "distribute_three":
        choices = [frozenset(choice) for choice in combinations(range(slots), number())]
        return _latin_rows(source, [choices[index] for index in source.choice(len(choices), size=3, replace=False)])
    rows = []
    for _ in range(3):
        first = _some(source, slots, number())
        if rule.name == "arithmetic":
            while True:
                second = _some(source, slots, number())
                if not (first >= second if rule.step > 0 else first <= second):
                    break
            rows.append((first, second, first | second if rule.step > 0 else first - second))
        else:  # constant, which is a progression by 0
            second, third = (frozenset((slot + column * rule.step) % slots for slot in first) for column in (1, 2))
            rows.append((first, second, third))
    return rows


def _component(source: np.random.Generator, rules: tuple[Rule, ...], layout: Layout) -> tuple | None:
    """Rows of panels of one component; None if the rules do not fit its layout."""
    configuration, shape, size, color = rules
    slots = len(layout.slots)
    limits = {
        configuration: (1, slots),
        shape: (0, len(SHAPES) - 1),
        size: (layout.smallest, len(SIZES) - 1),
        color: (0, layout.darkest),
    }
    bounds = {rule: found for rule, limit in limits.items() if (found := first_column(rule, *limit)) is not None}
    if len(bounds) < len(limits):
        return None
    if configuration.attribute == "number":
        numbers = _ordinal_rows(source, configuration, *limits[configuration], bounds[configuration])
        occupied = [[_some(source, slots, number) for number in row] for row in numbers]
    else:
        occupied = [[*row] for row in _position_rows(source, configuration, slots, bounds[configuration])]
    values = [_ordinal_rows(source, rule, *limits[rule], bounds[rule]) for rule in (shape, size, color)]
    uniform = source.random() < UNIFORM_SHARE
    rows = []
    for row in range(3):
        panels = []
        for column in range(3):
            chosen = tuple(sorted(occupied[row][column]))
            turns = source.integers(len(ANGLES), size=len(chosen))
            angles = tuple(ANGLES[turns[0 if uniform else index]] for index in range(len(chosen)))
            shapes, sizes, colors = (of[row][column] for of in values)
            panels.append(Panel(chosen, shapes, sizes, colors, angles))
        rows.append(tuple(panels))
    return tuple(rows)


def generate(seed: int, number: int) -> Matrix:
    """Matrix `number` of the sequence `seed`."""
    source = randomness.generator(randomness.derive("raven", seed), number)
    kind = list(TYPES)[source.choice(len(TYPES), p=[probability for probability, _ in TYPES.values()])]
    rules, panels = [], []
    for layout in TYPES[kind][1]:
        rows = None
        while rows is None:  # rules that do not fit are drawn again
            drawn = _draw_rules(source)
            rows = _component(source, drawn, layout)
        rules.append(drawn)
        panels.append(rows)
    return Matrix(kind, tuple(rules), tuple(panels), int(BACKGROUNDS[source.integers(len(BACKGROUNDS))]))


def _outline(corners: int, radius: float, angle: float) -> list[tuple[float, float]]:
    """Corners of a regular polygon around the origin: one is at the top, but a square has a side at the top."""
    start = math.radians(angle - 90) + (math.pi / 4 if corners == 4 else 0)
    turns = [start + 2 * math.pi * corner / corners for corner in range(corners)]
    return [(radius * math.cos(turn), radius * math.sin(turn)) for turn in turns]


def render(matrix: Matrix, size: int) -> np.ndarray:
    """The matrix as a gray image (size, size) uint8: panels of size // 3 pixels, lines of one pixel."""
    image = Image.new("L", (size, size), matrix.background)
    draw = ImageDraw.Draw(image)
    side = size // 3
    for rows, layout in zip(matrix.panels, TYPES[matrix.type][1], strict=True):
        for row in range(3):
            for column in range(3):
                panel = rows[row][column]
                # Filled unless the color is the background's.
                fill = None if COLORS[panel.color] == matrix.background else COLORS[panel.color]
                radius = (layout.box * side // 2) * SIZES[panel.size]
                corners = list(SHAPES.values())[panel.shape]
                for slot, angle in zip(panel.slots, panel.angles, strict=True):
                    x, y = layout.slots[slot]
                    x, y = int(column * side + x * side), int(row * side + y * side)
                    if corners:
                        points = [(round(x + across), round(y + down)) for across, down in _outline(corners, radius, angle)]
                        draw.polygon(points, fill=fill, outline=0)
                    else:
                        draw.ellipse((x - int(radius), y - int(radius), x + int(radius), y + int(radius)), fill=fill, outline=0)
    for share in (0.33, 0.67):
        line = int(share * 3 * side)
        draw.line((line, 0, line, size), fill=0)
        draw.line((0, line, size, line), fill=0)
    for place in range(3):
        line = place * side + side // 2
        if matrix.type == "two_shape_vertical_separator":
            draw.line((line, 0, line, size), fill=0)
        elif matrix.type == "two_shape_horizontal_separator":
            draw.line((0, line, size, line), fill=0)
    return np.asarray(image)
