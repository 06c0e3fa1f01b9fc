"""Training of a pack of runs in one process, along a leading run axis.

All runs of a pack share task, model and regularizer. Each run has its own weights, batches, noise, lambda, gradient clipping and
optimizer state, and may diverge alone. Training proceeds in segments that end where curves are recorded. Runs at the same step
train together, so a run resumed from an earlier checkpoint first catches up alone. On the CPU everything runs on one thread. This
makes a run's numbers independent of its neighbors and of the number of cores; several packs use several cores more efficiently.
"""

from __future__ import annotations

import gc
import time
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compositional import randomness
from compositional.kinds import Batch
from compositional.regularizers import Regularizer, Representation, Step
from compositional.training import optimizers
from compositional.training.noise import Noise
from compositional.training.problem import Problem, buffers, weight_layout
from compositional.training.state import State
from compositional.training.step import Tap


@cache
def _side_stream() -> torch.cuda.Stream:
    """The stream on which steps are recorded, the same for all packs: memory (64 MiB) stayed in use for every further one."""
    return torch.cuda.Stream()


class Pack:
    """R runs at the same step, ready to train together."""

    def __init__(self, problem: Problem, states: list[State], prepared: Any) -> None:
        self.problem, self.states, self.prepared = problem, states, prepared
        self.layout = weight_layout(problem)
        settings, device = problem.settings, problem.device
        self.train = problem.splits["train"]
        self.batch_of = self.train.training_batches(settings["batch_size"])
        stacked = {name: torch.stack([state.tensors[name] for state in states]).to(device) for name in states[0].tensors}
        self.flat, self.first, self.second = stacked["weights"], stacked["first_moment"], stacked["second_moment"]
        self.weights = {name: view.detach().requires_grad_() for name, view in self.layout.views(self.flat).items()}
        fixed = [buffers(problem, state.seed) for state in states]
        stacked = {name: torch.stack([own[name] for own in fixed]).to(device) for name in fixed[0]}
        self.tensors = self.weights | stacked  # everything that a forward pass needs, (R, ...) by name
        self.strength = torch.tensor([state.strength for state in states], device=device)
        self.active = (self.strength > 0).to(torch.float32)
        self.diverged_at = torch.full((len(states),), -1, device=device)
        # Task loss, penalty and, for group_rmsprop, step size, summed since the last record.
        self.summed = ("loss", "penalty") + (("step_size",) if settings["optimizer"] == "group_rmsprop" else ())
        self.totals = torch.zeros(len(self.summed), len(states), device=device)
        # Inputs that change from step to step are at fixed addresses: rows, noise, [learning rate, bias corrections], step.
        self.rows = torch.zeros(len(states), settings["batch_size"], dtype=torch.int64, device=device)
        self.scales = torch.zeros(3, device=device)
        self.now = torch.zeros((), dtype=torch.int64, device=device)
        # Dropout has its own stream, so that a regularizer's noise does not change which units are dropped.
        self.noise, self.dropout = (
            Noise([self.key(state, stream) for state in states], device) for stream in ("noise", "dropout")
        )
        self._objective()
        self.noise.reserve()
        self.dropout.reserve()
        self.graph: torch.cuda.CUDAGraph | None = None

    def key(self, state: State, stream: str) -> int:
        """The key of one of a run's streams of random numbers."""
        return randomness.derive(self.problem.seeded_as, self.problem.model_name, state.seed, stream)

    def _step_of(self, batch: Batch) -> Step:
        """What a regularizer is given for a forward pass. It refers to this pack, which must not refer to it: memory, on CUDA a
        recorded graph too, is then free when the pack is no longer used."""
        problem = self.problem
        given = (problem.regularizer_parameters, batch, self.active, self.noise, self._again, self.prepared)
        return Step(*given, strength=self.strength, weights=self.weights, loss=problem.settings["loss"])

    def _outputs(self, batch: Batch, step: Step, regularizer: Regularizer | None) -> Tensor:
        """The model's outputs; representations are recorded in the step, and perturbed by a regularizer."""
        tap = Tap(step, regularizer, self.dropout)
        return self.problem.model.forward(self.problem.model_parameters, self.tensors, batch, tap)

    def _again(self, batch: Batch) -> tuple[Tensor, list[Representation]]:
        """Outputs and representations of another forward pass, which is not perturbed."""
        step = self._step_of(batch)
        return self._outputs(batch, step, None), step.representations

    def _objective(self) -> tuple[Tensor, Tensor]:
        """Task loss and penalty of the current rows, each (R,)."""
        problem, regularizer = self.problem, self.problem.regularizer
        self.noise.used = self.dropout.used = 0
        batch = self.batch_of(self.rows)
        batch = regularizer.watch(batch) if regularizer else batch
        step = self._step_of(batch)
        step.outputs = self._outputs(batch, step, regularizer)
        task_loss = batch.losses(step.outputs, problem.settings["loss"]).sum(1) / problem.settings["batch_size"]
        return task_loss, regularizer.penalty(step) if regularizer else torch.zeros_like(task_loss)

    def gradient(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Task loss, penalty, gradient (R, P) and its norm for the current rows, and which runs are healthy.

        Runs with a loss or gradient that is not finite are marked as diverged at the current step.
        """
        task_loss, penalty = self._objective()
        total = task_loss + self.strength * penalty
        gradients = torch.autograd.grad(total.sum(), list(self.weights.values()), allow_unused=True, materialize_grads=True)
        with torch.no_grad():
            gradient = self.layout.gather(gradients, len(self.states))
            norm = gradient.square().sum(1).sqrt()
            alive = self.diverged_at < 0
            healthy = alive & torch.isfinite(total) & torch.isfinite(norm)
            self.diverged_at.copy_(torch.where(alive & ~healthy, self.now, self.diverged_at))
        return task_loss, penalty, gradient, norm, healthy

    def _step(self) -> None:
        """One gradient step of every run. It reads its inputs from the fixed addresses and copies no value to the host."""
        task_loss, penalty, gradient, norm, healthy = self.gradient()
        with torch.no_grad():
            size = optimizers.update(
                self.problem.settings, gradient, norm, healthy, self.flat, self.first, self.second, self.scales
            )
            if size is not None:
                self.totals[2] += size
            self.totals[:2] += torch.stack([task_loss, penalty])

    def _run_step(self) -> None:
        """One step. On CUDA it is recorded once as a graph and replayed: one launch instead of hundreds of kernels."""
        if self.problem.device == "cpu" or not self.problem.model.GRAPH:
            self._step()
            return
        if self.graph is None:
            # Warm-up and capture run the step, so what it changes is restored afterwards.
            kept = (self.flat, self.first, self.second, self.totals, self.diverged_at)
            before = [tensor.clone() for tensor in kept]
            side = _side_stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self._step()
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()  # used for every step from now on
            gc.collect()  # an earlier graph in a reference cycle, freed during the recording, would end it with an error
            with torch.cuda.graph(self.graph, stream=side):
                self._step()
            for tensor, value in zip(kept, before, strict=True):
                tensor.copy_(value)
        self.graph.replay()

    def advance(self, stop: int) -> None:
        """Train every run from its current step to `stop`, then write the results back to the states."""
        settings, begin = self.problem.settings, self.states[0].step
        started = time.perf_counter()
        drawn = [self.train.draw(self.key(state, "batches"), range(begin, stop), settings["batch_size"]) for state in self.states]
        rows = torch.from_numpy(np.stack(drawn, 1)).to(self.problem.device)
        scales = torch.tensor([optimizers.scales(settings, step) for step in range(begin, stop)], device=self.problem.device)
        self.totals.zero_()
        # The loop copies nothing from the host: a GPU would have to wait for it at each step.
        for step in range(begin, stop):
            self.rows.copy_(rows[step - begin])
            self.scales.copy_(scales[step - begin])
            self.now.fill_(step)
            self.noise.draw(step)
            self.dropout.draw(step)
            self._run_step()
        if stop == settings["steps"]:
            # Divergence in the last step would otherwise go unnoticed, because no further step computes a gradient.
            self.now.fill_(stop)
            self.gradient()
        means = (self.totals / (stop - begin)).tolist()
        diverged_at = self.diverged_at.tolist()
        flat = {"weights": self.flat.cpu(), "first_moment": self.first.cpu(), "second_moment": self.second.cpu()}
        seconds = (time.perf_counter() - started) / len(self.states)
        for index, state in enumerate(self.states):
            state.tensors = {name: rows[index].clone() for name, rows in flat.items()}
            state.step, state.seconds = stop, state.seconds + seconds
            state.diverged_at = None if diverged_at[index] < 0 else diverged_at[index]
            for name, values in zip(self.summed, means, strict=True):
                state.history.append((stop, "batches", name, values[index]))
