"""Translation with one new word: training shows "daxy" in one sentence only, the test set in eight others.

All other words of the eight sentences occur in training in the same positions. Sentences without the new word show how well the
network translates in general. An English sentence can have several translations. Exact match requires the given one ("tu es
daxiste", although "vous etes daxiste" would be right, too); BLEU uses all translations that a member has.
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import daxy
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "daxy"
PARAMETERS = {
    "copies": {
        "type": "integer",
        "minimum": 1,
        "default": 1000,
        "description": "how often training has the sentence with the new word; 1,000 as published, a tenth of training",
    },
    "contexts": {
        "type": "integer",
        "minimum": 0,
        "maximum": 7,
        "default": 0,
        "description": "how many of the eight test sentences, from the first on, are training sentences instead, each as often",
    },
}


def _context(english: str) -> str:
    """The words before the new word, as a category: "context/he_is_not"."""
    return f"context/{english.partition(daxy.WORD)[0].strip().replace(' ', '_')}"


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """9,999 training pairs plus the copies; 1,183 in-distribution pairs; the 8 test pairs except those shown in training.

    The published file of ordinary test sentences begins with the eight sentences, which are removed from it.
    """
    eight = daxy.load(raw / "test.daxy")
    shown = [daxy.SHOWN, *eight[: parameters["contexts"]]]
    members = {
        "train": daxy.load(raw / "train") + shown * parameters["copies"],
        "in_distribution": [pair for pair in daxy.load(raw / "test") if daxy.WORD not in pair[0].split()],
        "test": eight[parameters["contexts"] :],
    }
    return sentence_pairs.task(
        members,
        "in_distribution",
        lambda english, _: _context(english),
        disjoint=[{"columns": ["input"], "members": ["in_distribution", "test"]}],
        decoding={"beam": 1, "bleu": "words"},
    )
