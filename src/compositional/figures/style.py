"""What the figures have in common."""

from __future__ import annotations

import numpy as np
from scipy import stats

RC = {
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.hashsalt": "compositional",
}

# Okabe and Ito's colors, told apart by readers with any color vision.
COLORS = {
    "none": "#000000",
    "entropy": "#0072B2",
    "recombination": "#D55E00",
    "additivity": "#009E73",
    "smoothness": "#CC79A7",
}

# Setting A: the redundant component is informative in training; B: it is not.
SETTINGS = {"A": "#D55E00", "B": "#0072B2"}


def color(name: str) -> str:
    """A regularizer's color; new ones get one of the rest of the palette, by name."""
    rest = ["#56B4E9", "#E69F00", "#999999"]
    return COLORS.get(name, rest[sum(map(ord, name)) % len(rest)])


def interval(values: np.ndarray) -> float:
    """Half width of the 95 % confidence interval of the mean (Student's t); 0 for a single value."""
    if len(values) < 2:
        return 0.0
    return float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
