"""The figure of contexts: what twice as many commands or rows change is compared where the other is the same."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from support import doses

from compositional.figures import exposure_contexts
from compositional.plugins import defaults

# By rows and commands: an accuracy per draw.
CELLS = {
    (4, 1): (0.1, 0.2, 0.1),
    (4, 4): (0.3, 0.4, 0.5),
    (16, 1): (0.1, 0.2, 0.1),
    (16, 4): (0.3, 0.4, 0.5),
    (16, 16): (0.5, 0.6, 0.7),
}


def table(cells=CELLS) -> pd.DataFrame:
    return doses.table(
        (
            f"task{rows}_{commands}_{draw}",
            "none",
            0.0,
            value,
            {"composed commands": commands, "rows of composed commands": rows, "draw": draw, "bits of the verb": rows / 16},
        )
        for (rows, commands), values in cells.items()
        for draw, value in enumerate(values)
    )


def caption(found: pd.DataFrame) -> str:
    figure, text = exposure_contexts.draw(found, defaults("figures.exposure_contexts"))
    plt.close(figure)
    return text


def test_a_change_is_a_mean_over_neighbors_per_doubling_by_draw():
    rows = pd.DataFrame(
        {
            "draw": [0, 0, 0, 0, 1, 1],
            "commands": [1, 4, 1, 2, 1, 4],
            "rows": [4, 4, 8, 8, 4, 4],
            "value": [0.1, 0.5, 0.2, 0.3, 0, np.nan],
        }
    )
    found = exposure_contexts.doubling(rows, "commands", "rows")
    # Draw 0: (0.5 - 0.1) / 2 with 4 rows and (0.3 - 0.2) / 1 with 8. In draw 1, nothing is known.
    assert found[0] == pytest.approx((0.2 + 0.1) / 2)
    assert np.isnan(found[1])


def test_the_caption_separates_commands_from_rows():
    text = caption(table())
    # Draws 0, 1, 2: four times as many commands change (0.2, 0.2, 0.2), (0.2, 0.2, 0.4), (0.2, 0.2, 0.4): means / 2.
    assert "does not matter, as if the entropy alone decided: DOES NOT HOLD (twice as many: +0.122 ± " in text
    assert "accuracy rises with the entropy: open, the interval includes 0 (twice as many rows: +0.000 ± 0.000)" in text
    assert "4 rows: 1: 0.133, 4: 0.400; 16 rows: 1: 0.133, 4: 0.400, 16: 0.600" in text
    assert "entropy: 0.250 bits in 4 rows, 1.000 bits in 16 rows" in text


def test_two_draws_decide_nothing():
    assert caption(table({cell: values[:2] for cell, values in CELLS.items()})).count("open, too few draws to judge") == 2


def test_each_method_has_two_panels():
    both = pd.concat([table(), table().assign(model="lstm_attention")])
    options = {"methods": {"first": "cnn/none/lambda=0", "second": "lstm_attention/none/lambda=0"}}
    figure, text = exposure_contexts.draw(both, defaults("figures.exposure_contexts") | options)
    labels = [axes.get_ylabel() for axes in figure.axes]
    plt.close(figure)
    assert labels == ["accuracy, first", "", "accuracy, second", ""]
    assert ("* first, by" in text, "* second, by" in text) == (True, True)


def test_a_task_without_rows_is_refused():
    found = table()
    with pytest.raises(ValueError, match="'task16_16_0' has no number of rows; use tasks of scan_exposure with `rows`"):
        caption(found[~((found.task == "task16_16_0") & (found.metric == "rows of composed commands"))])
