"""Numbers in the command lines of the benchmarks. Wrong ones are refused in a sentence."""

from __future__ import annotations

from argparse import ArgumentTypeError


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
