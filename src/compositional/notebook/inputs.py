"""Turn new inputs into a split like those of the task's own examples. Targets are unknown and never read here."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np
import torch

from compositional.kinds.combination import CombinationSplit
from compositional.kinds.composite import CompositeSplit
from compositional.kinds.image import ImageSplit
from compositional.kinds.point import PointSplit
from compositional.kinds.puzzle import PuzzleSplit
from compositional.kinds.sequence import SequenceSplit
from compositional.kinds.sequence_regression import SequenceRegressionSplit
from compositional.language.vocabulary import END
from compositional.training.problem import Problem


def _checked(problem: Problem, parts: list[str], known: tuple[str, ...], what: str) -> None:
    for part in parts:
        if part not in known:
            close = difflib.get_close_matches(part, known, n=1, cutoff=0.5)
            guess = f"; did you mean {close[0]!r}?" if close else "."
            raise ValueError(
                f"task {problem.task!r} has no {what} {part!r}{guess} Its {len(known)} {what}s: {' '.join(sorted(known))}"
            )


def _texts(problem: Problem, given: Any) -> list[str]:
    for text in given:
        if not isinstance(text, str):
            raise ValueError(f"task {problem.task!r} takes texts, this is one of the inputs: {reprlib.repr(text)}")
    return [*given]


def _numbers(problem: Problem, given: Any) -> np.ndarray:
    try:
        numbers = np.asarray(given)
    except ValueError:  # lists of unequal lengths
        numbers = np.array(None)
    if numbers.dtype.kind not in "biuf":
        raise ValueError(f"task {problem.task!r} takes an array of numbers, or lists of equal lengths: not {reprlib.repr(given)}")
    return numbers


def _images(problem: Problem, given: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Images (n, *shape) with pixels from 0 to 255. The input may lack the first axis of `shape`."""
    images = _numbers(problem, given)
    if images.shape[1:] != shape and images.shape[1:] != shape[1:]:
        raise ValueError(f"images of task {problem.task!r} are (n, {', '.join(map(str, shape))}), these are {images.shape}")
    if images.min() < 0 or images.max() > 255:
        raise ValueError(f"images have pixels from 0 to 255, these have {images.min()} to {images.max()}")
    if (images != images.astype(np.uint8)).any():
        raise ValueError(
            "images have whole numbers from 0 to 255 as pixels, these have fractions: multiply images in [0, 1] by 255 and round"
        )
    return images.astype(np.uint8).reshape(len(images), *shape)


def _sentences(problem: Problem, given: Any, train: Any) -> SequenceSplit:
    known, given = train.source.words[END + 1 :], _texts(problem, given)
    for sentence in given:
        _checked(problem, sentence.split(), known, "word")
    return SequenceSplit(given, [""] * len(given), train.source, train.target, problem.device)


def _expressions(problem: Problem, given: Any, train: Any) -> SequenceRegressionSplit:
    symbols, given = problem.about["symbols"], _texts(problem, given)
    for text in given:
        _checked(problem, list(text), tuple(symbols), "symbol")
    return SequenceRegressionSplit(given, np.zeros(len(given)), [""] * len(given), symbols, None, problem.device)


def _image_split(problem: Problem, given: Any, train: Any) -> ImageSplit:
    images = _images(problem, given, tuple(train.images.shape[1:]))
    return ImageSplit(images, np.zeros(len(images)), train.component_width, problem.device, problem.about)


def _puzzles(problem: Problem, given: Any, train: Any) -> PuzzleSplit:
    images = _images(problem, given, tuple(train.images.shape[1:]))
    return PuzzleSplit(images, np.zeros(len(images)), problem.device)


def _composites(problem: Problem, given: Any, train: Any) -> CompositeSplit:
    components, shape = train.chosen.shape[1], tuple(train.pool.shape[1:])
    images = _images(problem, given, (components, *shape))
    chosen = np.arange(len(images) * components).reshape(len(images), components)
    pool = torch.from_numpy(images.reshape(-1, *shape)).to(problem.device)
    return CompositeSplit(pool, chosen, np.zeros_like(chosen), np.zeros(len(images)), problem.about, problem.device)


def _combinations(problem: Problem, given: Any, train: Any) -> CombinationSplit:
    items = _numbers(problem, given)
    fits = items.ndim == 2 and items.shape[1] == len(train.sizes) and (items == items.astype(np.int64)).all()
    if not fits or (items < 0).any() or (items >= train.sizes).any():
        raise ValueError(
            f"task {problem.task!r} takes items (n, {len(train.sizes)}), whole numbers below {train.sizes}; these are {given!r}"
        )
    return CombinationSplit(items, np.zeros(len(items)), np.zeros(len(items)), train.sizes, train.signs, problem.device)


def _points(problem: Problem, given: Any, train: Any) -> PointSplit:
    points = _numbers(problem, given).astype(np.float32)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"task {problem.task!r} takes points (n, 2), these are {points.shape}")
    return PointSplit(points, np.zeros(len(points)), problem.device)


_SPLITS: dict[type, Callable[[Problem, Any, Any], Any]] = {
    SequenceSplit: _sentences,
    SequenceRegressionSplit: _expressions,
    ImageSplit: _image_split,
    PuzzleSplit: _puzzles,
    CompositeSplit: _composites,
    CombinationSplit: _combinations,
    PointSplit: _points,
}


def split_of(problem: Problem, given: Any) -> Any:
    """Inputs as a member of the problem's task: sentences (a list of text), expressions (likewise), images (n, height, width) or
    (n, channels, height, width) with values from 0 to 255, puzzles likewise, composites (n, components, channels, height, width),
    combinations (n, components) of item numbers, points (n, 2).

    Raises:
        ValueError: there are no inputs, they are not in this form, or they have words, symbols, items or a shape that the task
            does not know.
        NotImplementedError: models of this kind of task take no inputs, or none in this form.
    """
    train = problem.splits["train"]
    if type(train) not in _SPLITS:
        raise NotImplementedError(f'inputs for task {problem.task!r} cannot be given here: ask for its .outputs("test")')
    if not hasattr(given, "__len__") or getattr(given, "ndim", 1) == 0 or isinstance(given, Mapping | Set):
        raise ValueError(f"inputs are a list or an array, with an entry for each: not {reprlib.repr(given)}")
    if len(given) == 0:
        raise ValueError("there are no inputs")
    return _SPLITS[type(train)](problem, given, train)
