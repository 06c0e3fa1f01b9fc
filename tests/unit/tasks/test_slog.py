"""SLOG: its categories by group, the content of its archive and, if the published files are available, their counts."""

from __future__ import annotations

from collections import Counter

import pytest
from support import raw, small

from compositional.configuration.configuration import configuration
from compositional.datasets import slog as dataset
from compositional.language import lexicon
from compositional.stages.split import audit
from compositional.tasks import slog


def test_the_test_set_comes_from_the_archive_with_its_groups():
    members, about = slog.build(small.raw_files("slog"), {})
    assert Counter(members["test"]["category"][:]) == {
        "position/PP_modif_subj": 1,
        "questions/Q_modified_NPs": 1,
        "recursion/PP_3": 5,
    }
    assert members["train"]["input"][:].count("like") == 2  # as published: repeated, not removed
    counts = audit(members, about["disjoint"])
    assert [(count["member"], count["in_training"]) for count in counts] == [
        ("validation", 0),
        ("in_distribution", 0),
        ("test", 0),
    ]
    assert about["in_distribution"] == "in_distribution"


def test_there_are_seventeen_categories_in_four_groups():
    assert {group: len(own) for group, own in slog.GROUPS.items()} == {"recursion": 6, "position": 4, "gap": 1, "questions": 6}
    assert len({category for own in slog.GROUPS.values() for category in own}) == 17


def test_published_accuracies_of_the_categories_average_to_the_published_total():
    single, total = (
        configuration().figures[f"{name}_slog"]["options"]["published"]["slog"] for name in ("per_category", "comparison")
    )
    for system, values in single.items():
        assert set(values) == {f"{group}/{name}" for group, own in slog.GROUPS.items() for name in own}
        assert sum(values.values()) / 17 == pytest.approx(total[system]["mean"], abs=5e-4)  # rounded to three digits


def test_the_published_files_have_the_documented_counts(tmp_path):
    folder = raw.published("slog", tmp_path)
    types = Counter(category for _, _, category in dataset.load(folder / "train.tsv"))
    assert sum(count for name, count in types.items() if name.startswith("exposure_example")) == 12
    assert {name: count for name, count in types.items() if not name.startswith("exposure_example")} == {
        "in_distribution": 24_000,
        "object_modifying_RC": 5_082,
        "wh_Q_simple_trans": 2_328,
        "pp_4": 451,
        "primitive": 183,
        "center_embed_4": 179,
        "center_embed_2": 163,
        "cp_4": 157,
        "standalone_NP_PP": 100,
        "standalone_NP_RC": 100,
    }
    members, about = slog.build(folder, {})
    assert {name: len(member) for name, member in members.items()} == {
        "train": 32_755,
        "validation": 4_046,
        "in_distribution": 4_046,
        "test": 17_000,
    }
    assert set(Counter(members["test"]["category"][:]).values()) == {1000}
    assert len(set(members["test"]["category"][:])) == 17
    assert [count["distinct_in_training"] for count in audit(members, about["disjoint"])] == [0, 0, 0]
    repeated = {sentence for sentence, count in Counter(members["train"]["input"][:]).items() if count > 1}
    assert repeated == {"notice", "respect", "admire", "value", "like", "appreciate", "tolerate"}
    # 782 words and 661 symbols, all in training, plus three that mark starts, ends and padding.
    assert (len(about["source_words"]), len(about["target_words"])) == (785, 664)
    words = {word for sentence in members["train"]["input"][:] for word in sentence.split()}
    assert all(set(sentence.split()) <= words for sentence in members["test"]["input"][:])
    longest = {name: max(len(form.split()) for form in members[name]["output"][:]) for name in ("train", "test")}
    assert longest == {"train": 76, "test": 200}
    types = lexicon.infer(members["train"]["input"][:], members["train"]["output"][:])
    assert [len(words) for words in types] == [100, 13, 222, 3, 2, 2]  # names, verbs with infinitives, nouns, prepositions
