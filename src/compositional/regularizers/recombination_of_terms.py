"""Equivariance under exchanges of names in logical forms, with a choice of types; `recombination` with `exchange: terms` has one.

R = CE(p(. | x'), y'), summed over positions and averaged over a batch of pairs (x', y') after exchanges
(`language.kinds_of_terms`). With the type `place`, a city can replace a state, which results in unnatural questions. Like other
swaps, these can produce questions of the test set.
"""

from __future__ import annotations

from functools import partial

from torch import Tensor

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


def prepare(parameters: dict, split: SequenceSplit) -> recombination._Swapped:
    """The training pairs after exchanges.

    Raises:
        ValueError: no term can be exchanged for another.
    """
    return recombination._Swapped(split, partial(kinds_of_terms.exchanged, types=parameters["types"]))


def penalty(step: Step[Batch | Recombined]) -> Tensor:
    """R, (R,)."""
    return recombination.penalty(step)
