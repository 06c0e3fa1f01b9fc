"""Multi30k: translation of captions from English to German or French in subwords, scored by BLEU. Images are not used.

The test set consists of the sentences of test_2016_flickr with an adjective and a noun that occur next to each other in no
training caption (`language.adjectives` defines both), although each of the two words is in training. The complete
test_2016_flickr, to which published numbers refer, is the member in_distribution. Both languages share their subwords, which are
learned on training captions.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import multi30k
from compositional.language import adjectives
from compositional.tasks.shared import sentence_pairs, subwords

KIND = "sequence"
DATASET = "multi30k"
PARAMETERS = {
    "target": {"enum": ["de", "fr"], "default": "de", "description": "language to translate to, from English"},
    "subwords": {"type": "integer", "minimum": 200, "default": 4000, "description": "size of the vocabulary of both languages"},
    "lower_case": {
        "type": "boolean",
        "default": False,
        "description": "whether all sentences are in lower case, as in most published work",
    },
    "beam": {"type": "integer", "minimum": 1, "default": 5, "description": "hypotheses kept in decoding; 1 is greedy"},
}
_BY_DESIGN = "captions recur: none of test_2016_flickr is in training, some of the validation set may be"


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """29,000 training and 1,014 validation pairs, the 1,000 of test_2016_flickr, and those of these with a new pair of words."""
    pairs = multi30k.load(raw, parameters["target"])
    if parameters["lower_case"]:
        pairs = {name: [(left.lower(), right.lower()) for left, right in rows] for name, rows in pairs.items()}
    trained = [adjectives.words(english) for english, _ in pairs["train"]]
    nouns, adjacent = adjectives.nouns(trained), {pair for sentence in trained for pair in pairwise(sentence)}
    described = [set(adjectives.pairs(adjectives.words(english), nouns)) for english, _ in pairs["in_distribution"]]
    members = subwords.encoded(pairs, parameters["subwords"], punctuation=True)
    members["test"] = [row for row, found in zip(members["in_distribution"], described, strict=True) if found - adjacent]
    return sentence_pairs.task(
        members,
        "in_distribution",
        decoding={"beam": parameters["beam"], "bleu": "raw"},
        disjoint=[
            {"columns": ["input"], "members": ["in_distribution", "test"]},
            {"columns": ["input"], "members": ["validation"], "by_design": _BY_DESIGN},
        ],
        references={
            "test_2016_flickr: sentences": len(described),
            "test_2016_flickr: sentences with an adjective and a noun": sum(map(bool, described)),
            "test_2016_flickr: sentences with such a pair that is new": len(members["test"]),
        },
    )
