"""Translation of captions: sentences with a new pair of words, subwords, scores and captions."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from support import raw, small

from compositional.evaluation import decoding
from compositional.figures import translation
from compositional.language import adjectives
from compositional.plugins import defaults
from compositional.tasks import multi30k


def build(**options):
    return multi30k.build(small.raw_files("multi30k"), defaults("tasks.multi30k") | {"subwords": 200} | options)


def text(member, column: str) -> list[str]:
    return [decoding.join_subwords(row) for row in member[column][:]]


@pytest.mark.parametrize(
    ("target", "first"), [("de", "Ein roter Kater im Schnee läuft."), ("fr", "Un chat rouge dans la neige court.")]
)
def test_the_test_set_has_the_sentences_with_a_new_pair(target, first):
    members, about = build(target=target)
    assert {name: len(member) for name, member in members.items()} == {
        "train": 88,
        "validation": 2,
        "in_distribution": 4,
        "test": 2,
    }
    assert text(members["test"], "input") == ["A red cat in the snow runs.", "A red cat in the snow sits."]
    assert text(members["test"], "output")[0] == first
    assert list(about["references"].values()) == [4, 4, 2]
    assert about["in_distribution"] == "in_distribution"


def test_punctuation_marks_are_separate_subwords_and_can_be_joined_again():
    members, _ = build()
    assert all(row.endswith(" .") for row in members["train"]["output"])
    lower, _ = build(lower_case=True)
    assert text(lower["test"], "output") == [row.lower() for row in text(members["test"], "output")]


def test_a_pair_is_an_adjective_with_a_noun_that_ends_the_phrase():
    trained = [
        adjectives.words(line) for line in ("A frisbee, a coat and the rain.", "A rain coat in a rain coat.", "Her purple hat.")
    ]
    nouns = adjectives.nouns(trained)
    assert nouns == {"frisbee", "coat", "hat"}  # "rain" occurs twice before "coat" and once alone
    described = adjectives.words("A purple frisbee in yellow rain, a red coat hanging by a big hat box.")
    assert adjectives.pairs(described, nouns) == [("purple", "frisbee"), ("red", "coat")]


def test_bleu_of_raw_text_states_its_signature():
    found = decoding._bleu_of_raw_text([("", "▁A ▁d og ▁run s ▁here .", "▁a ▁dog ▁runs ▁here .")])
    signature = next(name for name in found if name.startswith("bleu nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:"))
    assert found["bleu"] == found[signature]
    # In "A dog runs here ." 4 of 5 words, 3 of 4 pairs, 2 of 3 triples and 1 of 2 quadruples are right; case matters.
    assert found["bleu"] == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert found["bleu, lower-cased tokens"] == pytest.approx(100)


def test_the_caption_states_both_sets_the_gain_and_published_numbers():
    runs = {"none": [(30.0, 20.0), (32.0, 24.0)], "consistency": [(33.0, 21.0), (34.0, 29.0)]}
    rows = [("multi30k", "t", "none", 0.0, 0, "reference", "test_2016_flickr: sentences", 1000.0)]
    for name, values in runs.items():
        for seed, (whole, new) in enumerate(values):
            run = ("multi30k", "t", name, float(name != "none"), seed)
            rows += [(*run, "in_distribution", "bleu", whole), (*run, "test", "bleu", new)]
            rows += [
                (*run, "in_distribution", "bleu nrefs:1|tok:13a", whole),
                (*run, "in_distribution", translation._LOWER, whole + 1),
            ]
    table = pd.DataFrame(rows, columns=["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"])
    options = {
        "methods": {"plain": "t/none/lambda=0", "two passes": "t/consistency/lambda=1"},
        "against": {"two passes": "plain"},
        "published": {"multi30k": {"tiny": {"bleu": 41.02, "source": "Wu et al. 2021"}}},
    }
    figure, said = translation.draw(table, options)
    plt.close(figure)
    assert "(sacrebleu, nrefs:1|tok:13a)" in said
    assert "* multi30k (sentences 1000)" in said
    # Gains: 3 and 2, and 1 and 5 on new pairs; half widths are Student's t, 12.706 s / sqrt(2).
    assert "gain over plain: +2.500 ± 6.353, and +3.000 ± 25.412 on those" in said
    assert "published, tiny: 41.02 (Wu et al. 2021)" in said
    with pytest.raises(ValueError, match="no run has bleu on in_distribution"):
        translation.draw(table[table.split == "test"], options)


def test_the_published_files_have_the_documented_counts(tmp_path):
    members, about = multi30k.build(raw.published("multi30k", tmp_path), defaults("tasks.multi30k"))
    counts = {"train": 29_000, "validation": 1_014, "in_distribution": 1_000, "test": 52}
    assert {name: len(member) for name, member in members.items()} == counts
    assert [*about["references"].values()] == [1_000, 394, 52]
