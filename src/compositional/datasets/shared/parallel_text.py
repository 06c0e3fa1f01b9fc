"""Translations line by line, with one file per language."""

from __future__ import annotations

from pathlib import Path


def read(raw: Path, file: str, languages: tuple[str, str]) -> list[tuple[str, str]]:
    """Pairs of sentences from the files "<file>.<language>" in the folder of a dataset, with single spaces; pairs with an empty
    side are left out.

    Raises:
        ValueError: the two files differ in their number of lines.
    """
    # Some sentences contain Unicode's other line separators, but only "\n" ends a line.
    sides = [(raw / f"{file}.{language}").read_text(encoding="utf-8").rstrip("\n").split("\n") for language in languages]
    if len(sides[0]) != len(sides[1]):
        left, right = (f"{file}.{language} has {len(side)} lines" for language, side in zip(languages, sides, strict=True))
        raise ValueError(f"{raw.name}: {left}, but {right}: they cannot be line-by-line translations")
    # Subwords are separated by spaces. Other white space must not be in them, because BLEU's references would lose it.
    plain = ([" ".join(text.split()) for text in side] for side in sides)
    return [(left, right) for left, right in zip(*plain, strict=True) if left and right]
