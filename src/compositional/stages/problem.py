"""What training and evaluation share: the device, and a family's problem read from disk."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from compositional import training


def resolve_device(wanted: str) -> str:
    """ "cpu" or "cuda" for a configured device.

    Raises:
        RuntimeError: CUDA was asked for and is not there.
    """
    if wanted == "cuda" and not torch.cuda.is_available():
        raise RuntimeError(
            "device: cuda was asked for, but PyTorch sees no CUDA device on this machine; ask the scheduler for a GPU, "
            "or set device: cpu (or auto) in the configuration"
        )
    device = "cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu"
    if device == "cuda":
        # TensorFloat32 and kernels whose sums have no fixed order would make results depend on luck.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
    else:
        torch.set_num_threads(1)
    return device


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
