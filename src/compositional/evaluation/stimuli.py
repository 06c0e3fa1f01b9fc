"""The stimuli of a task: the examples on which representations are measured, and their factors.

SCAN, for every split: the 72 commands verb x manner x direction x count ("jump opposite left twice"), every combination once.
Pairs of images: a few examples of every pair of classes, from the evaluation members. Other tasks: examples of the test set,
without factors; their inputs are compared by edit distance (sequences) or pixel by pixel (images).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch

from compositional.datasets import scan
from compositional.kinds import Batch
from compositional.kinds.sequence import SequenceSplit
from compositional.kinds.shared.labelled import Labelled, LabelledSplit
from compositional.language.vocabulary import END
from compositional.training.problem import Problem

EXAMPLES = 200  # of the test set, for tasks without factors
PER_COMBINATION = 4
MANNERS = ("", "opposite", "around")


@dataclass(frozen=True)
class Stimuli:
    """Items to show to a network.

    items: readable names. batches: pairs (places of the batch's rows among the items, batch). factors: (n, F) or None; names: of
    the factors. distances: condensed distances of the inputs; empty if there are factors, from which the distances follow.
    """

    items: list[str]
    batches: Sequence[tuple[np.ndarray, Batch]]
    factors: np.ndarray | None
    names: tuple[str, ...]
    distances: np.ndarray

    def labels(self) -> list[str]:
        """Unique names of the rows of `factor_means`: of the items or, if there are factors, of the combinations."""
        if self.factors is None:
            # Sentences of a test set may repeat.
            before = [self.items[:place].count(item) for place, item in enumerate(self.items)]
            return [f"{item} ({count + 1})" if count else item for item, count in zip(self.items, before, strict=True)]
        _, first = np.unique(self.factors, axis=0, return_index=True)
        return [self.items[place] for place in first]


def _commands(problem: Problem, runs: int, values: dict[str, tuple[str, ...]]) -> Stimuli | None:
    """Every combination of the values as a SCAN command with one phrase: the first value, followed by the others. None for tasks
    whose inputs are not SCAN's commands, or that contain other words."""
    train = problem.splits["train"]
    if problem.about.get("dataset") != "scan" or not isinstance(train, SequenceSplit):
        return None
    factors = np.array(list(product(*(range(len(own)) for own in values.values()))))
    commands = [" ".join(filter(None, words)) for words in product(*values.values())]
    occurring = set(train.source.words[END + 1 :]) - set(problem.about.get("virtual_words", []))
    if not set(words_of(commands)) <= occurring <= set(words_of(command for command, _ in scan.commands())):
        return None
    return Stimuli(commands, of_commands(train, runs, commands), factors, tuple(values), np.empty(0))


def of_commands(train: SequenceSplit, runs: int, commands: list[str]) -> list[tuple[np.ndarray, Batch]]:
    """Batches of SCAN's commands, as in `Stimuli`, with the vocabulary of a training set."""
    actions = dict(scan.commands())
    split = SequenceSplit(commands, [actions[command] for command in commands], train.source, train.target, train.device)
    return [(split.order[rows.numpy()], batch) for rows, batch in split.evaluation_batches(runs, len(commands))]


def spaced(count: int, most: int) -> np.ndarray:
    """Places of at most `most` of `count` items, evenly spaced."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(int)


def phrases(problem: Problem, runs: int) -> Stimuli | None:
    """The 84 SCAN commands verb x template ("jump twice", "jump opposite left", ...): two components, every combination."""
    places = ["", *(" ".join(filter(None, pair)) for pair in product(MANNERS, scan.TURNS))]
    templates = tuple(" ".join(filter(None, pair)) for pair in product(places, scan.REPEATS))
    return _commands(problem, runs, {"verb": tuple(scan.ACTIONS), "template": templates})


def words_of(sentences: Iterable[str]) -> Iterator[str]:
    """Every word of every sentence."""
    return (word for sentence in sentences for word in sentence.split())


def _pairs(problem: Problem, folder: Path, runs: int) -> Stimuli | None:
    """Up to PER_COMBINATION examples of every pair of classes; None if a pair is missing in the evaluation members."""
    from datasets import DatasetDict

    members = {name: split for name in ("validation", "test") if isinstance(split := problem.splits.get(name), LabelledSplit)}
    if not members:
        return None
    stored = DatasetDict.load_from_disk(str(folder))
    if not {"label", "right_label"} <= set(stored[next(iter(members))].column_names):
        return None
    batches: list[tuple[np.ndarray, Batch]] = []
    found: list[np.ndarray] = []
    for name, split in members.items():
        classes = np.stack([np.array(stored[name][column][:]) for column in ("label", "right_label")], 1)
        _, first, inverse = np.unique(classes, axis=0, return_index=True, return_inverse=True)
        rows = np.sort(np.concatenate([np.flatnonzero(inverse == index)[:PER_COMBINATION] for index in range(len(first))]))
        places = np.arange(len(rows)) + sum(len(classes) for classes in found)
        chosen = torch.from_numpy(rows).to(problem.device).expand(runs, -1)
        batches.append((places, split.batch(chosen)))
        found.append(classes[rows])
    factors = np.concatenate(found)
    if len(np.unique(factors, axis=0)) < np.prod([len(np.unique(column)) for column in factors.T]):
        return None
    items = [f"{left} {right}" for left, right in factors]
    return Stimuli(items, batches, factors, ("left", "right"), np.empty(0))


def _examples(problem: Problem, runs: int) -> Stimuli:
    from rapidfuzz.distance import Levenshtein
    from scipy.spatial.distance import pdist

    split = problem.splits["test"]
    batches, start = [], 0
    rows_of = []
    for rows, batch in split.evaluation_batches(runs, EXAMPLES, EXAMPLES):
        batches.append((np.arange(start, start + len(rows)), batch))
        start += len(rows)
        rows_of += rows.tolist()
    if isinstance(split, SequenceSplit):
        sentences = split.input_sentences()
        items = [sentences[row] for row in rows_of]
        words = [item.split() for item in items]
        distances = [Levenshtein.distance(words[i], words[j]) for i in range(len(words)) for j in range(i + 1, len(words))]
        return Stimuli(items, batches, None, (), np.array(distances, dtype=float))
    labelled = [batch for _, batch in batches if isinstance(batch, Labelled)]
    if len(labelled) < len(batches):
        raise ValueError(f"representations are measured for sentences and labelled examples, {problem.task!r} has neither")
    pixels = np.concatenate([getattr(batch, batch.content)[0].flatten(1).cpu().numpy() for batch in labelled])
    return Stimuli([f"test {row}" for row in rows_of], batches, None, (), pdist(pixels))


def of(problem: Problem, folder: Path, runs: int) -> Stimuli:
    """The stimuli of a task, with batches for `runs` networks at a time; `folder` holds the split.

    Raises:
        ValueError: its examples are neither sentences nor labelled.
    """
    values = {"verb": tuple(scan.ACTIONS), "manner": MANNERS, "direction": tuple(scan.TURNS), "count": tuple(scan.REPEATS)}
    return _commands(problem, runs, values) or _pairs(problem, folder, runs) or _examples(problem, runs)
