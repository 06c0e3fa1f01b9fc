"""What trained networks represent: activations on stimuli, measured by `compositionality`, and the effect of swaps on outputs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from scipy.spatial.distance import pdist, squareform
from torch import Tensor

from compositional import randomness
from compositional.evaluation import activations, decoding, homomorphism, stimuli
from compositional.evaluation.metrics import BATCH, calibrated
from compositional.kinds.image import Batch, ImageSplit
from compositional.kinds.sequence import SequenceSplit
from compositional.language import lexicon
from compositional.layers.tap import silent_tap
from compositional.measures import compositionality
from compositional.measures.compositionality import Measure
from compositional.training.problem import Problem

SWAPPED_EXAMPLES = 200  # sequences; each is decoded twice
SWAPPED_IMAGES = 1024
WORDS = 100  # number of words whose embeddings are kept for figures
COMPARED_WORDS = 2000  # the number of frequent words among which distances are measured
Swap = tuple[str, str, dict[str, str], dict[str, str]]  # input, output, which words and which symbols are exchanged
Type = list[tuple[str, str]]  # input words that may be exchanged, each with its output symbol (compositional.language.lexicon)


@dataclass(frozen=True)
class Findings:
    """The findings about one run.

    measures: {(split, metric): value}. activations: by representation, (items, D) on the stimuli. vectors: by representation,
    items with their vectors, for figures: words for word embeddings, the stimuli for all others.
    """

    measures: dict[tuple[str, str], float]
    activations: dict[str, np.ndarray]
    vectors: dict[str, tuple[list[str], np.ndarray]]


def word_vectors(problem: Problem, weights: dict[str, Tensor], words: list[str]) -> dict[str, np.ndarray]:
    """The embedding of every word in every embedding table that the model shows as "word_embedding": (R, words, D) by name."""
    train = decoding.sentences(problem, "train")
    split = SequenceSplit(words, [""] * len(words), train.source, train.target, problem.device)
    runs = next(iter(weights.values())).shape[0]
    ((rows, batch),) = split.evaluation_batches(runs, len(words))
    order = np.argsort(split.order[rows.numpy()])
    return {
        name: values[:, : len(words), 0].double().cpu().numpy()[:, order]
        for name, (values, _) in activations.shown(problem, weights, batch)[1].items()
        if name.startswith("word_embedding")
    }


def factor_means(probe: stimuli.Stimuli, representations: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Average representations (items, D) over each combination of factors; without factors, keep one row per item.

    Returns:
        Representations (m, D), factors (m, F) or None, and condensed distances of the inputs, (m (m - 1) / 2,).
    """
    if probe.factors is None:
        return representations, None, probe.distances
    rows, factors = compositionality.means(representations, probe.factors)
    return rows, factors, compositionality.factor_distances(factors)


def _geometry(probe: stimuli.Stimuli, name: str, rows: np.ndarray) -> dict[str, float]:
    """Measures of one run's representation (items, D)."""
    representations, factors, distances = factor_means(probe, rows)
    found = compositionality.topographic_similarity(representations, distances).rows(f"topographic_similarity in {name}")
    if factors is None or probe.factors is None:
        return found
    found |= compositionality.tree_reconstruction_error(representations, factors).rows(f"tree_reconstruction_error in {name}")
    by_factor = {
        "parallelism_score": [
            compositionality.parallelism_score(representations, factors, index) for index in range(len(probe.names))
        ],
        "ccgp": [compositionality.ccgp(rows, probe.factors, index) for index in range(len(probe.names))],
    }
    for measure, own in by_factor.items():
        for factor, result in zip(probe.names, own, strict=True):
            found |= result.rows(f"{measure} of {factor} in {name}")
        found |= Measure.mean(own).rows(f"{measure} in {name}")
    return found


def swap(sentence: str, words: dict[str, str]) -> str:
    """The sentence with its words replaced according to the dictionary."""
    return " ".join(words.get(word, word) for word in sentence.split())


def _swaps(problem: Problem, types: list[Type]) -> list[Swap]:
    """Test pairs (input, output) with an exchangeable word, and the exchange of one such word with another of its type: in words,
    in symbols. They are the same for every run."""
    split = decoding.sentences(problem, "test")
    source = randomness.generator(randomness.derive("swap_consistency"))
    chosen = []
    pairs = list(zip(split.input_sentences(), split.output_sentences(), strict=True))
    for sentence, target in pairs:
        present = [(entry, own) for own in types for entry in own if entry[0] in sentence.split()]
        if present:
            chosen.append((sentence, target, present))
    places = stimuli.spaced(len(chosen), SWAPPED_EXAMPLES)
    found = []
    for sentence, target, present in (chosen[place] for place in places):
        entry, own = present[source.integers(len(present))]
        others = [other for other in own if other != entry]
        other = others[source.integers(len(others))]
        found.append((sentence, target, *({entry[side]: other[side], other[side]: entry[side]} for side in (0, 1))))
    return found


def _decoded(problem: Problem, weights: dict[str, Tensor], split: SequenceSplit) -> list[list[str]]:
    """Greedy predictions of every run, in the original order of the split's examples."""
    asked = replace(problem, splits=problem.splits | {"swapped": split})
    places = np.argsort(split.order)
    return [[rows[place][2] for place in places] for rows in decoding.predictions(asked, weights, "swapped", len(split))]


def _agreement(expected: list[str], given: list[str]) -> Measure:
    """Share of places with equal entries. Shuffled: each entry is compared with that of another place."""
    source = np.random.default_rng(0)
    pairs = np.array(expected, dtype=object), np.array(given, dtype=object)
    shuffled = [np.mean(pairs[0] == pairs[1][source.permutation(len(given))]) for _ in range(compositionality.SHUFFLES)]
    return Measure(float(np.mean(pairs[0] == pairs[1])), np.array(shuffled))


def swap_consistency(problem: Problem, weights: dict[str, Tensor], types: list[Type]) -> list[Measure]:
    """Share of test inputs x with argmax f(pi x) = pi argmax f(x), one result per run; empty if nothing can be swapped.

    Sequences: pi exchanges a word of the input, and its symbol, with another of its type (`types`, from the training pairs
    alone); argmax is greedy decoding. Images: pi replaces the redundant right half by that of another image and keeps the class.
    Shuffled: f(pi x) is compared with pi argmax f(x) of another input. This distinguishes a network that follows the swap from
    one that always gives the same output.
    """
    test = problem.splits["test"]
    if isinstance(test, SequenceSplit):
        swaps = _swaps(problem, types) if types else []
        return _follows_words(problem, weights, swaps) if swaps else []
    if isinstance(test, ImageSplit) and test.component_width is not None:
        return _ignores_partner(problem, weights, test)
    return []


def _follows_words(problem: Problem, weights: dict[str, Tensor], swaps: list[Swap]) -> list[Measure]:
    train = decoding.sentences(problem, "train")
    vocabularies = train.source, train.target
    inputs, targets = [one[0] for one in swaps], [one[1] for one in swaps]
    plain = SequenceSplit(inputs, targets, *vocabularies, problem.device)
    swapped = SequenceSplit(
        [swap(one[0], one[2]) for one in swaps], [swap(one[1], one[3]) for one in swaps], *vocabularies, problem.device
    )
    before, after = _decoded(problem, weights, plain), _decoded(problem, weights, swapped)
    followed = [[swap(text, one[3]) for text, one in zip(own, swaps, strict=True)] for own in before]
    return [_agreement(*own) for own in zip(followed, after, strict=True)]


def _ignores_partner(problem: Problem, weights: dict[str, Tensor], test: ImageSplit) -> list[Measure]:
    runs = next(iter(weights.values())).shape[0]

    def classes(batch: Batch) -> Tensor:
        with torch.no_grad():
            return problem.model.forward(problem.model_parameters, weights, batch, silent_tap).argmax(-1).cpu()

    weights = calibrated(problem, weights)
    before, after = [], []
    for rows, batch in test.evaluation_batches(runs, BATCH, SWAPPED_IMAGES):
        whole = len(rows) // 2 * 2  # partners come in pairs
        paired = test.batch(rows[:whole].to(problem.device).expand(runs, -1)) if whole < len(rows) else batch
        before.append(classes(paired))
        after.append(classes(paired.recombine()))
    return [_agreement(*own) for own in zip(torch.cat(before, 1).tolist(), torch.cat(after, 1).tolist(), strict=True)]


def measure(problem: Problem, weights: dict[str, Tensor], folder: Path) -> list[Findings]:
    """All of these measures for every run; weights (R, ...) by name; `folder` holds the split.

    Raises:
        ValueError: the task is of a kind without stimuli, or the model shows no representation.
    """
    runs = next(iter(weights.values())).shape[0]
    uncalibrated, weights = weights, calibrated(problem, weights)
    probe = stimuli.of(problem, folder, runs)
    shown = activations.on_stimuli(problem, weights, probe)
    if not shown:
        raise ValueError(f"model {problem.model_name!r} shows no representation to measure")
    types: list[Type] = []
    words: dict[str, np.ndarray] = {}
    listed: list[str] = []  # words, those that may be exchanged first
    if isinstance(train := problem.splits["train"], SequenceSplit):
        sentences = train.input_sentences()
        types = lexicon.infer(sentences, train.output_sentences())
        frequent = dict(Counter(stimuli.words_of(sentences)).most_common(COMPARED_WORDS))
        alike = [word for own in types for word, _ in own if word in frequent]
        listed = list(dict.fromkeys([*alike, *frequent]))
        words = word_vectors(problem, weights, listed)
    consistent = swap_consistency(problem, uncalibrated, types)
    errors = homomorphism.measure(problem, weights)
    results = []
    for run in range(runs):
        measures = errors[run]
        for name, values in shown.items():
            measures |= _geometry(probe, name, values[run])
        for name, values in words.items():
            distances = squareform(pdist(values[run]))
            for own in types:
                places = [listed.index(word) for word, _ in own if word in listed]
                for place in places if len(places) > 1 else ():
                    result = compositionality.relative_distance(distances, place, places)
                    measures |= result.rows(f"relative_distance of {listed[place]} in {name}")
        found = {("probe", metric): value for metric, value in measures.items()}
        if consistent:
            found |= {("test", metric): value for metric, value in consistent[run].rows("swap_consistency").items()}
        kept = {name: factor_means(probe, values[run])[0] for name, values in shown.items()}
        vectors = {name: (listed[:WORDS], values[run, :WORDS]) for name, values in words.items()}
        vectors |= {name: (probe.labels(), rows) for name, rows in kept.items() if name not in words}
        results.append(Findings(found, kept, vectors))
    return results
