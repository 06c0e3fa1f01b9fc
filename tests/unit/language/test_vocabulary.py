"""Words are encoded as numbers and decoded again."""

from __future__ import annotations

from compositional.language.vocabulary import Vocabulary


def test_vocabulary_round_trip():
    vocabulary = Vocabulary.of(["b a", "c"])
    tokens, lengths = vocabulary.encode(["a c b", "b"])
    assert lengths.tolist() == [4, 2]
    assert [vocabulary.decode(row) for row in tokens.tolist()] == ["a c b", "b"]
