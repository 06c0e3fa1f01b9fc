"""GeoQuery in FunQL: questions to forms without variables. In the query split, no form of the test set is in training.

Most published numbers are for these data, but read outputs in another way than we do (`evaluation.readings`). Metrics therefore
include that reading, too. In the query split, validation pairs are like training pairs, not like test pairs. The task `geoquery`
has logical forms in Prolog.
"""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.datasets import geoquery_funql
from compositional.tasks.shared import sentence_pairs

KIND = "sequence"
DATASET = "geoquery_funql"
PARAMETERS = {
    "split": {"enum": ["query", "question"], "default": "query", "description": "what is new in the test set"},
    "commas": {
        "enum": ["split", "glued"],
        "default": "split",
        "description": "commas after names of cities: separate symbols, or part of the symbol before, as in the files",
    },
    "functions": {
        "enum": ["marked", "plain"],
        "default": "marked",
        "description": "with an underscore, so that no function is a word of a question; or plain, as in the files",
    },
}
_BY_DESIGN = "published so: 3 pairs of the test set and 82 of its forms are in training"


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Training, validation and test: 519, 54 and 253 pairs in the query split, 513, 57 and 256 in the question split."""
    by_query = parameters["split"] == "query"
    disjoint = {"columns": ["input"], "members": ["test"]} | ({} if by_query else {"by_design": _BY_DESIGN})
    return sentence_pairs.task(
        geoquery_funql.load(raw, parameters["split"], parameters["commas"], parameters["functions"]),
        "validation",
        lambda _, form: geoquery_funql.category(form),
        disjoint=[disjoint, {"columns": ["output"], "members": ["test"]}] if by_query else [disjoint],
        decoding={"beam": 1, "bleu": False, "brackets": True},
    )
