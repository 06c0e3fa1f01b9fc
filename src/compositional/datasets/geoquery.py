"""GeoQuery (Zelle, Mooney 1996): 877 questions on US geography with logical forms, split by Finegan-Dollak et al. (ACL 2018)."""

from __future__ import annotations

import json
import re
from pathlib import Path

FILES = {
    "geography-logic.txt": {
        "sha256": "a2f0843204a2937f62940015868d99acd8f6c17b659144846a752b71feb20024",
        "bytes": 285_492,
        "mirror": "geoquery/geography-logic.txt",
        "url": "https://raw.githubusercontent.com/jkkummerfeld/text2sql-data/5050bad2309a93636ea4788d3660c9202bf11e0e"
        "/data/non-sql-data/geography-logic.txt",
    },
}
_MEMBERS = {"train": "train", "validation": "dev", "test": "test"}


def _fill(text: str, values: dict[str, str]) -> str:
    return " ".join(values.get(word, word) for word in text.split())


def category(form: str) -> str:
    """What a logical form asks for (its first predicate) and the kinds of places it names: "asks/population; names/state"."""
    asked = re.findall(r"_(\w+)", form)[0]
    kinds = sorted(set(re.findall(r"_(\w+)id \(", form)))
    return "; ".join([f"asks/{asked}", *(f"names/{kind}" for kind in kinds or ["none"])])


def load(raw: Path, split: str, fill: bool) -> dict[str, list[tuple[str, str]]]:
    """Pairs (question, logical form) by member.

    Args:
        split: "question" (new questions, most of them with known forms) or "query" (no template of a logical form occurs in two
            members).
        fill: whether names of places replace the variables var0 and var1.
    """
    rows: dict[str, list] = {name: [] for name in _MEMBERS.values()}
    for template in json.loads((raw / "geography-logic.txt").read_text(encoding="utf-8")):
        form = template["logic"][0]
        for sentence in template["sentences"]:
            values = sentence["variables"] if fill else {}
            where = (sentence if split == "question" else template)[f"{split}-split"]
            rows[where].append((_fill(sentence["text"], values), _fill(form, values)))
    return {name: rows[published] for name, published in _MEMBERS.items()}
