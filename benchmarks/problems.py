"""What `benchmarks/families.py` measures: one family of runs for each kind of model that a figure trains, at the figure's size.

Options are the configuration's. Data that come with the project are split as in a build (below results/benchmarks); of the others
there are as many examples, as long or as large, of random words and pixels: time does not depend on which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import plain_factorizations  # finds the library
import torch

from compositional import plugins
from compositional.configuration.configuration import configuration
from compositional.kinds import Split
from compositional.kinds.composite import CompositeSplit
from compositional.kinds.image import ImageSplit
from compositional.kinds.sequence import SequenceSplit
from compositional.language.vocabulary import Vocabulary
from compositional.models import Model
from compositional.notebook.training import split
from compositional.regularizers import Regularizer
from compositional.synthesis.grammar import Library
from compositional.synthesis.population import Search, describe, refill
from compositional.training.problem import Problem
from compositional.training.reading import read_problem

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "benchmarks"
Data = tuple[dict[str, Any], dict[str, Split]]  # task.json and members


def _sentences(lengths: str, longest: tuple[int, int], count: int, words: int, symbols: int, shared: int) -> Data:
    """`count` pairs of random words. `lengths` are quantiles of them, "words-symbols" each, next to the longest words and symbols
    of all; `shared` words are written alike on both sides."""
    source = np.random.default_rng(0)
    inputs = [f"both{number}" for number in range(shared)] + [f"word{number}" for number in range(words - shared)]
    outputs = [*inputs[:shared], *(f"symbol{number}" for number in range(symbols - shared))]
    quantiles = [tuple(map(int, pair.split("-"))) for pair in lengths.split()]
    sizes = [longest, *(quantiles[number * len(quantiles) // count] for number in range(1, count))]
    pairs = [(" ".join(source.choice(inputs, read)), " ".join(source.choice(outputs, written))) for read, written in sizes]
    vocabularies = [Vocabulary.of([*side]) for side in (inputs, outputs)]
    member = SequenceSplit(*zip(*pairs, strict=True), *vocabularies, "cpu")
    return {"source_words": vocabularies[0].words, "target_words": vocabularies[1].words}, {"train": member}


def _cogs() -> Data:
    """COGS' training set."""
    lengths = (
        "3-10 4-19 5-19 4-20 5-20 4-21 5-30 7-30 7-30 6-31 7-31 5-34 7-39 6-40 8-40 8-40 7-41 8-41 7-43 6-46 7-51 10-51 9-52 "
        "9-53 10-55 11-61 9-63 9-64 12-72 11-74 11-83 13-94"
    )
    return _sentences(lengths, (22, 153), 24155, 743, 683, 0)


def _multi30k() -> Data:
    """Captions of Multi30k, English to German, in subwords."""
    lengths = (
        "8-7 10-8 10-9 10-10 13-10 11-11 13-11 11-12 13-12 11-13 13-13 19-13 13-14 16-14 13-15 16-15 13-16 16-16 13-17 17-17 "
        "14-18 18-18 16-19 22-19 19-20 19-21 19-22 20-23 24-24 24-26 21-29 27-34"
    )
    return _sentences(lengths, (56, 61), 29000, 2427, 2932, 1404)


def _geoquery() -> Data:
    """GeoQuery's training and validation pairs, as the task geoquery writes them."""
    return _sentences("6-22 3-24 4-27 7-27 9-29 7-32 8-33 9-36 8-41 15-49", (22, 101), 691, 279, 165, 114)


def _mnist() -> Data:
    """Pairs of images of MNIST's form."""
    source = np.random.default_rng(0)
    pixels = source.integers(256, size=(20000, 28, 56), dtype=np.uint8)
    return {"image_shape": (1, 28, 56), "classes": 10}, {"train": ImageSplit(pixels, source.integers(10, size=20000), 28, "cpu")}


def _cifar10() -> Data:
    """Pairs of images of CIFAR-10's form in channels of their own."""
    source, count = np.random.default_rng(0), 40000
    about = {"image_shape": (6, 32, 32), "component_shape": (3, 32, 32), "classes": 1, "distance": 0, "augment": True}
    about |= {"mean": [0.5] * 3, "std": [0.25] * 3, "target": "number"}
    pool = torch.from_numpy(source.integers(256, size=(4000, 3, 32, 32), dtype=np.uint8))
    chosen = source.integers(len(pool), size=(count, 2))
    return about, {"train": CompositeSplit(pool, chosen, chosen % 9, chosen.sum(1) % 9, about, "cpu")}


@dataclass(frozen=True)
class Family:
    """Runs of a task, a model and a regularizer, and in what packs they are measured; `overlay` is a file of config/."""

    task: str
    model: str
    runs: tuple[int, ...]
    regularizer: str = "none"
    overlay: str | None = None
    data: Callable[[], Data] | None = None


FAMILIES = {
    "SCAN, two streams": Family("scan_jump", "primitive_attention", (1, 4, 8), "entropy"),
    "SCAN, LSTM": Family("scan_jump", "lstm_attention_annealed", (1, 4, 8)),
    "SCAN, CGPS": Family("scan_jump", "cgps", (1, 4, 8), "entropy"),
    "SCAN, syntactic attention": Family("scan_jump", "syntactic_attention_small", (1, 4, 8)),
    "SCAN episodes, meta seq2seq": Family("scan_jump_episodes", "meta_sequence_to_sequence_small", (1, 2, 5)),
    "SCAN episodes, pairwise transformer": Family("scan_jump_mlc", "pairwise_transformer_small", (1, 2)),
    "GeoQuery, input feeding": Family("geoquery_query", "lstm_input_feeding_small", (1, 2, 5), data=_geoquery),
    "GeoQuery, pointer generator": Family("geoquery_query", "pointer_generator_small", (1, 2, 5), data=_geoquery),
    "COGS, transformer": Family("cogs", "transformer_small", (1, 2, 3), data=_cogs),
    "Multi30k, transformer": Family("multi30k", "transformer_translation", (1, 2), data=_multi30k),
    "digits, CNN": Family("digits_concat", "cnn", (1, 8, 30), "entropy"),
    "MNIST, CNN": Family("mnist_concat", "cnn", (1, 2, 5), "entropy", "paper.yaml", _mnist),
    "digits, batch-normalized CNN": Family("digits_extrapolation_0", "small_batchnorm_cnn", (1, 4, 8)),
    "same digit, ResNet": Family("same_digit_0", "resnet_reduced", (1, 2, 4)),
    "CIFAR-10, vision transformer": Family(
        "cifar10_extrapolation", "vision_transformer", (1, 2), overlay="paper/kernel_theory.yaml", data=_cifar10
    ),
    "puzzles, pixel shuffle": Family("raven", "pixel_shuffle_transformer", (1, 3, 7)),
    "puzzles, graphs": Family("raven_evolved_loop0_generation1", "graph_structured", (1, 4, 16)),
    "arithmetic, LSTM": Family("arithmetic", "lstm_regressor", (1, 8, 30)),
    "addition, dense network": Family("addition_extrapolation", "dense_rich", (1, 8, 30)),
    "quadrants, dense network": Family("quadrants", "multilayer_perceptron", (1, 8, 30)),
    "matrix factorization": Family("matrix_completion", "matrix_factorization", (1, 4, 8)),
    "CP factorization": Family("tensor_completion", "cp_factorization", (1, 4, 8)),
    "hierarchical factorization": Family("hierarchical_completion", "hierarchical_tensor_factorization", (1, 2, 4)),
    "kernel machines": Family("context_dependence_3", "classification_pair", (1,)),
}
FACTORIZATIONS = {"matrix factorization": "matrix", "CP factorization": "cp", "hierarchical factorization": "hierarchical"}


def _puzzles(known: Any) -> Data:
    """The puzzles with a small population of programs that a first search finds."""
    puzzles = read_problem(
        split(known, "raven", RESULTS), known.family_parameters(("raven", "pixel_shuffle_transformer", "none")), "cpu"
    )
    search = Search(16, 200000, 16, 24, 0.001, 0.5, 3, 2)
    library, members, _ = refill(Library({}), [], search)
    return puzzles.about | {"population": [describe(library, member) for member in members]}, puzzles.splits


def problem_of(name: str) -> Problem:
    """The problem of a family of FAMILIES, on the CPU."""
    if name in FACTORIZATIONS:
        return plain_factorizations.problem_of(FACTORIZATIONS[name])
    own = FAMILIES[name]
    known = configuration(*([ROOT / "config" / own.overlay] if own.overlay else []))
    told = known.family_parameters((own.task, own.model, own.regularizer))
    if own.task not in known.config["tasks"]:
        raise ValueError(f"{name}: there is no task {own.task!r}, whose settings would be the defaults")
    if own.data is None and not own.task.startswith("raven_evolved"):
        return read_problem(split(known, own.task, RESULTS), told, "cpu")
    about, splits = own.data() if own.data else _puzzles(known)
    term = told.get("regularizer_module")
    return Problem(
        task=own.task,
        about=about,
        splits=splits,
        model_name=own.model,
        model=plugins.load(Model, told["model_module"]),
        model_parameters=told["model_parameters"],
        regularizer=plugins.load(Regularizer, term) if term else None,
        regularizer_parameters=told.get("regularizer_parameters", {}),
        settings=told["settings"],
        device="cpu",
    )
