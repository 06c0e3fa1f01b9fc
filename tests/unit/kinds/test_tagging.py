"""Sentences with a symbol at each word: what is compared, and how it is averaged."""

from __future__ import annotations

import numpy as np
import torch

from compositional.kinds.shared import epochs
from compositional.kinds.tagging import TaggingSplit
from compositional.language.vocabulary import Vocabulary

PAIRS = [("a b c", "X Y"), ("a", "X Y"), ("b b b c", "Y Y Y X")]


def split(categories=None) -> TaggingSplit:
    inputs, outputs = zip(*PAIRS, strict=True)
    return TaggingSplit(inputs, outputs, Vocabulary.of(inputs), Vocabulary.of(outputs), "cpu", categories)


def whole(own: TaggingSplit):
    return own.batch(torch.arange(len(own)).unsqueeze(0))


def test_symbols_belong_to_words_and_the_longer_side_is_cut():
    batch = whole(split())
    assert batch.input_mask[0].tolist() == [[True] * 3 + [False], [True] + [False] * 3, [True] * 4]
    assert batch.target_mask[0].tolist() == [[True] * 2 + [False] * 2, [True] + [False] * 3, [True] * 4]
    x, y = split().target.words.index("X"), split().target.words.index("Y")
    assert batch.targets[0][batch.target_mask[0]].tolist() == [x, y, x, y, y, y, x]


def test_means_over_examples_are_means_over_symbols():
    own = split()
    batch, x = whole(own), own.target.words.index("X")
    logits = torch.zeros(1, 3, 4, len(own.target))
    logits[..., x] = 1.0  # writes X everywhere: right at three of seven symbols
    torch.testing.assert_close(batch.metrics(logits)["accuracy"].mean(), torch.tensor(3 / 7))
    each = -torch.log_softmax(logits[0, 0, 0], 0)
    expected = (3 * each[x] + 4 * each[own.target.words.index("Y")]) / 7
    torch.testing.assert_close(batch.losses(logits, "cross_entropy").sum() / 3, expected)


def test_categories_count_by_their_examples_and_symbols_within_them():
    own = split(["long", "short", "long"])
    batch, x = whole(own), own.target.words.index("X")
    right = batch.metrics(torch.zeros(1, 3, 4, len(own.target)).index_fill(3, torch.tensor(x), 1.0))["accuracy"][0]
    torch.testing.assert_close(right[[0, 2]].mean(), torch.tensor(2 / 6))  # of six symbols in the two long examples
    torch.testing.assert_close(right[1], torch.tensor(1.0))


def test_an_epoch_takes_every_example_and_its_last_batch_is_filled_with_its_first():
    drawn = epochs.draw(7, range(6), 8, 3)
    for epoch in (drawn[:3].ravel(), drawn[3:].ravel()):
        assert sorted(epoch[:8]) == list(range(8))
        assert epoch[8] == epoch[0]
    np.testing.assert_array_equal(epochs.draw(7, range(4, 6), 8, 3), drawn[4:])
