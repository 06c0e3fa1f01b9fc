"""Subwords of both languages of a translation: byte-pair encoding (Sennrich, Haddow, Birch, ACL 2016), learned on training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_UNKNOWN = "<unknown>"


def _learn(texts: Sequence[str], size: int, punctuation: bool):
    """A byte-pair encoding of the texts whose subwords begin with a mark where a word begins."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token=_UNKNOWN))
    words = pre_tokenizers.Metaspace()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.Punctuation()]) if punctuation else words
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, special_tokens=[_UNKNOWN], show_progress=False))
    return tokenizer


def encoded(
    pairs: Mapping[str, Sequence[tuple[str, str]]], size: int, punctuation: bool = False
) -> dict[str, list[tuple[str, str]]]:
    """Pairs by member, their subwords between spaces (`decoding.join_subwords` puts them together again).

    Args:
        pairs: of sentences, by member; those of "train" make the one encoding of both sides.
        size: subwords that the encoding has.
        punctuation: the text is raw: marks are parted from words before subwords are learned.
    """
    tokenizer = _learn([text for pair in pairs["train"] for text in pair], size, punctuation)

    def side(texts: Sequence[str]) -> list[str]:
        return [" ".join(found.tokens) for found in tokenizer.encode_batch(list(texts))]

    return {name: list(zip(*map(side, zip(*rows, strict=True)), strict=True)) for name, rows in pairs.items()}
