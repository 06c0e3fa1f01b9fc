"""Compare our generator of Raven's matrices with raven-gen (pip install raven-gen==0.3.2; GPL-3, not needed for anything else).

    PYTHONHASHSEED=0 python benchmarks/raven_distribution.py [puzzles of raven-gen, default 2000]

Prints the time per puzzle of both (for drawing rules and panels, not the picture), and the differences between the shares of all
combinations of layout, component, attribute, rule and step, in standard errors.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from arguments import count, parser_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from compositional.datasets import raven

OURS = 10000


def theirs(puzzles: int) -> Counter:
    """Counts in raven-gen's puzzles, with the bounds of Whitehouse's data."""
    from raven_gen import Matrix, MatrixType
    from raven_gen.component import ComponentType as Component
    from raven_gen.component import LayoutType as Layout
    from raven_gen.rule import Ruleset, RuleType

    np.random.seed(0)
    Matrix.oblique_angle_rotations(allowed=False)
    kinds = {
        MatrixType.ONE_SHAPE: {},
        MatrixType.FOUR_SHAPE: {(Component.NONE, Layout.GRID_FOUR): 3},
        MatrixType.FIVE_SHAPE: {(Component.NONE, Layout.GRID_FIVE): 5},
        MatrixType.TWO_SHAPE_VERTICAL_SEP: {(Component.LEFT, Layout.CENTER): 3, (Component.RIGHT, Layout.CENTER): 3},
        MatrixType.TWO_SHAPE_HORIZONTAL_SEP: {(Component.UP, Layout.CENTER): 3, (Component.DOWN, Layout.CENTER): 3},
        MatrixType.SHAPE_IN_SHAPE: {(Component.OUT, Layout.CENTER): 5, (Component.IN, Layout.CENTER): 5},
    }
    for kind, sizes in kinds.items():
        Matrix.attribute_bounds[kind].update({component: {"size_min": size} for component, size in sizes.items()})
    names = dict(zip(kinds, raven.TYPES, strict=True))
    shares = [share for share, _ in raven.TYPES.values()]
    rules = Ruleset(size_rules=[RuleType.CONSTANT])
    found: Counter = Counter()
    for _ in range(puzzles):
        kind = list(kinds)[np.random.choice(len(kinds), p=shares)]
        for component, own in enumerate(Matrix.make(kind, ruleset=rules).rules):
            for rule in own.all:
                found[names[kind], component, rule.attr.name.lower(), rule.name.name.lower(), int(rule.value or 0)] += 1
    return found


def ours() -> Counter:
    """Counts in our puzzles."""
    found: Counter = Counter()
    for number in range(OURS):
        matrix = raven.generate(1, number)
        for component, rules in enumerate(matrix.rules):
            found.update((matrix.type, component, rule.attribute, rule.name, rule.step) for rule in rules)
    return found


def main() -> None:
    """Compare both generators and print the results."""
    parser = parser_of(__doc__)
    parser.add_argument("puzzles", type=count, nargs="?", default=2000, help="of raven-gen")
    puzzles = parser.parse_args().puzzles
    if find_spec("raven_gen") is None:
        sys.exit("raven-gen is not installed: pip install raven-gen==0.3.2")
    theirs(1)  # imports raven-gen, which is not to be timed
    start = time.perf_counter()
    left = theirs(puzzles)
    middle = time.perf_counter()
    right = ours()
    end = time.perf_counter()
    print(f"ms per puzzle: raven-gen {1e3 * (middle - start) / puzzles:.2f}, ours {1e3 * (end - middle) / OURS:.2f}")
    distances = []
    for key in left | right:
        p, q = left[key] / puzzles, right[key] / OURS
        both = (left[key] + right[key]) / (puzzles + OURS)
        error = math.sqrt(both * (1 - both) * (1 / puzzles + 1 / OURS))
        distances.append((abs(p - q) / error, key, p, q))
    print(f"{len(distances)} combinations, largest differences (standard errors, combination, share in raven-gen, in ours):")
    for row in sorted(distances, reverse=True)[:5]:
        print(*row)


if __name__ == "__main__":
    main()
