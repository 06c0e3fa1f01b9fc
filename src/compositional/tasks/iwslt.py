"""IWSLT'15: translation of talks between English and Vietnamese in subwords, scored by BLEU.

The validation set is tst2012, the test set tst2013.

The vocabulary is a byte-pair encoding (Sennrich, Haddow, Birch, ACL 2016) of both languages together, learned from the training
sentences with the library `tokenizers`. Nothing is held out on purpose, so the test set measures ordinary generalization.
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import iwslt
from compositional.tasks.shared import sentence_pairs, subwords

KIND = "sequence"
DATASET = "iwslt"
PARAMETERS = {
    "source": {"enum": ["en", "vi"], "default": "en", "description": "language to translate from; the other one is the target"},
    "subwords": {"type": "integer", "minimum": 300, "default": 10000, "description": "size of the vocabulary of both languages"},
    "longest": {
        "type": "integer",
        "minimum": 1,
        "default": 100,
        "description": "maximum number of subwords of each side of a training pair; longer pairs are left out of training",
    },
    "beam": {"type": "integer", "minimum": 1, "default": 5, "description": "hypotheses kept in decoding; 1 is greedy"},
}
_BY_DESIGN = "short sentences such as thanks recur in talks"


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """133,317 training pairs (minus the longest), 1,553 validation and 1,268 test pairs; subwords are separated by spaces."""
    source, target = (parameters["source"], "vi" if parameters["source"] == "en" else "en")
    members = subwords.encoded(iwslt.load(raw, source, target), parameters["subwords"])
    members["train"] = [pair for pair in members["train"] if max(len(side.split()) for side in pair) <= parameters["longest"]]
    return sentence_pairs.task(
        members,
        "validation",
        decoding={"beam": parameters["beam"], "bleu": True},
        disjoint=[{"columns": ["input"], "members": ["validation", "test"], "by_design": _BY_DESIGN}],
    )
