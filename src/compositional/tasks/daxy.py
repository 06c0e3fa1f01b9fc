"""Translation with one new word: training shows "daxy" in one sentence only, the test set in eight others.

Every other word of the eight is in training, in the same places. Sentences without the new word say how well the network
translates at all. An English sentence can have several translations: exact match asks for the one that is given ("tu es daxiste",
where "vous etes daxiste" would be right, too), BLEU takes all of a member.
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
        "description": "how often training has the sentence with the new word; 1,000 as published, a tenth of it",
    },
    "contexts": {
        "type": "integer",
        "minimum": 0,
        "maximum": 7,
        "default": 0,
        "description": "how many of the eight sentences are training sentences instead, from the first on, each as often",
    },
}


def _context(english: str) -> str:
    """What stands before the new word: "context/he_is_not"."""
    return f"context/{english.partition(daxy.WORD)[0].strip().replace(' ', '_')}"


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """9,999 training pairs and the copies; 1,183 in distribution; the 8 of the test set, without those that training shows.

    The published file of ordinary test sentences begins with the eight: they are taken out of it.
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
