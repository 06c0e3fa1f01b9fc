"""GeoQuery in FunQL: questions into forms without variables; in the query split no form of the test set is in training.

The data of most published numbers, which are read in another way than ours (`evaluation.readings`); so metrics have that, too. In
the query split validation pairs are like training's, not like the test set's. The task `geoquery` has Prolog's forms.
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
        "description": "commas after names of cities: symbols of their own, or part of the one before, as in the files",
    },
}
_BY_DESIGN = "published so: 3 pairs of the test set and 82 of its forms are in training"


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Training, validation and test: 519, 54 and 253 pairs by query, 513, 57 and 256 by question."""
    by_query = parameters["split"] == "query"
    disjoint = {"columns": ["input"], "members": ["test"]} | ({} if by_query else {"by_design": _BY_DESIGN})
    return sentence_pairs.task(
        geoquery_funql.load(raw, parameters["split"], parameters["commas"]),
        "validation",
        lambda _, form: geoquery_funql.category(form),
        disjoint=[disjoint, {"columns": ["output"], "members": ["test"]}] if by_query else [disjoint],
        decoding={"beam": 1, "bleu": False, "brackets": True},
    )
