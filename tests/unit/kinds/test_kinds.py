"""The declarations of the kinds of task."""

from __future__ import annotations

import numpy as np
import torch

from compositional.kinds import composite, puzzle, sequence
from compositional.layers.ragged import ROWS
from compositional.plugins import available, contract, declarations, kinds_that


def test_the_contract_knows_every_declaration():
    for kind in available("kinds"):
        declared = {name for name in declarations(f"kinds.{kind}") if not name.startswith("_")}
        assert declared <= set(contract("kinds").names), kind


def test_declarations_that_a_kind_omits_have_their_defaults():
    assert declarations("kinds.composite")["BATCH_MULTIPLE"] == 1
    assert kinds_that("REPRESENTED") == ["image", "sequence"]


def test_the_batch_multiple_of_sequences_is_the_layouts_number_of_rows():
    assert sequence.BATCH_MULTIPLE == ROWS


def test_every_kind_says_which_columns_models_see():
    for kind in available("kinds"):
        declared = declarations(f"kinds.{kind}")
        alternatives = {"entry", "probe"} if kind == "tensor" else set()  # of which a task has one
        assert declared["INPUTS"], kind
        assert set(declared["INPUTS"]) <= set(declared["COLUMNS"]) | alternatives, kind


def test_pixels_of_puzzles_are_between_plus_and_minus_one():
    split = puzzle.PuzzleSplit(np.array([[[0, 255]], [[51, 204]]]), np.array([0, 1]), "cpu")
    batch = split.batch(torch.tensor([[1, 0]]))
    torch.testing.assert_close(batch.images, torch.tensor([[[[[-0.6, 0.6]]], [[[-1.0, 1.0]]]]]))
    assert batch.labels.tolist() == [[1, 0]]


def test_every_batch_of_a_part_of_the_composites_is_spread_over_all_of_them():
    """They are sorted by combination, and batch normalization takes statistics from such batches."""
    about = {"mean": [0.5], "std": [0.2], "distance": 0, "augment": False, "target": "number"}
    pool, items = torch.zeros(4, 1, 2, 2, dtype=torch.uint8), np.repeat(np.arange(4), 25)[:, None]
    split = composite.CompositeSplit(pool, items, items, items[:, 0], about, "cpu")
    batches = split.evaluation_batches(2, 16, 48)
    assert [batch.targets.shape[1] for _, batch in batches] == [16, 16, 16]
    assert all(set(batch.targets[0].tolist()) == {0.0, 1.0, 2.0, 3.0} for _, batch in batches)
    rows = torch.cat([rows for rows, _ in batches])
    assert len(set(rows.tolist())) == 48
    whole = torch.cat([rows for rows, _ in split.evaluation_batches(2, 16)])
    assert whole.tolist() == list(range(100))
