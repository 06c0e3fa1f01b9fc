"""What the kinds of task declare."""

from __future__ import annotations

from compositional.kinds import sequence
from compositional.layers.ragged import ROWS
from compositional.plugins import available, contract, declarations, kinds_that


def test_every_declaration_is_one_that_the_contract_knows():
    for kind in available("kinds"):
        declared = {name for name in declarations(f"kinds.{kind}") if not name.startswith("_")}
        assert declared <= set(contract("kinds").names), kind


def test_what_a_kind_does_not_declare_has_its_default():
    assert declarations("kinds.composite")["BATCH_MULTIPLE"] == 1
    assert kinds_that("REPRESENTED") == ["image", "sequence"]


def test_batches_of_sequences_are_cut_as_their_layout_needs():
    assert sequence.BATCH_MULTIPLE == ROWS
