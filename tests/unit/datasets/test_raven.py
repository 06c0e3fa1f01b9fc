"""Puzzles: their rules, the balance of their labels, and their images."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from compositional.datasets import raven

ROOT = Path(__file__).parents[3]


def holds(rule: raven.Rule, rows: list, slots: int) -> bool:
    """Whether the values of three rows (sets of slots for positions) follow a rule, checked without the generator's code."""
    if rule.name == "constant":
        return all(a == b == c for a, b, c in rows)
    if rule.name == "distribute_three":
        columns = list(zip(*rows, strict=True))
        return all(len(set(line)) == 3 for line in [*rows, *columns]) and len({value for row in rows for value in row}) == 3
    if rule.attribute == "position":
        if rule.name == "progression":
            return all({(slot + rule.step) % slots for slot in x} == y for row in rows for x, y in itertools.pairwise(row))
        return all((a | b if rule.step > 0 else a - b) == c and c for a, b, c in rows)
    if rule.name == "progression":
        return all(b - a == c - b == rule.step for a, b, c in rows)
    return all(a + rule.step * b == c for a, b, c in rows)


def test_every_row_of_every_matrix_follows_its_rules():
    seen = set()
    for number in range(600):
        matrix = raven.generate(0, number)
        for rules, panels, layout in zip(matrix.rules, matrix.panels, raven.TYPES[matrix.type][1], strict=True):
            read = {
                "number": lambda panel: len(panel.slots),
                "position": lambda panel: frozenset(panel.slots),
                "configuration": lambda panel: frozenset(panel.slots),
                "shape": lambda panel: panel.shape,
                "size": lambda panel: panel.size,
                "color": lambda panel: panel.color,
            }
            for rule in rules:
                rows = [tuple(read[rule.attribute](panel) for panel in row) for row in panels]
                assert holds(rule, rows, len(layout.slots)), (number, rule, rows)
                seen.add((rule.name, rule.attribute))
            for panel in itertools.chain(*panels):
                assert 0 <= panel.shape < len(raven.SHAPES)
                assert layout.smallest <= panel.size < len(raven.SIZES)
                assert 0 <= panel.color <= layout.darkest
                assert 1 <= len(panel.slots) == len(set(panel.slots)) <= len(layout.slots)
    assert len(seen) == 1 + 2 * 3 + 3 + 1 + 4  # configuration; number and position; shape; size; color


def test_labels_have_the_balance_of_the_original_generator():
    """Shares of positives by type are those in 3,000 matrices of raven-gen 0.3.2, within four standard errors of both counts."""
    counted = {
        "one_shape": (0.26, 0.15),
        "four_shape": (0.28, 0.2),
        "five_shape": (0.26, 0.2),
        "two_shape_vertical_separator": (0.40, 0.15),
        "two_shape_horizontal_separator": (0.44, 0.15),
        "shape_in_shape": (1.0, 0.15),
    }
    matrices = [raven.generate(5, number) for number in range(3000)]
    for kind, (positive, share) in counted.items():
        own = [matrix for matrix in matrices if matrix.type == kind]
        assert abs(len(own) / 3000 - share) < 4 * math.sqrt(share * (1 - share) / 3000)
        error = math.sqrt(positive * (1 - positive) * 2 / (3000 * share))
        assert abs(np.mean([matrix.has("constant", "color") for matrix in own]) - positive) <= 4 * error + 0.005


def test_the_first_column_leaves_room_for_the_rule():
    def rule(name, attribute, step=0):
        return raven.Rule(name, attribute, step)

    assert raven.first_column(rule("progression", "color", 2), 0, 9) == (0, 5)
    assert raven.first_column(rule("progression", "number", -2), 1, 5) == (5, 5)
    assert raven.first_column(rule("progression", "number", 2), 1, 4) is None
    assert raven.first_column(rule("arithmetic", "number", 1), 1, 5) == (1, 4)
    assert raven.first_column(rule("arithmetic", "number", -1), 1, 5) == (2, 5)
    assert raven.first_column(rule("arithmetic", "color", 1), 0, 0) is None
    assert raven.first_column(rule("distribute_three", "position"), 1, 1) is None


def test_a_matrix_depends_on_seed_and_number_alone():
    code = (
        "import hashlib; from compositional.datasets import raven;"
        "print(hashlib.sha256(b''.join(raven.render(raven.generate(3, n), 128).tobytes() for n in range(40))).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(found) == 1
    assert raven.generate(0, 7) == raven.generate(0, 7) != raven.generate(1, 7)


def test_images_show_lines_shapes_and_background():
    for number in range(30):
        matrix = raven.generate(0, number)
        image = raven.render(matrix, 128)
        assert image.shape == (128, 128)
        assert image.dtype == np.uint8
        assert not image[41].any()
        assert not image[:, 84].any()
        colors = {raven.COLORS[panel.color] for rows in matrix.panels for row in rows for panel in row}
        assert set(np.unique(image)) <= colors | {0, matrix.background}
