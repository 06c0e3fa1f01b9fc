"""A trained run that makes predictions and shows its representations."""

from __future__ import annotations

import difflib
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file
from torch import Tensor

from compositional.configuration.messages import options_for
from compositional.evaluation import activations, decoding
from compositional.evaluation.metrics import BATCH, calibrated
from compositional.kinds.sequence import SequenceSplit
from compositional.kinds.tensor import TensorSplit
from compositional.layers.ragged import ROWS
from compositional.layers.tap import silent_tap
from compositional.notebook.inputs import split_of
from compositional.records import integrity, provenance
from compositional.records.fingerprint import code
from compositional.runs import Run
from compositional.tables.shared.reading import read_table
from compositional.training.problem import Problem
from compositional.training.reading import read_problem


@dataclass(repr=False)
class TrainedRun:
    """One run with its weights. It computes on the CPU.

    run: its key. status: "done" or "diverged". steps: number of steps that it took. weights: (1, ...) by name. Tables: history
    (step, split, metric, value), metrics (split, metric, value) and, for sentences, predictions (input, target, prediction, ...).
    """

    run: Run
    status: str
    steps: int
    problem: Problem
    weights: dict[str, Tensor]
    history: pd.DataFrame
    metrics: pd.DataFrame
    predictions: pd.DataFrame | None

    def __repr__(self) -> str:
        return f"<run {self.run.path}, {self.status} after {self.steps} steps>"

    def metric(self, name: str = "accuracy", split: str = "test") -> float:
        """One number of `metrics`.

        Raises:
            KeyError: there is no such number; the message lists all that exist.
        """
        found = {(row.split, row.metric): row.value for row in self.metrics.itertuples()}
        if (split, name) not in found:
            raise KeyError(f"{self!r} has no {name!r} of {split!r}; it has {', '.join(f'{one} of {of}' for of, one in found)}")
        return float(found[split, name])

    def predict(self, inputs: Any, longest: int | None = None) -> Any:
        """The run's predictions for inputs that it has never seen (see `notebook.inputs.split_of` for their form).

        A text gives a text, a list of texts gives a list. Sentences are decoded greedily, until the run writes <end> or `longest`
        symbols (by default four times the longest output in training). Images, puzzles and points give classes (n,).
        Combinations, composites and expressions give numbers or signs (n,), or (n, K) if the model has K columns.

        Raises:
            ValueError: the run diverged, its task does not accept such inputs, or `longest` is below 1.
        """
        if longest is not None and (not isinstance(longest, int | np.integer) or longest < 1):
            raise ValueError(f"longest must be a whole number of at least 1: it is {longest!r}")
        if isinstance(inputs, str):
            return self.predict([inputs], longest)[0]
        split = self._split(inputs)
        if isinstance(split, SequenceSplit):
            trained_on: Any = self.problem.splits["train"]
            longest = longest or 4 * int(trained_on.lengths.max())
            written = []
            for rows, batch in split.evaluation_batches(1, ROWS):
                decoded = decoding.decode_greedily(self.problem, self._all(), batch, longest)
                written += [split.target.decode(row) for row in decoded[0, : len(rows)].tolist()]
            return [written[place] for place in np.argsort(split.order)]
        outputs = self._outputs(split)
        batch = split.evaluation_batches(1, 1)[0][1]
        if hasattr(batch, "labels"):
            return outputs.argmax(-1)
        outputs = outputs.squeeze(-1) if outputs.shape[-1] == 1 else outputs
        return np.sign(outputs) if batch.signs else outputs

    def outputs(self, inputs: Any) -> np.ndarray:
        """The model's outputs (n, ...) for inputs, or for a member of the task given by its name, such as "test". For a matrix or
        tensor, every name gives all entries. Sentences have no outputs of this form."""
        if isinstance(inputs, str) and inputs not in self.problem.splits:
            raise ValueError(f"task {self.problem.task!r} has no member {inputs!r}{options_for(inputs, [*self.problem.splits])}")
        member = self.problem.splits[inputs] if isinstance(inputs, str) else self._split(inputs)
        if isinstance(member, SequenceSplit):
            raise ValueError("outputs of sentences depend on what was written before: use predict(...)")
        return self._outputs(member)

    def representations(self, inputs: Any) -> dict[str, list[np.ndarray]]:
        """The model's representations of inputs, by name: one array per input, (positions, D) for sentences, else (...,).

        If a model shows two representations under one name, the second one is called name_2.
        """
        split = self._split([inputs] if isinstance(inputs, str) else inputs)
        order = getattr(split, "order", np.arange(len(split)))
        found: dict[str, list[np.ndarray]] = {}
        for rows, batch in split.evaluation_batches(1, BATCH):
            for name, (values, mask) in activations.shown(self.problem, self._all(), batch)[1].items():
                for row in range(len(rows)):
                    own = values[0, row] if mask is None else values[0, row][mask[0, row]]
                    found.setdefault(name, []).append(own.numpy())
        return {name: [values[place] for place in np.argsort(order)] for name, values in found.items()}

    def _split(self, inputs: Any) -> Any:
        if self.status == "diverged":
            raise ValueError(f"{self!r}: its last finite weights are not a result")
        return split_of(self.problem, inputs)

    def _all(self) -> dict[str, Tensor]:
        return calibrated(self.problem, self.weights)

    def _outputs(self, split: Any) -> np.ndarray:
        weights, parts = self._all(), []
        for rows, batch in split.evaluation_batches(1, BATCH):
            with torch.no_grad():
                outputs = self.problem.model.forward(self.problem.model_parameters, weights, batch, silent_tap)
            if isinstance(split, TensorSplit):
                return outputs[0].unflatten(0, self.problem.about["shape"]).numpy()
            parts.append(outputs[0, : len(rows)])
        return torch.cat(parts).numpy()


def open_run(path: str | Path) -> TrainedRun:
    """Open a run that the workflow trained by its folder, results/runs/<task>/<model>/<regularizer>/lambda=<l>/seed=<s>.

    Raises:
        FileNotFoundError: there is no trained run; the message names the nearest ones.
        DamagedFileError: its files were altered after they were written.
        ValueError: its data or metrics belong to another training.
    """
    folder = Path(path)
    if not (folder / "run.json").is_file():
        runs = Path(*folder.parts[: folder.parts.index("runs") + 1]) if "runs" in folder.parts else folder
        known = [str(one.parent) for one in runs.glob("*/*/*/lambda=*/seed=*/run.json")]
        near = ", ".join(difflib.get_close_matches(str(folder), known, n=3, cutoff=0)) or "nothing is trained there"
        what = f"holds no trained run (`snakemake {folder}/metrics.csv` makes it)"
        try:
            Run.of_folder(folder)
        except ValueError:
            what = "is not a run's folder, <task>/<model>/<regularizer>/lambda=<number>/seed=<number>"
        raise FileNotFoundError(f"{folder} {what}; near it: {near}")
    record, run = json.loads((folder / "run.json").read_text(encoding="utf-8")), Run.of_folder(folder)
    split = folder.parents[5] / "splits" / run.task
    shown = [folder / f"{name}.csv" for name in ("history", "metrics", "predictions")]
    for needed in (split, folder / "weights.safetensors", *(table for table in shown if table.exists())):
        integrity.verify(needed)
    problem = read_problem(split, record["family"], "cpu")
    if problem.about["content_sha256"] != record["data"]:
        raise ValueError(f"{folder} was trained on other data than {split} holds now; make one of them again")
    if (made_by := record["code"]) and code(*made_by["modules"])["fingerprint"] != made_by["fingerprint"]:
        warnings.warn(
            f"{folder} was trained by other code than today's, which now computes with its weights; "
            f"`snakemake {folder}/metrics.csv` trains it again",
            stacklevel=2,
        )
    weights = {name: values.unsqueeze(0) for name, values in load_file(folder / "weights.safetensors").items()}
    measured = provenance.vouched(folder / "evaluation.json")
    of_these = f"runs/{run.path}/weights.safetensors", record["files"]["weights.safetensors"]
    if measured and of_these not in measured["inputs"].items():
        raise ValueError(
            f"{folder} was trained again after its metrics were measured; `snakemake {folder}/metrics.csv` measures them again"
        )
    tables = {table.stem: read_table(table) if table.exists() else None for table in shown}
    return TrainedRun(run, record["status"], record["steps"], problem, weights, **tables)
