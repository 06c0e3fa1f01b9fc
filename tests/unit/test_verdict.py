"""The verdict: gains by task and term from tables, each with the way in which its lambda was chosen."""

from __future__ import annotations

import runpy
from importlib import import_module
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from compositional.configuration.configuration import configuration

VERDICT = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "verdict.py"))
COLUMNS = ["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"]


def rows(task, model, settings, compositional=None):
    """(regularizer, lambda, test accuracies by seed): rows of a table; compositional: validation accuracy by setting."""
    found = []
    for regularizer, strength, values in settings:
        for seed, value in enumerate(values):
            members = {"test": value}
            if compositional:
                members |= {"compositional": compositional[regularizer, strength], "in_distribution": 1.0}
            for split, accuracy in members.items():
                key = (task, model, regularizer, strength, seed, split)
                found += [(*key, "accuracy", accuracy), (*key, "loss", 1 - accuracy)]
    return found


@pytest.fixture
def folders(tmp_path):
    """Today's ablation and the reference's ablation, selection and comparison."""
    today, reference = tmp_path / "today", tmp_path / "reference"
    today.mkdir()
    reference.mkdir()
    model = "primitive_attention"
    settings = [("none", 0.0, (0.1, 0.2)), ("entropy", 0.1, (0.5, 0.5)), ("entropy", 1.0, (0.9, 0.7))]
    validation = {("none", 0.0): 0.1, ("entropy", 0.1): 0.9, ("entropy", 1.0): 0.2, ("dropout", 0.1): 0.0}
    chosen_on = rows("scan_jump_select_look", model, [*settings, ("dropout", 0.1, (0.3, 0.3))], validation)
    digits = [("none", 0.0, (0.7, 0.7)), ("recombination", 1.0, (0.8, 0.82)), ("recombination", 10.0, (0.9, 0.92))]
    tables = {
        today / "ablation": rows("scan_jump", model, settings),
        reference / "ablation": rows("scan_jump", model, [(name, s, (0.0, 0.0)) for name, s, _ in settings]),
        reference / "selection": chosen_on + rows("digits_concat", "cnn", digits),
        reference / "comparison": rows("scan_jump", model, [settings[0], ("smoothness", 0.1, (0.0, 0.11))]),
    }
    for path, content in tables.items():
        pd.DataFrame(content, columns=COLUMNS).to_csv(f"{path}.csv", index=False)
    return {today: False, reference: True}


def test_validation_chooses_lambda_and_todays_table_has_priority(folders):
    found = VERDICT["cells"](folders)
    cell = found["SCAN jump, two streams", "entropy"]
    # On look, 0.1 is chosen, although 1 is better on the test set. Its gains are 0.4 and 0.3; 12.706 * 0.05 exceeds their mean.
    assert (cell.strength, cell.how, cell.reference, cell.helps) == (0.1, "chosen", False, "open")
    assert cell.gain.tolist() == pytest.approx([0.4, 0.3])
    assert VERDICT["text"](cell) == "+0.35 ± 0.64\nλ = 0.1, n = 2"


def test_a_term_that_validation_does_not_choose_gains_nothing(folders):
    cell = VERDICT["cells"](folders)["SCAN jump, two streams", "dropout"]
    assert VERDICT["text"](cell) == "plain chosen"
    assert cell.gain.tolist() == [0, 0]


def test_an_oracle_and_a_configured_lambda_are_distinguished(folders):
    found = VERDICT["cells"](folders)
    digits, smooth = found["pairs of digits, CNN", "recombination"], found["SCAN jump, two streams", "smoothness"]
    assert (digits.strength, digits.how, digits.reference, digits.helps) == (10, "oracle", True, "open")
    assert (smooth.strength, smooth.how, smooth.reference, smooth.helps) == (0.1, "configured", True, "open")
    assert set(found) == {("SCAN jump, two streams", name) for name in ("entropy", "dropout", "smoothness")} | {
        ("pairs of digits, CNN", "recombination")
    }


def test_the_page_counts_its_cells_and_the_image_states_why_others_are_empty(folders):
    found = VERDICT["cells"](folders)
    page = VERDICT["page"](found)
    counts = " ".join(page.split())
    # Both seeds of recombination gain about 0.2, and both of smoothness lose about 0.1: their intervals exclude 0.
    assert "4 have a table. The interval is above 0 in 0 (helps), below 0 in 0 (harms), and includes 0 in 1 (open)." in counts
    assert "2 more exclude 0 but are open: in 0, the lambda is an oracle's; 2 have fewer than 3 seeds. In 1, the plain" in counts
    assert "In 0 of 4 cells, the gain is above 0" in counts
    # One degree of freedom: p is 0.030 (t = 21), 0.034 (19) and 0.090 (7); three times the first is the largest product.
    assert (
        "| SCAN jump, two streams | entropy | +0.350 ± 0.635 | 0.1, chosen | open | 0.091 | 2 | `scan_jump` (0.150) | results |"
        in page
    )
    figure = VERDICT["draw"](found)
    shown = [text.get_text() for text in figure.axes[0].texts]
    plt.close(figure)
    assert "–" in shown
    assert any(text.endswith("λ = 0.1°, n = 2") for text in shown)
    assert "no table" in shown
    never = [row.missing for row in VERDICT["ROWS"] if row.missing]
    assert set(never) < set(shown)
    assert len(shown) == (len(VERDICT["ROWS"]) - len(never)) * len(VERDICT["TERMS"]) + len(never)


def a_cell(gains, how="configured", strength=1.0):
    return VERDICT["Cell"](pd.Series(gains), strength, "term", how, True, "task", 0.5)


def test_survivors_of_diverged_runs_give_no_verdict(folders):
    """Three of six runs diverged, and all of a second lambda: its table has two lambdas, so the first is an oracle's."""
    path = next(iter(folders)) / "ablation.csv"
    lost = float("nan")
    settings = [
        ("none", 0.0, (0.1, 0.11, 0.12, 0.13, 0.14, 0.15)),
        ("smoothness", 0.1, (0.9, 0.92, 0.91, lost, lost, lost)),
        ("recombination", 0.1, (0.9, 0.92, 0.91, 0.9, 0.9, 0.9)),
        ("recombination", 1.0, (lost,) * 6),
    ]
    pd.DataFrame(rows("scan_jump", "primitive_attention", settings), columns=COLUMNS).to_csv(path, index=False)
    found = VERDICT["cells"](folders)
    cell = found["SCAN jump, two streams", "smoothness"]
    assert (cell.how, cell.lost, cell.helps) == ("configured", 3, "open")
    assert found["SCAN jump, two streams", "recombination"].how == "oracle"
    assert "| 3, 3 diverged |" in VERDICT["page"](found)


def test_an_oracle_may_harm_but_cannot_help():
    gains = [0.10, 0.11, 0.12]
    assert [a_cell(gains, how).helps for how in ("chosen", "configured", "oracle")] == ["helps", "helps", "open"]
    assert a_cell([-gain for gain in gains], "oracle").helps == "harms"


def test_holm_s_correction_multiplies_the_smallest_p_by_the_number_of_cells():
    # With two degrees of freedom, p = 1 - t / sqrt(t**2 + 2); t is 11 * sqrt(3) and 1. No run differs in `same`: p = 1.
    found = {"large": a_cell([0.10, 0.11, 0.12]), "small": a_cell([0.0, 0.0, 0.1]), "same": a_cell([0.0, 0.0, 0.0])}
    found |= {"plain": a_cell([0.0, 0.0], strength=0.0), "one seed": a_cell([0.1])}
    corrected = VERDICT["corrected"](found)
    assert corrected == pytest.approx({"large": 3 * (1 - (363 / 365) ** 0.5), "small": 2 * (1 - 3**-0.5), "same": 1.0})


def test_only_what_remains_after_correction_is_bold_and_gains_without_exposure_are_counted():
    label = "SCAN jump, LSTM"
    found = {(label, "recombination"): a_cell([0.900, 0.901, 0.902])}
    # p is 0.030 and 0.035, so the intervals exclude 0; Holm's method doubles the first, and the second is at least as large.
    found |= {(label, "entropy"): a_cell([0.11, 0.20, 0.18]), (label, "homomorphism"): a_cell([0.10, 0.20, 0.18])}
    assert {cell.helps for cell in found.values()} == {"helps"}
    figure = VERDICT["draw"](found)
    bold = [text.get_text().partition(" ")[0] for text in figure.axes[0].texts if text.get_fontweight() == "bold"]
    plt.close(figure)
    assert bold == ["+0.90"]
    page = " ".join(VERDICT["page"](found).split())
    assert "1 of the 3 and 0 of the 0 remain (p < 0.05)." in page
    assert "Without plain regularizers and terms that can show inputs of the test set, 2 gains are left, 0 of them" in page
    assert "In 1 of 3 cells, the gain is above 0" in page
    assert "In 0 of these, the term is compositional and cannot show" in page


def test_a_term_is_meant_only_for_tasks_on_which_it_can_be_trained():
    """Other cells would count as possible, and the picture would say that their table is missing."""
    asked = configuration()
    refused = [
        (row.label, term, why)
        for row in VERDICT["ROWS"]
        for term, (_, meant_for) in VERDICT["TERMS"].items()
        for task in row.tasks[:1]
        if row.of in meant_for and (why := asked.impossible(task, row.model, term))
    ]
    assert refused == []


def test_the_examples_of_a_row_are_what_its_terms_need(tmp_path):
    """What no declaration states: images with a redundant half, whose halves are exchanged, and expressions that are reversed."""
    asked, few = configuration(), {"train_pairs": 16, "test_pairs": 16, "train_images": 2, "test_images": 2}
    for row in VERDICT["ROWS"]:
        if row.of in ("sentences", "logical forms") or asked.raw_files(row.tasks[0]):
            continue
        options = asked.parameters("tasks", row.tasks[0])
        build = import_module(f"compositional.{asked.module('tasks', row.tasks[0])}").build
        members, about = build(tmp_path, options | {key: value for key, value in few.items() if key in options})
        if row.of in (VERDICT["EXPRESSIONS"], VERDICT["CHAINS"]):
            assert ("equivalent" in members["train"].column_names) == (row.of == VERDICT["EXPRESSIONS"]), row.label
        else:
            assert (about["component_width"] is not None) == (row.of == VERDICT["PAIRS"]), row.label


def test_the_page_in_the_repository_agrees_with_its_reference():
    reference = {folder: kept for folder, kept in VERDICT["FOLDERS"].items() if kept}
    assert VERDICT["PAGE"].read_text() == VERDICT["page"](VERDICT["cells"](reference)), "call make verdict without results/tables"
