"""Puzzles together with a population of programs: one generation of one loop of evolution. Run i trains program i.

Search alone finds the first generation. Every later one is built from the runs of the previous generation: it keeps the better
half of the programs by training accuracy and compresses them, and adds new ones from a search that the kept programs guide.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from datasets import DatasetDict

from compositional.runs import Run
from compositional.synthesis import population
from compositional.synthesis.programs import Library

KIND = "puzzle"
DATASET = "raven"
# The parameters that determine from what a generation is built: a task with the puzzles and, from the second value of `along` on,
# the runs of the previous task in its series.
BUILT_FROM = {"task": "puzzles", "along": "generation", "model": "network", "seeds": "population"}
PARAMETERS = {
    "puzzles": {"type": "string", "default": "raven", "description": "the task with the puzzles"},
    "loop": {"type": "integer", "minimum": 0, "default": 0, "description": "seed of the loop; each loop has its own networks"},
    "generation": {"type": "integer", "minimum": 1, "default": 1, "description": "number of the generation; 1 is the first"},
    "network": {"type": "string", "default": "graph_structured", "description": "the model that trains the programs"},
    "population": {
        "type": "integer",
        "minimum": 2,
        "default": 50,
        "description": "programs of a generation; all have different graphs",
    },
    "kept": {
        "type": "number",
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.5,
        "description": "share of the programs that survives: the best by training accuracy (ties: by training loss)",
    },
    "programs": {
        "type": "integer",
        "minimum": 1,
        "default": 1000000,
        "description": "programs enumerated in one exploration",
    },
    "library": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "inventions that the first generation starts with, such as {fn_0: (push (add (connect #0)))}",
    },
    "max_nodes": {
        "type": "integer",
        "minimum": 2,
        "default": 32,
        "description": "graphs with more nodes are left out; at most the model's `max_nodes`",
    },
    "max_edges": {"type": "integer", "minimum": 1, "default": 64, "description": "as `max_nodes`, for edges"},
    "pseudocount": {"type": "number", "exclusiveMinimum": 0, "default": 0.001, "description": "of re-estimation"},
    "max_range": {
        "type": "number",
        "minimum": 0,
        "default": 0.5,
        "description": "range to which the re-estimated log probabilities are compressed; 0: uniform",
    },
    "inventions": {"type": "integer", "minimum": 0, "default": 3, "description": "maximum of new inventions per compression"},
    "max_arity": {"type": "integer", "minimum": 0, "default": 2, "description": "maximum number of arguments of an invention"},
}


def rank(metrics: Sequence[Path]) -> list[int]:
    """Seeds of runs from best to worst by training accuracy, ties by training loss; diverged runs are last.

    Raises:
        ValueError: a file has no training accuracy.
    """
    keys = []
    for path in metrics:
        with path.open(newline="") as stream:
            values = {row["metric"]: float(row["value"]) for row in csv.DictReader(stream) if row["split"] == "train"}
        if not {"accuracy", "loss"} <= values.keys():
            raise ValueError(f"{path} has no accuracy and loss of the training set; remove it and run again")
        seed = Run.of_folder(path.parent).seed
        # The numbers of a diverged run are meaningless.
        keys.append((1, 0.0, 0.0, seed) if values.get("diverged") else (0, -values["accuracy"], values["loss"], seed))
    return [seed for *_, seed in sorted(keys)]


def build(raw: Path, parameters: dict, splits: Sequence[Path], metrics: Sequence[Path]) -> tuple[DatasetDict, dict]:
    """The puzzles of `splits[0]`, and a description that includes the population and the library.

    Args:
        splits: folders of the task with the puzzles and, after the first generation, of the previous generation.
        metrics: metrics.csv of all runs of the previous generation.
    """
    members = DatasetDict.load_from_disk(str(splits[0]))
    puzzles = json.loads((splits[0] / "task.json").read_text(encoding="utf-8"))
    search = population.Search(
        population=parameters["population"],
        programs=parameters["programs"],
        max_nodes=parameters["max_nodes"],
        max_edges=parameters["max_edges"],
        pseudocount=parameters["pseudocount"],
        max_range=parameters["max_range"],
        iterations=parameters["inventions"],
        max_arity=parameters["max_arity"],
    )
    library, kept = Library(parameters["library"]), []
    if parameters["generation"] > 1:
        before = json.loads((splits[1] / "task.json").read_text(encoding="utf-8"))
        library = Library(dict(before["library"]))
        everyone = list(population.restore(library, before["population"]))
        kept = [everyone[seed] for seed in rank(metrics)[: max(1, round(parameters["kept"] * len(metrics)))]]
    library, individuals, explorations = population.refill(library, kept, search)
    about = {key: puzzles[key] for key in ("in_distribution", "classes", "image_shape", "references")}
    about |= {
        "disjoint": [{"columns": ["image"], "members": ["validation"]}],
        "library": [[name, str(body)] for name, body in library.bodies.items()],
        "population": [population.describe(library, individual) for individual in individuals],
        "explorations": explorations,
    }
    return members, about
