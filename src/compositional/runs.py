"""Runs, the grids that figures ask for, and where their files are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAME = r"[a-z][a-z0-9_]*"
LAMBDA = r"[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?"
SEED = r"[0-9]+"


def format_lambda(value: float) -> str:
    """The only way to write a lambda in a path: 0, 0.1, 10, 1e-05. A run uses the lambda of its path, which has twelve digits."""
    return f"{value:.12g}"


@dataclass(frozen=True, order=True)
class Run:
    """One training; most results are keyed by it. The regularizer is "none" if and only if lambda is 0."""

    task: str
    model: str
    regularizer: str
    strength: float  # lambda
    seed: int

    @property
    def family(self) -> tuple[str, str, str]:
        """Runs of one family have the same shapes and may train together."""
        return self.task, self.model, self.regularizer

    @property
    def path(self) -> str:
        """The run's folder below results/runs."""
        return f"{self.task}/{self.model}/{self.regularizer}/lambda={format_lambda(self.strength)}/seed={self.seed}"

    @property
    def method(self) -> str:
        """Model, regularizer and lambda as in the path: what figures compare across tasks and seeds."""
        return "/".join(self.path.split("/")[1:4])

    @staticmethod
    def parse(path: str) -> Run:
        """The inverse of `path`.

        Raises:
            ValueError: the path does not name a run.
        """
        match = re.fullmatch(rf"({NAME})/({NAME})/({NAME})/lambda=({LAMBDA})/seed=({SEED})", path)
        if match is None or float(match[4]) == float("inf"):
            form = "<task>/<model>/<regularizer>/lambda=<number>/seed=<number>"
            raise ValueError(
                f"{path!r} is not {form} with a lambda such as 0.1 or 1e-05, finite and at least 0, and a seed such as 3"
            )
        task, model, regularizer, strength, seed = match.groups()
        return Run(task, model, regularizer, float(strength), int(seed))

    @staticmethod
    def of_folder(folder: Path) -> Run:
        """The run whose folder this is."""
        return Run.parse("/".join(folder.parts[-5:]))


def expand(grid: dict[str, Any]) -> list[Run]:
    """All runs of one grid of a figure: for each seed the plain run and every lambda of every regularizer."""
    runs = []
    for seed in grid["seeds"]:
        runs.append(Run(grid["task"], grid["model"], "none", 0.0, seed))
        for regularizer, strengths in grid["regularizers"].items():
            runs += [Run(grid["task"], grid["model"], regularizer, float(format_lambda(s)), seed) for s in strengths if s > 0]
    return runs


def figure_runs(figure: dict[str, Any]) -> list[Run]:
    """All runs of a figure, each once, sorted; none if it shows a task's examples (source "split")."""
    if figure["sources"] == ["split"]:
        return []
    return sorted({run for grid in figure["grids"] for run in expand(grid)})


def run_folder(results: Path | str, run: Run) -> Path:
    """Where a run's files are."""
    return Path(results) / "runs" / run.path
