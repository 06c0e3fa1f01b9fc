"""Symbolic addition: the sum of two items' values, over five kinds of training sets. See tasks.shared.designs."""

from __future__ import annotations

from pathlib import Path

from datasets import DatasetDict

from compositional.tasks.shared import designs

KIND = "combination"
DATASET = "symbols"
PARAMETERS = designs.ADDITION


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train and test, with `sets` training sets if the training set is dispersed. Reads no file.

    Raises:
        ValueError: `sets` is above 1 and the training set is not dispersed.
    """
    count = parameters["sets"]
    if count > 1 and parameters["trained_items"]:
        raise ValueError(f"sets is for the dispersed training set (trained_items: []); it is {count}")
    first = parameters["shuffle"]
    return designs.build([designs.addition(parameters | {"shuffle": seed}) for seed in range(first, first + count)])
