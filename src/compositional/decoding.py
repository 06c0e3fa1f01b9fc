"""Greedy decoding, and decoded predictions for people to read."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from compositional.evaluation import BATCH
from compositional.regularization import silent_tap
from compositional.sequences import START, Batch
from compositional.training import Problem


def decode_greedily(problem: Problem, weights: dict[str, Tensor], batch: Batch) -> Tensor:
    """Predicted symbols without sight of the target, (R, N) in chunk order; what follows <end> in a row is arbitrary.

    Each step is one pass over what was decoded so far: simple, and the same for every sequence model.
    """
    layout = batch.layout
    row, step = layout.positions.to(batch.targets.device).unbind(1)
    previous = torch.full_like(batch.previous, START)
    predicted = previous
    for now in range(layout.lengths[0]):
        with torch.no_grad():
            outputs = problem.model.forward(problem.model_parameters, weights, replace(batch, previous=previous), silent_tap)
        predicted = outputs.argmax(-1)
        # Position (row, now + 1) sees the symbol predicted at (row, now); in chunk order it is the next one.
        feeds = (step[:-1] == now) & (row[1:] == row[:-1])
        previous = previous.clone()
        previous[:, 1:][:, feeds] = predicted[:, :-1][:, feeds]
    return predicted


def predictions(problem: Problem, weights: dict[str, Tensor], split: str, examples: int) -> list[list[tuple[str, str, str]]]:
    """For each run rows (input, target, greedy prediction) as text, evenly spaced over a sequence split."""
    runs = next(iter(weights.values())).shape[0]
    data = problem.splits[split]
    rows_of: list[list[tuple[str, str, str]]] = [[] for _ in range(runs)]
    for rows, batch in data.evaluation_batches(runs, BATCH, examples):
        chunks = batch.layout.chunks(decode_greedily(problem, weights, batch))
        for run in range(runs):
            decoded = [row for chunk in chunks for row in chunk[run].tolist()]
            for index, symbols in zip(rows.tolist(), decoded, strict=False):
                source, target = (
                    data.source.decode(data.inputs[index].tolist()),
                    data.target.decode(data.targets[index].tolist()),
                )
                rows_of[run].append((source, target, data.target.decode(symbols)))
    return rows_of
