"""COGS: sentences to logical forms. The test set is the generalization set, with 21 categories of what is new.

18 categories have known words in new roles (lexical), 3 have known structures in new places or at new depths (structural). The
members are train, validation (dev), in_distribution (the published test.tsv) and test (the published gen.tsv).
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import cogs
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "cogs"
PARAMETERS = {
    "exposure_examples": {
        "enum": [1, 100],
        "default": 1,
        "description": "how often training has each of 143 words alone and each of 12 others in a sentence (100: train_100.tsv)",
    },
}
_BY_DESIGN = "drawn from the training distribution, in which a sentence can come twice"
STRUCTURAL = ("cp_recursion", "pp_recursion", "obj_pp_to_subj_pp")


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """24,155 (or 39,500) training pairs, and 3,000 validation, 3,000 in-distribution and 21,000 test pairs."""
    members = {
        "train": "train.tsv" if parameters["exposure_examples"] == 1 else "train_100.tsv",
        "validation": "dev.tsv",
        "in_distribution": "test.tsv",
    }
    found: dict = {name: [row[:2] for row in cogs.load(raw / file)] for name, file in members.items()}
    found["test"] = [
        (sentence, form, f"{'structural' if category in STRUCTURAL else 'lexical'}/{category}")
        for sentence, form, category in cogs.load(raw / "gen.tsv")
    ]
    disjoint = [
        {"columns": ["input"], "members": ["test"]},
        {"columns": ["input"], "members": ["validation", "in_distribution"], "by_design": _BY_DESIGN},
    ]
    return sentence_pairs.task(found, "in_distribution", disjoint=disjoint, decoding={"semantic": True})
