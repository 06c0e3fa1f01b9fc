"""The figure of doses: distances in commands come from the curves."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from support import doses

from compositional.figures import exposure_dose
from compositional.plugins import defaults

COMMANDS = (0, 8, 32)
PLAIN = {0: (0.0, 0.1), 8: (0.4, 0.5), 32: (1.0, 0.9)}  # by number of commands, an accuracy per draw
NOISY = {0: (0.8, 0.8)}


def table(plain=PLAIN, noisy=NOISY) -> pd.DataFrame:
    return doses.table(
        (
            f"task{commands}_{draw}",
            regularizer,
            strength,
            value,
            {"composed commands": commands, "draw": draw, "bits of the verb": 1.5 + commands / 100},
        )
        for regularizer, strength, given in (("none", 0.0, plain), ("entropy", 0.1, noisy))
        for commands, values in given.items()
        for draw, value in enumerate(values)
    )


def caption(found: pd.DataFrame) -> str:
    figure, text = exposure_dose.draw(found, defaults("figures.exposure_dose"))
    plt.close(figure)
    return text


def test_a_distance_is_where_the_curve_first_reaches_the_accuracy():
    curve = pd.Series([0.0, 0.5, 0.4, 1.0], index=[0, 3, 7, 15])
    assert exposure_dose.dose(curve, 0.0) == 0
    assert exposure_dose.dose(curve, 0.5) == pytest.approx(3)
    assert exposure_dose.dose(curve, 0.25) == pytest.approx(1)  # halfway from log 1 to log 4
    assert exposure_dose.dose(curve, 0.7) == pytest.approx(np.expm1((np.log(8) + np.log(16)) / 2))
    assert exposure_dose.dose(curve, 1.1) == np.inf


def test_the_caption_states_distances_draw_by_draw():
    text = caption(table())
    # Draw 0 passes 0.8 two thirds of the way from 8 to 32, draw 1 three quarters; in log(1 + n).
    low, high = (np.expm1(np.log(9) + share * np.log(33 / 9)) for share in (2 / 3, 3 / 4))
    assert f"same accuracy: {(low + high) / 2:.1f} (median of 2 draws, from {low:.1f} to {high:.1f})" in text
    # Nine tenths of it are 0.72: 0.32 of the 0.6 between 8 and 32 in draw 0, and 0.22 of the 0.4 in draw 1.
    low, high = (np.expm1(np.log(9) + share * np.log(33 / 9)) for share in (0.32 / 0.6, 0.22 / 0.4))
    assert f"nine tenths of it: {(low + high) / 2:.1f} (median of 2 draws, from {low:.1f} to {high:.1f})" in text
    assert "cnn (2 draws): 0: 0.050, 8: 0.450, 32: 0.950" in text
    assert "rises from 8 to 32 commands: open, too few draws to judge (+0.500 ± 1.271)" in text  # 12.706 * 0.1 / sqrt 2 * sqrt 2
    assert "Entropy of the verb, bits: 0: 1.500, 8: 1.580, 32: 1.820." in text


def test_a_distance_leaves_out_a_plain_run_that_diverged():
    text = caption(table(plain=PLAIN | {8: (np.nan, 0.5)}))
    low, high = np.expm1(0.8 * np.log(33)), np.expm1(np.log(9) + 3 / 4 * np.log(33 / 9))  # draw 0: from 0 to 32 commands
    assert f"same accuracy: {(low + high) / 2:.1f} (median of 2 draws, from {low:.1f} to {high:.1f})" in text


def test_one_draw_has_no_interval():
    found = table()
    one = found[found.task.str.endswith("_0")]
    assert "rises from 8 to 32 commands: open, too few draws to judge (" in caption(one)


def test_an_accuracy_that_no_number_of_commands_reaches_is_reported_as_beyond():
    assert "same accuracy: more than 32 in all 2 draws" in caption(table(noisy={0: (1.0, 1.0)}, plain=PLAIN | {32: (0.9, 0.9)}))
    some = caption(table(noisy={0: (0.95, 0.95)}))
    assert "more than 32 (median of 2 draws, from 28.6 to more than 32, in 1 of them)" in some


@pytest.mark.parametrize("noisy", [{0: (np.nan, np.nan)}, {0: (np.nan, 0.8)}])
def test_no_distance_is_stated_for_draws_that_diverged(noisy):
    text = caption(table(noisy=noisy, plain={count: (values[0], np.nan) for count, values in PLAIN.items()}))
    assert "same accuracy: unknown, because in no draw both have runs that did not diverge" in text


def test_no_distance_is_stated_for_a_method_without_a_run_at_no_commands():
    assert "same accuracy: unknown, because no run of the method is without commands" in caption(table(noisy={8: (0.8, 0.8)}))


def test_a_clear_rise_holds():
    draws = {0: (0.0, 0.1, 0.0), 8: (0.4, 0.5, 0.4)}
    assert "rises from 8 to 32 commands: holds" in caption(table(plain=draws | {32: (0.9, 0.99, 0.9)}))
    unclear = caption(table(plain=draws | {32: (0.9, 0.4, 0.9)}))
    assert "rises from 8 to 32 commands: open, the interval includes 0" in unclear


def test_two_draws_confirm_no_rise():
    assert "rises from 8 to 32 commands: open, too few draws" in caption(table(plain=PLAIN | {8: (0.4, 0.5), 32: (0.9, 0.99)}))


def test_a_task_without_a_number_of_commands_is_refused():
    rows = table()
    with pytest.raises(ValueError, match="'task0_0' has no number of commands; use tasks of scan_exposure"):
        exposure_dose.draw(rows[rows.task.ne("task0_0") | rows.split.ne("reference")], defaults("figures.exposure_dose"))


def test_without_entropies_there_is_one_panel_with_the_words_of_its_options():
    rows = table()
    rows = rows[rows.metric != "bits of the verb"]
    words = {"shown": "songs", "tested": "dances", "design": "Songs are short."}
    figure, text = exposure_dose.draw(rows, defaults("figures.exposure_dose") | words)
    (panel,) = figure.axes
    plt.close(figure)
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("songs in training", "accuracy, dances")
    assert "Accuracy on dances against the number of songs in training. Songs are short." in text
    assert "cnn (2 draws): 0: 0.050, 8: 0.450, 32: 0.950" in text
    assert "ntropy" not in text.replace("entropy 0.1", "")
