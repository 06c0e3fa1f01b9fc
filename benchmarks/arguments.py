"""Command lines of the benchmarks. Wrong numbers are refused in a sentence."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter


def parser_of(text: str | None) -> ArgumentParser:
    """A parser whose help is the text as it is, such as a script's docstring."""
    return ArgumentParser(description=text, formatter_class=RawDescriptionHelpFormatter)


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} must be a whole number of at least 1")
    return int(text)


def duration(text: str) -> float:
    """Seconds or minutes: a number above 0."""
    try:
        if 0 < float(text) < float("inf"):
            return float(text)
    except ValueError:
        pass
    raise ArgumentTypeError(f"{text!r} must be a number above 0")
