"""GeoQuery in FunQL (Kate, Wong and Mooney, AAAI 2005), with the splits of Yang, Zhang and Yang, "SUBS" (NAACL 2022).

Most published numbers on GeoQuery are for these files: those of SUBS, of SpanSub (Li, Wei and Lian, ACL 2023), and of the methods
with which they compare. Questions (src) and forms (tgt) are in parallel files, one per line, with spaces between words. The query
split is called "comp" there, the question split "iid". The repository names no license.
"""

from __future__ import annotations

import re
from pathlib import Path

FILES = {
    "query.src.train": {
        "sha256": "70ff5c27ce4011a936c71bcb7b2498a6153ccb049df66a759f9aac9b86ee9763",
        "bytes": 21_800,
        "mirror": "geoquery_funql/query/src.train",
        "url": "https://raw.githubusercontent.com/SALT-NLP/SUBS/4f2d7917a247cae6a16799cdb779e25ceaf88763"
        "/geo_subs_comp_orig_data/src.train",
        "when": {"split": "query"},
    },
    "query.src.val": {
        "sha256": "671acc08f4703da8a9661f23aab27fb0deb033f61818c86800f7f3c65e95c720",
        "bytes": 2_430,
        "mirror": "geoquery_funql/query/src.val",
        "url": "https://raw.githubusercontent.com/SALT-NLP/SUBS/4f2d7917a247cae6a16799cdb779e25ceaf88763"
        "/geo_subs_comp_orig_data/src.val",
        "when": {"split": "query"},
    },
    "query.src.test": {
        "sha256": "46a71545a6c040221783615d847165ed013a92b60776c6092bbd95d857f6c2d8",
        "bytes": 11_239,
        "mirror": "geoquery_funql/query/src.test",
        "url": "https://raw.githubusercontent.com/SALT-NLP/SUBS/4f2d7917a247cae6a16799cdb779e25ceaf88763"
        "/geo_subs_comp_orig_data/src.test",
        "when": {"split": "query"},
    },
    "query.tgt.train": {
        "sha256": "459b694eeda5e118268b7bd4c86fe711b24bb65ab457c0a806a7334ab7e7235c",
        "bytes": 32_214,
        "mirror": "geoquery_funql/query/tgt.train",
        "url": "https://raw.githubusercontent.com/SALT-NLP/SUBS/4f2d7917a247cae6a16799cdb779e25ceaf88763"
        "/geo_subs_comp_orig_data/tgt.train",
        "when": {"split": "query"},
    },
    "query.tgt.val": {
        "sha256": "09d60178f386b7cde1025651f59acaff2543243cabdb05ef77fa6605c2b9288d",
        "bytes": 3_412,
        "mirror": "geoquery_funql/query/tgt.val",
        "url": "https://raw.githubusercontent.com/SALT-NLP/SUBS/4f2d7917a247cae6a16799cdb779e25ceaf88763"
        "/geo_subs_comp_orig_data/tgt.val",
        "when": {"split": "query"},
    },
    "query.tgt.test": {
        "sha256": "b7b099dee6ec80aaab499ec3c2955db044311842d7704f14be275e0a533ad9f8",
        "bytes": 15_622,
        "mirror": "geoquery_funql/query/tgt.test",
        "url": "https://raw.githubusercontent.com/SALT-NLP/SUBS/4f2d7917a247cae6a16799cdb779e25ceaf88763"
        "/geo_subs_comp_orig_data/tgt.test",
        "when": {"split": "query"},
    },
    "question.src.train": {
        "sha256": "ee2f91d60f1dba3b29ae85e73a7a6bdb117012371d115c6686ed934b6c712128",
        "bytes": 21_977,
        "mirror": "geoquery_funql/question/src.train",
        "url": "https://raw.githubusercontent.com/SALT-NLP/SUBS/4f2d7917a247cae6a16799cdb779e25ceaf88763"
        "/geo_subs_iid_orig_data/src.train",
        "when": {"split": "question"},
    },
    "question.src.val": {
        "sha256": "8d53754b4dbb4d23854b9f32b46a44422db93631faf1d6ee0b6892901ad38a4c",
        "bytes": 2_354,
        "mirror": "geoquery_funql/question/src.val",
        "url": "https://raw.githubusercontent.com/SALT-NLP/SUBS/4f2d7917a247cae6a16799cdb779e25ceaf88763"
        "/geo_subs_iid_orig_data/src.val",
        "when": {"split": "question"},
    },
    "question.src.test": {
        "sha256": "545a6583c34130858174a92ab2535d49c0dcce395d577fce8ac8103fd15e7b49",
        "bytes": 11_138,
        "mirror": "geoquery_funql/question/src.test",
        "url": "https://raw.githubusercontent.com/SALT-NLP/SUBS/4f2d7917a247cae6a16799cdb779e25ceaf88763"
        "/geo_subs_iid_orig_data/src.test",
        "when": {"split": "question"},
    },
    "question.tgt.train": {
        "sha256": "659febb6a8dd21c61a5d7e98d063a61b3838ddb20ef4c6d781344f0084afd387",
        "bytes": 31_863,
        "mirror": "geoquery_funql/question/tgt.train",
        "url": "https://raw.githubusercontent.com/SALT-NLP/SUBS/4f2d7917a247cae6a16799cdb779e25ceaf88763"
        "/geo_subs_iid_orig_data/tgt.train",
        "when": {"split": "question"},
    },
    "question.tgt.val": {
        "sha256": "b3a9b2d52cf55aa9861a41d6972eb2fb4b7810c497394cfda9e1f23b2701a6df",
        "bytes": 3_436,
        "mirror": "geoquery_funql/question/tgt.val",
        "url": "https://raw.githubusercontent.com/SALT-NLP/SUBS/4f2d7917a247cae6a16799cdb779e25ceaf88763"
        "/geo_subs_iid_orig_data/tgt.val",
        "when": {"split": "question"},
    },
    "question.tgt.test": {
        "sha256": "d87b5723a3922b5a86942c09d1c7f72b877ef39d27ddf8dd90782686518eb18c",
        "bytes": 15_949,
        "mirror": "geoquery_funql/question/tgt.test",
        "url": "https://raw.githubusercontent.com/SALT-NLP/SUBS/4f2d7917a247cae6a16799cdb779e25ceaf88763"
        "/geo_subs_iid_orig_data/tgt.test",
        "when": {"split": "question"},
    },
}
_MEMBERS = {"train": "train", "validation": "val", "test": "test"}


def category(form: str) -> str:
    """What a form asks for (its first function inside answer) and the kinds of places it names: "asks/len; names/river"."""
    functions = re.findall(r"_?(\S+) \(", form)
    kinds = sorted({name.removesuffix("id") for name in functions if name.endswith("id")})
    return "; ".join([f"asks/{functions[1]}", *(f"names/{kind}" for kind in kinds or ["none"])])


def load(raw: Path, split: str, commas: str, functions: str) -> dict[str, list[tuple[str, str]]]:
    """Pairs (question, form) by member.

    Args:
        split: "query" (no form of the test set is in training) or "question".
        commas: "split" from the names, or "glued" to the last word of a name, as in the files; no question contains such a word.
        functions: "marked" with an underscore, so that none of them is a word of a question, or "plain", as in the files.
    """
    found = {}
    for name, file in _MEMBERS.items():
        questions, forms = ((raw / f"{split}.{side}.{file}").read_text(encoding="utf-8").splitlines() for side in ("src", "tgt"))
        if commas == "split":
            forms = [" ".join(form.replace(",", " , ").split()) for form in forms]
        if functions == "marked":
            forms = [re.sub(r"(\S+) \(", r"_\1 (", form) for form in forms]
        found[name] = list(zip(questions, forms, strict=True))
    return found
