"""Equivariance under exchanges of names in logical forms, with a choice of types; `recombination` with `exchange: terms` has one.

R = CE(p(. | x'), y'), summed over positions and averaged over a batch of pairs (x', y') after exchanges
(`language.kinds_of_terms`). With the type `place`, a city can replace a state, which results in unnatural questions. Like other
swaps, these can produce questions of the test set.
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
        "description": "which terms are exchanged. place: arguments of the same symbol; kind: names in the same function "
        "(states, cities, rivers); both: half of the exchanges of each",
    },
}
_EXCHANGES = 20  # exchanges per training pair, the same for every run


class _Exchanged(recombination._Swapped):
    """Pairs that differ from those of `recombination` but are drawn in the same way. This class is not in that module, because
    editing it would retrain all runs with swaps."""

    def __init__(self, split: SequenceSplit, types: str) -> None:
        source = randomness.generator(randomness.derive("terms"))
        pairs = kinds_of_terms.exchanged(split.input_sentences(), split.output_sentences(), _EXCHANGES, source, types)
        inputs, outputs = ([pair[side] for pair in pairs] for side in (0, 1))
        self.split = SequenceSplit(inputs, outputs, split.source, split.target, split.device)
        self.layouts = {}


def prepare(parameters: dict, split: SequenceSplit) -> _Exchanged:
    """The training pairs after exchanges.

    Raises:
        ValueError: no term can be exchanged for another.
    """
    return _Exchanged(split, parameters["types"])


def penalty(step: Step[Batch | Recombined]) -> Tensor:
    """R, (R,)."""
    return recombination.penalty(step)
