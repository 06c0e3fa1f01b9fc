"""Every model on a small random problem of its kind. These need no data set and no packages except PyTorch and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.trained import problem_of

from compositional.kinds.combination import CombinationSplit
from compositional.kinds.composite import CompositeSplit
from compositional.kinds.image import ImageSplit
from compositional.kinds.point import PointSplit
from compositional.kinds.puzzle import PuzzleSplit
from compositional.kinds.sequence import SequenceSplit
from compositional.kinds.sequence_regression import SequenceRegressionSplit
from compositional.kinds.tagging import TaggingSplit
from compositional.kinds.tensor import TensorSplit
from compositional.language.vocabulary import Vocabulary
from compositional.plugins import available, declarations, is_network
from compositional.training.problem import Problem

BATCH = 16
_SETTINGS = {"steps": 6, "record_every": 3, "curve_examples": 16, "batch_size": BATCH}
# Small sizes for networks whose defaults are too large for a test, and options that modules need for these problems.
_BATCHNORM = {"channels": [4, 4, 8, 8], "kernel": 3, "padding": 1, "dense_widths": [16, 16]}
_PATCHES = {"patch": 8, "width": 8, "depth": 1, "heads": 2, "head_width": 4, "hidden_width": 8}
_OPTIONS: dict[str, dict[str, Any]] = {
    "batchnorm_cnn": _BATCHNORM,
    "batchnorm_cnn_torch": _BATCHNORM,
    "causal_tagger": {"layers": 2, "width": 16, "heads": 2, "feedforward_width": 24, "operators": ["twice", "thrice"]},
    "dense_network": {"width": 48},
    "graph_structured": _PATCHES | {"features": 24, "layers": 2},
    "hierarchical_tensor_factorization": {"widths": [16, 16], "deviation": 0.3},
    "homomorphism": {"conjunctions": ["word0", "word1"], "modifiers": ["word2", "word3"]},
    "kernel_machine": {"grid": 2},
    "lstm_attention": {"dropout": 0.3},
    "lstm_input_feeding": {"embedding_width": 16, "width": 32},
    "meta_sequence_to_sequence": {"width": 32},
    "pairwise_transformer": {"encoder_layers": 1, "decoder_layers": 1, "width": 32, "heads": 4, "dropout": 0.2},
    "pixel_shuffle_transformer": _PATCHES,
    "pointer_generator": {"embedding_width": 16, "width": 32},
    "resnet18": {"widths": [8, 16], "blocks": [1, 1], "stem": "small"},
    "syntactic_attention": {"semantic_width": 24, "width": 16},
    "t5": {"layers": 1, "width": 16, "heads": 2, "head_width": 8, "feedforward_width": 24},
    "transformer": {"encoder_layers": 1, "decoder_layers": 1, "width": 32, "heads": 4, "dropout": 0.2},
    "transformer_torch": {"encoder_layers": 1, "decoder_layers": 1, "width": 16, "heads": 2, "feedforward_width": 24},
    "vision_transformer": {"patch": 4, "width": 16, "depth": 2, "heads": 2, "head_width": 8, "hidden_width": 16},
}
_IMPORTED = {"kernel_machine": ["sklearn"]}  # packages of envs/requirements.txt that these tests do not need otherwise
Splits = tuple[dict[str, Any], dict[str, Any], str]  # members, the content of task.json, and a loss


def _sequence(model: str, device: str) -> Splits:
    """Sentences of one to six words, each with its own symbol, and logical forms of places; for meta-learners, episodes of such
    pairs."""
    source = np.random.default_rng(0)
    words = [f"word{number}" for number in range(8)]
    sentences = [" ".join(source.choice(words, size=1 + number % 6)) for number in range(96)]
    pairs = [(sentence, sentence.replace("word", "SYMBOL")) for sentence in sentences]
    places = ["texas", "utah", "iowa", "ohio"]
    pairs[:16] = [(f"{word} {place}", f"{word} ( _stateid ( {place} ) )") for word in words[:4] for place in places]
    if model == "pairwise_transformer":
        pairs = [(f"{sentence} | {words[0]} means SYMBOL0 | {words[1]} means SYMBOL1", target) for sentence, target in pairs]
    if model == "meta_sequence_to_sequence":
        shown = " , ".join(f"{word} means {word}" for word in words[:4])
        pairs = [(f"{shown} do {sentence}", target) for sentence, target in pairs]
    vocabularies = [Vocabulary.of(side) for side in zip(*pairs, strict=True)]
    members = {"train": pairs[:64], "test": pairs[64:]}
    splits = {name: SequenceSplit(*zip(*rows, strict=True), *vocabularies, device) for name, rows in members.items()}
    about = {"source_words": vocabularies[0].words, "target_words": vocabularies[1].words}
    return splits, about | {"study": {"pairs": 2, "separator": "|", "longest": 10}}, "cross_entropy"


def _image(model: str, device: str) -> Splits:
    """Noise of 8 x 16 pixels with ten classes."""
    source = np.random.default_rng(0)
    splits = {
        name: ImageSplit(source.integers(256, size=(count, 8, 16), dtype=np.uint8), np.arange(count) % 10, 8, device)
        for name, count in {"train": 64, "test": 32}.items()
    }
    return splits, {"image_shape": (1, 8, 16), "classes": 10}, "cross_entropy"


def _composite(model: str, device: str) -> Splits:
    """Sums of two items, each of which is a class of 16 x 16 images, with shifts and mirroring."""
    source = np.random.default_rng(0)
    shape = {"mean": [0.5], "std": [0.25], "augment": True, "distance": 0, "target": "number"}
    pool = torch.from_numpy(source.integers(256, size=(40, 1, 16, 16), dtype=np.uint8)).to(device)
    splits = {}
    for name, count in {"train": 64, "test": 32}.items():
        items = source.integers(5, size=(count, 2))
        splits[name] = CompositeSplit(pool, items * 8 + source.integers(8, size=(count, 2)), items, items.sum(1), shape, device)
    return splits, {"image_shape": (2, 16, 16), "classes": 1}, "squared"


def _combination(model: str, device: str) -> Splits:
    """Sums of two items out of five, one training set."""
    items = np.stack(np.meshgrid(range(5), range(5), indexing="ij"), -1).reshape(-1, 2)
    members = {"train": items[:16], "test": items[16:]}
    splits = {
        name: CombinationSplit(rows, rows.sum(1), np.zeros(len(rows), int), (5, 5), False, device)
        for name, rows in members.items()
    }
    return splits, {"sizes": [5, 5], "sets": 1, "components": ["first", "second"], "target": "number"}, "squared"


def _tensor(model: str, device: str) -> Splits:
    """Random entries of a matrix for its factorization, or of an order 4 tensor for other models. Every step uses all of them."""
    shape = [8, 8] if model == "matrix_factorization" else [4, 4, 4, 4]
    source = np.random.default_rng(0)
    places = source.permutation(int(np.prod(shape)))
    members = {"train": places[:BATCH], "test": places[BATCH : 2 * BATCH]}
    splits = {
        name: TensorSplit(shape, source.normal(size=BATCH), device, entries=np.sort(entries)) for name, entries in members.items()
    }
    return splits, {"shape": shape}, "squared"


def _point(model: str, device: str) -> Splits:
    """Points of the plane in four quadrants."""
    points = np.random.default_rng(0).normal(size=(96, 2))
    labels = (points[:, 0] > 0) * 2 + (points[:, 1] > 0)
    splits = {"train": PointSplit(points[:64], labels[:64], device), "test": PointSplit(points[64:], labels[64:], device)}
    return splits, {"inputs": 2, "classes": 4}, "cross_entropy"


def _puzzle(model: str, device: str) -> Splits:
    """Noise with two classes; every run's graph is a triangle, with nodes and edges numbered in the order of creation."""
    source = np.random.default_rng(0)
    splits = {
        name: PuzzleSplit(source.integers(256, size=(count, 16, 16), dtype=np.uint8), np.arange(count) % 2, device)
        for name, count in {"train": 32, "test": 16}.items()
    }
    graph = {"nodes": [0, 1, 2], "edges": [[3, 0, 1, 0], [4, 1, 2, 0], [5, 2, 0, 1]]}
    about = {"image_shape": (1, 16, 16), "classes": 2, "population": [{"graph": graph}] * 16, "task": "test"}
    return splits, about, "cross_entropy"


def _sequence_regression(model: str, device: str) -> Splits:
    """Sums and products of two digits, whose values do not change if the operands are exchanged."""
    source = np.random.default_rng(0)
    splits = {}
    for name, count in {"train": 64, "test": 32}.items():
        rows = [
            (left, operator, right)
            for (left, right), operator in zip(source.integers(1, 10, (count, 2)), "+*" * (count // 2), strict=True)
        ]
        splits[name] = SequenceRegressionSplit(
            [f"{left}{operator}{right}" for left, operator, right in rows],
            np.array([left + right if operator == "+" else left * right for left, operator, right in rows]),
            [operator for _, operator, _ in rows],
            "0123456789+-*/",
            1,
            device,
            equivalents=[f"{right}{operator}{left}" for left, operator, right in rows],
        )
    return splits, {"symbols": "0123456789+-*/", "component_width": 1}, "squared"


def _tagging(model: str, device: str) -> Splits:
    """Verbs with modifiers, and noise before them."""
    source = np.random.default_rng(0)
    rows = [(source.choice(["walk", "jump", "look", "turn"]), source.choice(["twice", "thrice"])) for _ in range(96)]
    pairs = [
        (f"{'foo ' * (number % 3)}{verb} {modifier}", f"{verb.upper()} {verb.upper()}")
        for number, (verb, modifier) in enumerate(rows)
    ]
    vocabularies = [Vocabulary.of(side) for side in zip(*pairs, strict=True)]
    members = {"train": pairs[:64], "test": pairs[64:]}
    splits = {name: TaggingSplit(*zip(*own, strict=True), *vocabularies, device) for name, own in members.items()}
    return splits, {"source_words": vocabularies[0].words, "target_words": vocabularies[1].words}, "cross_entropy"


KINDS: dict[str, Callable[[str, str], Splits]] = {
    "sequence": _sequence,
    "sequence_regression": _sequence_regression,
    "image": _image,
    "tagging": _tagging,
    "composite": _composite,
    "combination": _combination,
    "tensor": _tensor,
    "point": _point,
    "puzzle": _puzzle,
}


def applies(model: str, regularizer: str) -> bool:
    """Whether a regularizer fits a model's kind of task and representations, according to their declarations."""
    if model in ("meta_sequence_to_sequence", "pairwise_transformer") and regularizer in (
        "homomorphism",
        "recombination_of_terms",
    ):
        return False  # a part of an episode is not an episode, and it has no terms
    own, wanted = declarations(f"models.{model}"), declarations(f"regularizers.{regularizer}")
    shown, needed = set(own["REPRESENTATIONS"]), set(wanted["REPRESENTATIONS"])
    return kind_of(model) in wanted["APPLIES_TO"] and (not needed or bool(shown & needed))


def kind_of(model: str) -> str:
    """The kind of task on which a model is tested: the first that it supports."""
    kind = declarations(f"models.{model}")["KIND"]
    return kind if isinstance(kind, str) else kind[0]


MODELS = available("models")
# All models except those that are fitted.
TRAINED = [
    (model, regularizer)
    for model in MODELS
    if model != "kernel_machine"
    for regularizer in (None, *available("regularizers"))
    if regularizer is None or applies(model, regularizer)
]
# Steps of a Network are not recorded as graphs, because its runs are computed one after the other.
PACKED = [pair for pair in TRAINED if not is_network(f"models.{pair[0]}")]
# Every model, and every regularizer once per kind of task, with a model that computes many runs if there is one.
_FIRST = {(kind_of(model), regularizer): model for model, regularizer in reversed(PACKED)}
EACH = [pair for pair in TRAINED if pair[1] is None or _FIRST.get((kind_of(pair[0]), pair[1]), pair[0]) == pair[0]]


def problem(model: str, regularizer: str | None, device: str, options: dict[str, Any] | None = None, **settings: Any) -> Problem:
    """A small problem on a device. options: replace the model's own.

    The test is skipped if a package is missing that only this model needs.

    Raises:
        KeyError: there is no such problem for this kind of task: add one to KINDS.
    """
    for package in (*declarations(f"models.{model}")["PACKAGES"], *_IMPORTED.get(model, ())):
        pytest.importorskip(package, reason="needs pip install -r envs/optional.txt")
    splits, about, loss = KINDS[kind_of(model)](model, device)
    own, terms = _OPTIONS.get(model, {}) | (options or {}), _OPTIONS.get(regularizer, {})
    return problem_of(model, about, splits, _SETTINGS | {"loss": loss} | settings, own, regularizer, terms, device=device)
