"""Two clauses in training, five to twelve in the test: the task of An and Du (arXiv 2601.18858), see datasets.repeated_verbs.

A model must write symbol t at word t, before it has read the clause that the symbol comes from. The references are therefore the
accuracies of a rule that needs no network, "write the last verb read".
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import repeated_verbs
from compositional.tasks.shared import sentence_pairs

KIND = "tagging"
DATASET = "repeated_verbs"
PARAMETERS = {
    "noise_words": {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "meaningless words inserted into each training sentence; the test has none",
    },
    "train_sentences": {
        "type": "integer",
        "minimum": 1,
        "default": 2000,
        "description": "distinct training sentences, or all if there are fewer (without noise there are 144)",
    },
    "draw": {"type": "integer", "minimum": 0, "default": 0, "description": "seed of the training sentences"},
}


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Training sentences, and the published test set: 200 sentences for each number of clauses. Reads no file."""
    own = parameters["noise_words"], parameters["train_sentences"], parameters["draw"]
    tests = {f"clauses/{clauses}": repeated_verbs.published(clauses) for clauses in repeated_verbs.LENGTHS}
    members: dict[str, list] = {
        "train": repeated_verbs.draw(2, *own),
        "test": [(*pair, category) for category, pairs in tests.items() for pair in pairs],
    }
    shares = {category: repeated_verbs.last_verb_read(pairs) for category, pairs in tests.items()}
    references = {"last verb read": sum(shares.values()) / len(shares)}
    references |= {f"last verb read of {category}": share for category, share in shares.items()}
    return sentence_pairs.task(members, "train", references=references)
