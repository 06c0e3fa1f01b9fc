"""The sentences of `repeated_verbs`, written by a decoder: an output that can be right, and counts only as a whole.

In `repeated_verbs`, symbol t must be written at word t, before its clause has been read. Here a network reads the whole sentence
first. Training has sentences of two clauses, the validation set other such sentences, and the test set sentences of three to
twelve clauses; those of five to twelve are the published test set.
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional import randomness
from compositional.datasets import repeated_verbs
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "repeated_verbs"
PARAMETERS = {
    "validation_sentences": {
        "type": "integer",
        "minimum": 1,
        "maximum": 143,
        "default": 24,
        "description": "sentences of two clauses that are held out, of 144",
    },
    "draw": {"type": "integer", "minimum": 0, "default": 0, "description": "seed of the held-out sentences"},
}
_MORE = 2000  # than there are sentences of two clauses, so that all 144 are drawn


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Training, validation and test sentences. Reads no file."""
    pairs = repeated_verbs.draw(2, 0, _MORE, 0)
    source = randomness.generator(randomness.derive("repeated_verbs_written", parameters["draw"]))
    shuffled, held = [pairs[place] for place in source.permutation(len(pairs))], parameters["validation_sentences"]
    members: dict[str, list] = {
        "train": shuffled[held:],
        "validation": shuffled[:held],
        "test": [
            (*pair, f"clauses/{clauses}")
            for clauses in range(3, repeated_verbs.LENGTHS.stop)
            for pair in repeated_verbs.published(clauses)
        ],
    }
    return sentence_pairs.task(
        members,
        "validation",
        disjoint=[{"columns": ["input"], "members": ["test", "validation"]}],
    )
