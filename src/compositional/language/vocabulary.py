"""Vocabularies: the numbers of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

PAD, START, END = 0, 1, 2


@dataclass(frozen=True)
class Vocabulary:
    """Words in a fixed order after <pad>, <start> and <end>."""

    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.words)

    @staticmethod
    def of(sentences: Sequence[str]) -> Vocabulary:
        """All words of the sentences, sorted."""
        return Vocabulary(("<pad>", "<start>", "<end>", *sorted({w for s in sentences for w in s.split()})))

    def encode(self, sentences: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Token numbers (n, longest), each sentence followed by END and padded with PAD, and lengths (n,) including END."""
        number = {word: index for index, word in enumerate(self.words)}
        rows = [[*map(number.__getitem__, sentence.split()), END] for sentence in sentences]
        lengths = np.array([len(row) for row in rows])
        tokens = np.full((len(rows), lengths.max()), PAD)
        tokens[np.arange(tokens.shape[1]) < lengths[:, None]] = np.fromiter(chain.from_iterable(rows), np.int64)
        return tokens, lengths

    def decode(self, tokens: Sequence[int]) -> str:
        """The words up to the first <end>."""
        words = []
        for token in tokens:
            if token == END:
                break
            words.append(self.words[token])
        return " ".join(words)
