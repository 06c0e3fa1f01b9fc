"""What training and evaluation share: a family's problem, read from disk."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from compositional import training


def load_problem(split: Path, family: dict[str, Any], device: str) -> training.Problem:
    """All that the runs of a family share; `family` as from Configuration.family_parameters."""
    about = json.loads((split / "task.json").read_text())
    regularizer = family.get("regularizer_module")
    return training.Problem(
        task=family["task"],
        about=about,
        splits=import_module(f"compositional.{about['kind']}s").load(split, device),
        model_name=family["model"],
        model=import_module(f"compositional.{family['model_module']}"),
        model_parameters=family["model_parameters"],
        regularizer=import_module(f"compositional.{regularizer}") if regularizer else None,
        regularizer_parameters=family.get("regularizer_parameters", {}),
        settings=family["settings"],
        device=device,
    )
