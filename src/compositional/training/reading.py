"""A family's problem, read from its task's folder. It is part of a run's identity, because it determines what is trained."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from compositional import plugins
from compositional.kinds import Kind
from compositional.models import Model
from compositional.regularizers import Regularizer
from compositional.training.problem import Problem


def read_problem(split: Path, family: dict[str, Any], device: str) -> Problem:
    """A family's problem from its task's folder; `family` as returned by Configuration.family_parameters."""
    about, kind, model, regularizer = imported(split, family)
    return Problem(
        task=family["task"],
        about=about,
        splits=kind.load(split, device),
        model_name=family["model"],
        model=model,
        model_parameters=family["model_parameters"],
        regularizer=regularizer,
        regularizer_parameters=family.get("regularizer_parameters", {}),
        settings=family["settings"],
        device=device,
    )


def imported(split: Path, family: dict[str, Any]) -> tuple[dict[str, Any], Kind, Model, Regularizer | None]:
    """The content of task.json, and a family's kind, model and regularizer. All code that they need is then imported."""
    about = json.loads((split / "task.json").read_text(encoding="utf-8"))
    model, regularizer = plugins.load(Model, family["model_module"]), family.get("regularizer_module")
    if model.Network:
        import_module("compositional.training.networks")
    kind = plugins.load(Kind, f"kinds.{about['kind']}")
    return about, kind, model, plugins.load(Regularizer, regularizer) if regularizer else None
