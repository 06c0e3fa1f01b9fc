"""English sentences that begin with a pronoun and "to be", with French translations, and one new word, "daxy".

This is the translation test of Lake and Baroni (ICML 2018) in the files of Russin, Jo, O'Reilly and Bengio (2019): lower case,
without accents, with spaces between words and punctuation.
"""

from __future__ import annotations

from pathlib import Path

LICENSE = {
    "name": "MIT",
    "url": "https://github.com/jlrussin/syntactic_attention/blob/f8219cafb75ca435f6508a441ec402498682e542/LICENSE",
    "redistribution": True,
}
FILES = {
    # The license requires that every copy contains its text.
    "LICENSE": {
        "sha256": "77c62bbea49066b7eb697f589d01acd9b3d51c1ea349a70df7bca8a6afb1f8d8",
        "bytes": 1_065,
        "mirror": "daxy/LICENSE",
        "url": "https://raw.githubusercontent.com/jlrussin/syntactic_attention/f8219cafb75ca435f6508a441ec402498682e542/LICENSE",
    },
    "train": {
        "sha256": "91c811fa30a0170ec626b0bb0ac4404bdf70345f083712c6908bdc46054cf1c4",
        "bytes": 619_487,
        "mirror": "daxy/train",
        "url": "https://raw.githubusercontent.com/jlrussin/syntactic_attention/f8219cafb75ca435f6508a441ec402498682e542/data/MT/train",
    },
    "test": {
        "sha256": "20206bd2b8d38d4b3715c39a2b4a470cec5ddfb30426462dc7231c606ff32e8c",
        "bytes": 73_380,
        "mirror": "daxy/test",
        "url": "https://raw.githubusercontent.com/jlrussin/syntactic_attention/f8219cafb75ca435f6508a441ec402498682e542/data/MT/test",
    },
    "test.daxy": {
        "sha256": "a37633e0aff91aa9efe13cd10f37f5bdaac8404b7cb4f3781217e7a7672bb5b3",
        "bytes": 376,
        "mirror": "daxy/test.daxy",
        "url": "https://raw.githubusercontent.com/jlrussin/syntactic_attention/f8219cafb75ca435f6508a441ec402498682e542"
        "/data/MT/test.daxy",
    },
}
WORD = "daxy"
SHOWN = ("i am daxy .", "je suis daxiste .")  # the file train.daxy is the file train plus 1,000 copies of this pair


def load(path: Path) -> list[tuple[str, str]]:
    """Pairs (English, French) of one file, whose lines are "IN: <English> OUT: <French>"."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(english, french) for english, french in (line.removeprefix("IN: ").split(" OUT: ") for line in lines)]
