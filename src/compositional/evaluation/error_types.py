"""The type of error of a predicted sequence, in words."""

from __future__ import annotations

ERROR_TYPES = ("right", "empty", "cut short", "goes on", "repeats", "other order", "wrong symbols", "wrong length")


def error_type(target: str, prediction: str) -> str:
    """The first of ERROR_TYPES that describes a prediction, whose symbols are separated by spaces.

    right; empty; cut short (a beginning of the target); goes on (starts with the complete target); repeats (longer than the
    target, and ends with one phrase at least three times in a row); other order (the same symbols with the same counts); wrong
    symbols (right length); wrong length (all others).
    """
    wanted, found = target.split(), prediction.split()
    if found == wanted:
        return "right"
    if not found:
        return "empty"
    if found == wanted[: len(found)]:
        return "cut short"
    if found[: len(wanted)] == wanted:
        return "goes on"
    if len(found) > len(wanted) and any(
        found[-n:] == found[-2 * n : -n] == found[-3 * n : -2 * n] for n in range(1, len(found) // 3 + 1)
    ):
        return "repeats"
    if sorted(found) == sorted(wanted):
        return "other order"
    return "wrong symbols" if len(found) == len(wanted) else "wrong length"
