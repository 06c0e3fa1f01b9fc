"""Read tables that the workflow wrote."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd

# Columns that together identify the run of a row.
RUN = ("task", "model", "regularizer", "lambda", "seed")
# Columns of names and words. By default, pandas reads some words as missing values: "null", "nan", "NA", "None".
TEXTS = ("task", "model", "regularizer", "split", "metric", "input", "target", "prediction", "representation", "item")
MISSING = ["", "nan", "NaN", "NA"]


def read_table(path: Path) -> pd.DataFrame:
    """Read a CSV file. Columns of names are kept unchanged; missing values of other columns are NaN."""
    with path.open(newline="", encoding="utf-8") as stream:
        columns = next(csv.reader(stream), [])
    missing = {name: MISSING for name in columns if name not in TEXTS}
    return pd.read_csv(path, dtype=dict.fromkeys(TEXTS, str), keep_default_na=False, na_values=missing, encoding="utf-8")
