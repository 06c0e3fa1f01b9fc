"""SLOG: sentences into logical forms without variables; the test set has 17 categories of structures that are new.

Training shows every word and every piece of structure; the test set asks for deeper ones, for depths between those shown, and for
pieces in places not shown. The members: train, validation (dev), in_distribution (the published test.tsv) and test (the
generalization sets). Seven verbs stand twice in training as sentences of one word, as published.
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import slog
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "slog"
PARAMETERS: dict = {}
# As published numbers are grouped: what is new is the depth, where a phrase or clause stands, the gap in a clause, the question.
GROUPS = {
    "recursion": ("PP_3", "PP_5-12", "CP_3", "CP_5-12", "center_embed_3", "center_embed_5-12"),
    "position": ("PP_modif_subj", "PP_modif_iobj", "RC_modif_subj", "RC_modif_iobj"),
    "gap": ("RC_iobj_extracted",),
    "questions": ("Q_subj_active", "Q_subj_passive", "Q_dobj_ditransV", "Q_iobj_ditransV", "Q_modified_NPs", "Q_long_mv"),
}


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """32,755 training pairs, 4,046 for validation, 4,046 in distribution, 17,000 to generalize to. No test input is in training.

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
