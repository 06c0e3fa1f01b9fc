"""Equivariance under exchanges of names in logical forms, by a chosen type; `recombination` with `exchange: terms` has but one.

R = CE(p(. | x'), y'), summed over positions, mean over a batch of pairs (x', y') under exchanges (`language.kinds_of_terms`).
By place a city can stand where a state did, which makes questions that no one asks. Like other swaps, these can make questions of
the test set.
"""

from __future__ import annotations

from torch import Tensor

from compositional import randomness
from compositional.kinds import Recombined
from compositional.kinds.sequence import Batch, SequenceSplit
from compositional.language import kinds_of_terms
from compositional.regularizers import Step, recombination

APPLIES_TO = ("sequence",)
REPRESENTATIONS: tuple = ()
PARAMETERS = {
    "types": {
        "enum": ["place", "kind", "both"],
        "default": "kind",
        "description": "which terms are alike: arguments of one symbol, those of one function (states, cities, rivers), or both",
    },
}
_EXCHANGES = 20  # for each training pair; which ones is the same for every run


class _Exchanged(recombination._Swapped):
    """Other pairs than `recombination` has, drawn as it draws. Here, not there: an edit there would train all swaps again."""

    def __init__(self, split: SequenceSplit, types: str) -> None:
        source = randomness.generator(randomness.derive("terms"))
        pairs = kinds_of_terms.exchanged(split.input_sentences(), split.output_sentences(), _EXCHANGES, source, types)
        inputs, outputs = ([pair[side] for pair in pairs] for side in (0, 1))
        self.split = SequenceSplit(inputs, outputs, split.source, split.target, split.device)
        self.layouts = {}


def prepare(parameters: dict, split: SequenceSplit) -> _Exchanged:
    """The training pairs under exchanges.

    Raises:
        ValueError: there is nothing to exchange.
    """
    return _Exchanged(split, parameters["types"])


def penalty(step: Step[Batch | Recombined]) -> Tensor:
    """(R,)."""
    return recombination.penalty(step)
