"""SLOG: sentences to logical forms without variables. The test set has 17 categories of new structures.

Training shows every word and every piece of structure. The test set has deeper structures, depths between those shown, and pieces
in new places. The members are train, validation (dev), in_distribution (the published test.tsv) and test (the generalization
sets). Training contains seven verbs twice as sentences of one word, as published.
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import slog
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "slog"
PARAMETERS: dict = {}
# Groups of published numbers by what is new: the depth, the place of a phrase or clause, the gap in a clause, the question.
GROUPS = {
    "recursion": ("PP_3", "PP_5-12", "CP_3", "CP_5-12", "center_embed_3", "center_embed_5-12"),
    "position": ("PP_modif_subj", "PP_modif_iobj", "RC_modif_subj", "RC_modif_iobj"),
    "gap": ("RC_iobj_extracted",),
    "questions": ("Q_subj_active", "Q_subj_passive", "Q_dobj_ditransV", "Q_iobj_ditransV", "Q_modified_NPs", "Q_long_mv"),
}


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """32,755 training, 4,046 validation, 4,046 in-distribution and 17,000 test pairs. No test input is in training.

    Raises:
        KeyError: a category of the test set is in no group.
    """
    members = {"train": "train.tsv", "validation": "dev.tsv", "in_distribution": "test.tsv"}
    found: dict = {name: [row[:2] for row in slog.load(raw / file)] for name, file in members.items()}
    groups = {category: group for group, own in GROUPS.items() for category in own}
    found["test"] = [
        (sentence, form, f"{groups[category]}/{category}")
        for sentence, form, category in slog.load(raw / "generalization_sets.zip")
    ]
    disjoint = [{"columns": ["input"], "members": ["validation", "in_distribution", "test"]}]
    return sentence_pairs.task(found, "in_distribution", disjoint=disjoint)
