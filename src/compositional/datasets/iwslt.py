"""IWSLT'15 English-Vietnamese (Luong and Manning 2015): 133,317 pairs of tokenized sentences from talks, one per line.

The checksums are those that the Hugging Face library `datasets` recorded for its `mt_eng_vietnamese`.
"""

from __future__ import annotations

from pathlib import Path

from compositional.datasets.shared import parallel_text

FILES = {
    "train.en": {
        "sha256": "c26dfeed74b6bf3752f5ca552f2412456f0de153f7c804df8717931fb3a5c78a",
        "mirror": "iwslt/train.en",
        "url": "https://nlp.stanford.edu/projects/nmt/data/iwslt15.en-vi/train.en",
    },
    "train.vi": {
        "sha256": "707206edf2dc0280273952c7b70544ea8a1363aa69aaeb9d70514b888dc3067d",
        "mirror": "iwslt/train.vi",
        "url": "https://nlp.stanford.edu/projects/nmt/data/iwslt15.en-vi/train.vi",
    },
    "tst2012.en": {
        "sha256": "b8fbcd0d4199d41276421d1f7228298df67dd9e2c5c134c2ee8cdf3ec27801e2",
        "mirror": "iwslt/tst2012.en",
        "url": "https://nlp.stanford.edu/projects/nmt/data/iwslt15.en-vi/tst2012.en",
    },
    "tst2012.vi": {
        "sha256": "01004078b3f36b0c46e81b65fc6851230b3c823405c76d1d82ef3b786b512ff0",
        "mirror": "iwslt/tst2012.vi",
        "url": "https://nlp.stanford.edu/projects/nmt/data/iwslt15.en-vi/tst2012.vi",
    },
    "tst2013.en": {
        "sha256": "3860ce60bc5b85d96cc2d3d580cf1bc9d62440e939c1b964676d3607c4e8f1df",
        "mirror": "iwslt/tst2013.en",
        "url": "https://nlp.stanford.edu/projects/nmt/data/iwslt15.en-vi/tst2013.en",
    },
    "tst2013.vi": {
        "sha256": "29af16842808da2812b8fd4d47fc05d082ba870e60ab7755090ad04b380994cd",
        "mirror": "iwslt/tst2013.vi",
        "url": "https://nlp.stanford.edu/projects/nmt/data/iwslt15.en-vi/tst2013.vi",
    },
}
_MEMBERS = {"train": "train", "validation": "tst2012", "test": "tst2013"}


def load(raw: Path, source: str, target: str) -> dict[str, list[tuple[str, str]]]:
    """Pairs of sentences in the languages `source` and `target` ("en", "vi") by member; pairs with an empty side are left out."""
    return {name: parallel_text.read(raw, file, (source, target)) for name, file in _MEMBERS.items()}
