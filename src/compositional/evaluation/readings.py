"""How published accuracy on GeoQuery in FunQL (SUBS, SpanSub) may be meant: best checkpoint on the test set, brackets repaired.

Our own accuracy is the exact match of the last step. Choosing a checkpoint on the test set overestimates accuracy, and repairing
brackets corrects the output.
"""

from __future__ import annotations

import csv
from pathlib import Path


def repaired(form: str) -> str:
    """A form with its missing closing brackets appended, or with surplus closing brackets removed from its end."""
    symbols = form.split()
    missing = symbols.count("(") - symbols.count(")")
    while missing < 0 and symbols and symbols[-1] == ")":
        symbols.pop()
        missing += 1
    return " ".join(symbols + [")"] * missing)


def best_recorded(history: Path, examples: int, recorded: int) -> tuple[str, float]:
    """The largest test accuracy during training, named after the number of points it was chosen from; step 0 does not count.

    examples: how many the test set has. recorded: how many a point is measured on; if fewer, the name says so.
    """
    with history.open(newline="", encoding="utf-8") as stream:
        rows = [
            row for row in csv.DictReader(stream) if (row["split"], row["metric"]) == ("test", "accuracy") and int(row["step"])
        ]
    of = f"{len(rows)} points" if recorded >= examples else f"{len(rows)} points on {recorded} examples"
    return f"accuracy, best of {of}", max(float(row["value"]) for row in rows)
