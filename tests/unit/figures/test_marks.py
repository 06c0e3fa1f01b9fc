"""Marks that several figures share."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from compositional.figures.shared import intervals, style


@pytest.mark.parametrize("across", [True, False])
def test_the_legend_shows_intervals_in_the_direction_of_the_panels(across):
    _, axes = plt.subplots()
    axes.errorbar([0.5], [0.5], **{"xerr" if across else "yerr": [0.1]})
    (handle,), _ = style.legend_entries([axes], style.INTERVAL)
    assert (handle.has_xerr, handle.has_yerr) == (across, not across)


@pytest.mark.parametrize("mark", ["|", "s", "^"])
def test_intervals_have_caps_with_every_mark(mark):
    _, axes = plt.subplots()
    intervals.seeds_and_mean(axes, np.array([0.2, 0.4, 0.6]), 0, "k", mark=mark)
    _, caps, _ = axes.containers[0]
    assert all(cap.get_markeredgewidth() > 0 for cap in caps)
