"""GeoQuery: questions to logical forms. In the query split, no template of a form occurs both in training and in the test set.

The question split is the control: its test questions are new, but most of their logical forms occur in training.
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import geoquery
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "geoquery"
PARAMETERS = {
    "split": {"enum": ["query", "question"], "default": "query", "description": "what is new in the test set"},
    "entities": {
        "enum": ["words", "variables"],
        "default": "words",
        "description": "whether names of places stay or are replaced by var0 and var1, in questions and logical forms",
    },
    "train_on_validation": {
        "type": "boolean",
        "default": False,
        "description": "whether validation pairs are used for training, as in the published comparisons (Andreas 2020)",
    },
}
_BY_DESIGN = "without the names of places, some questions fall together"


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Training, validation and test: 543, 148 and 186 pairs in the query split, 549, 49 and 279 in the question split.

    In the query split the validation set requires recombination, too, and is therefore named `validation_recombinations`. If
    validation pairs are used for training, as published, there are 691 and 598 training pairs.
    """
    members = geoquery.load(raw, parameters["split"], parameters["entities"] == "words")
    if parameters["train_on_validation"]:
        members["train"] += members.pop("validation")
    disjoint: list[dict] = [{"columns": ["input"], "members": ["test"]}]
    if parameters["entities"] == "variables":
        disjoint[0]["by_design"] = _BY_DESIGN
    if parameters["split"] == "query":
        disjoint.append({"columns": ["output"], "members": ["test"]})
    # Only in the question split are validation pairs like training pairs. The member's name shows what accuracy on it measures.
    if "validation" in members and parameters["split"] == "query":
        members["validation_recombinations"] = members.pop("validation")
    return sentence_pairs.task(
        members,
        "validation" if "validation" in members else "train",
        lambda _, form: geoquery.category(form),
        disjoint=disjoint,
    )
