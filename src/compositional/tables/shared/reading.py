"""Tables as the workflow writes them, read back."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd

# Columns that together name the run of a row.
RUN = ("task", "model", "regularizer", "lambda", "seed")
# Columns of names and words. pandas takes some for missing: "null", "nan", "NA", "None".
TEXTS = ("task", "model", "regularizer", "split", "metric", "input", "target", "prediction", "representation", "item")
MISSING = ["", "nan", "NaN", "NA"]


def read_table(path: Path) -> pd.DataFrame:
    """A CSV file with its names as they are; what is missing of other columns is NaN."""
    with path.open(newline="", encoding="utf-8") as stream:
        columns = next(csv.reader(stream), [])
    missing = {name: MISSING for name in columns if name not in TEXTS}
    return pd.read_csv(path, dtype=dict.fromkeys(TEXTS, str), keep_default_na=False, na_values=missing, encoding="utf-8")
