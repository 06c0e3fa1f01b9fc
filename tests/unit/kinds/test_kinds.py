"""The declarations of the kinds of task."""

from __future__ import annotations

from compositional.kinds import sequence
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
