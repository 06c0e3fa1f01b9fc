"""Subwords for both languages of a translation: byte-pair encoding (Sennrich, Haddow, Birch, ACL 2016) of training pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_UNKNOWN = "<unknown>"


def _learn(texts: Sequence[str], size: int, punctuation: bool):
    """A byte-pair encoding of the texts; a subword at the beginning of a word starts with a mark."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token=_UNKNOWN))
    words = pre_tokenizers.Metaspace()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.Punctuation()]) if punctuation else words
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, special_tokens=[_UNKNOWN], show_progress=False))
    return tokenizer


def encoded(
    pairs: Mapping[str, Sequence[tuple[str, str]]], size: int, punctuation: bool = False
) -> dict[str, list[tuple[str, str]]]:
    """Pairs by member, with subwords separated by spaces (`decoding.join_subwords` joins them again).

    Args:
        pairs: pairs of sentences by member. Those of "train" determine the encoding, which both sides share.
        size: number of subwords of the encoding.
        punctuation: whether to separate punctuation marks from words before subwords are learned, as raw text requires.
    """
    tokenizer = _learn([text for pair in pairs["train"] for text in pair], size, punctuation)

    def side(texts: Sequence[str]) -> list[str]:
        return [" ".join(found.tokens) for found in tokenizer.encode_batch(list(texts))]

    return {name: list(zip(*map(side, zip(*rows, strict=True)), strict=True)) for name, rows in pairs.items()}
