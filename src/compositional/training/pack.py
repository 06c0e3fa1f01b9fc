"""Training of a pack of runs in one process, along a leading run axis.

All runs of a pack share task, model and regularizer; each has its own weights, batches, noise, lambda, gradient clipping,
optimizer state and fate. Training goes in segments that end where curves are recorded; runs that stand at the same step
train together, so a run resumed from a checkpoint first catches up on its own. On the CPU everything runs on one thread:
that makes a run's numbers independent of its neighbors and of the machine's cores, and cores are better used by packs.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compositional import randomness
from compositional.layers import functional as packed
from compositional.training.step import Step, Tap

# How many runs compute together, always: on CUDA the library picks a batched kernel by the number of runs, so fewer are
# filled up with copies that are thrown away. On the CPU every number of runs gives the same bits.
WIDTH: dict[str, int | None] = {"cpu": None, "cuda": 64}
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
# Of group_rmsprop, as in the code of Razin, Maman and Cohen (ICML 2022): with g the gradient of all weights w and t = 1, 2, ...,
# s <- 0.99 s + 0.01 |g|^2; w <- w - rate g / (sqrt(s / (1 - 0.99^t)) + 1e-6).
_GROUP_BETA, _GROUP_EPSILON = 0.99, 1e-6


@dataclass
class Problem:
    """Everything that the runs of a pack share. `splits` by name, of a class for each kind of task, such as SequenceSplit."""

    task: str
    about: dict[str, Any]  # task.json
    splits: dict[str, Any]
    model_name: str
    model: ModuleType
    model_parameters: dict[str, Any]
    regularizer: ModuleType | None
    regularizer_parameters: dict[str, Any]
    settings: dict[str, Any]  # as in PARAMETERS
    device: str


def read_problem(split: Path, family: dict[str, Any], device: str) -> Problem:
    """A family's problem from its task's folder; `family` as from Configuration.family_parameters."""
    about = json.loads((split / "task.json").read_text())
    regularizer = family.get("regularizer_module")
    return Problem(
        task=family["task"],
        about=about,
        splits=import_module(f"compositional.kinds.{about['kind']}").load(split, device),
        model_name=family["model"],
        model=import_module(f"compositional.{family['model_module']}"),
        model_parameters=family["model_parameters"],
        regularizer=import_module(f"compositional.{regularizer}") if regularizer else None,
        regularizer_parameters=family.get("regularizer_parameters", {}),
        settings=family["settings"],
        device=device,
    )


@dataclass(eq=False)
class State:
    """One run in training: everything a checkpoint must hold. Compared by identity."""

    seed: int
    strength: float  # lambda
    step: int = 0
    diverged_at: int | None = None
    # Flat weights, first and second moments, each (P,); the moments of group_rmsprop are one number each.
    tensors: dict[str, Tensor] = field(default_factory=dict)
    history: list[tuple[int, str, str, float]] = field(default_factory=list)
    seconds: float = 0.0


def width_of(problem: Problem) -> int | None:
    """How many runs compute together on this device. A model too large to be filled up has a WIDTH of its own, and a
    configuration can name one for a large variant."""
    if problem.device == "cuda" and problem.settings["cuda_width"]:
        return problem.settings["cuda_width"]
    return getattr(problem.model, "WIDTH", {}).get(problem.device, WIDTH[problem.device])


class Weights:
    """The weights of R runs in one buffer (R, P), seen as named tensors (R, ...). Offsets are multiples of 64 bytes."""

    def __init__(self, shapes: dict[str, torch.Size]) -> None:
        self.shapes = shapes
        self.slices: dict[str, slice] = {}
        end = 0
        for name, shape in shapes.items():
            self.slices[name] = slice(end, end + shape.numel())
            end += packed.aligned(shape.numel())
        self.size = end

    def flatten(self, named: dict[str, Tensor]) -> Tensor:
        """(P,) from one run's named tensors; gaps are zero."""
        flat = torch.zeros(self.size)
        for name, where in self.slices.items():
            flat[where] = named[name].reshape(-1)
        return flat

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Named views (R, ...) of (R, P)."""
        return {name: flat[:, where].unflatten(1, self.shapes[name]) for name, where in self.slices.items()}

    def gather(self, named: Iterable[Tensor], runs: int) -> Tensor:
        """(R, P) from the named tensors' gradients, in order."""
        parts = []
        for gradient, shape in zip(named, self.shapes.values(), strict=True):
            gap = -shape.numel() % 16
            parts += [gradient.reshape(runs, -1)] + ([gradient.new_zeros(runs, gap)] if gap else [])
        return torch.cat(parts, 1)


def initial_weights(problem: Problem, seed: int) -> dict[str, Tensor]:
    """One run's weights before training, by name, without a run axis."""
    key = randomness.derive(problem.task, problem.model_name, seed, "initialization")
    return problem.model.initialize(problem.model_parameters, problem.about, randomness.generator(key))


def buffers(problem: Problem, seed: int) -> dict[str, Tensor]:
    """What a run's forward pass needs besides its weights and does not train, such as its graph; nothing for most models."""
    make = getattr(problem.model, "buffers", None)
    return make(problem.model_parameters, problem.about, seed) if make else {}


def weight_layout(problem: Problem) -> Weights:
    """How this problem's weights lie in a flat buffer."""
    return Weights({name: tensor.shape for name, tensor in initial_weights(problem, 0).items()})


def start(problem: Problem, seed: int, strength: float) -> State:
    """A run before its first step."""
    flat = weight_layout(problem).flatten(initial_weights(problem, seed))
    zeros = torch.zeros(1 if problem.settings["optimizer"] == "group_rmsprop" else len(flat))
    return State(seed, strength, tensors={"weights": flat, "first_moment": zeros, "second_moment": zeros.clone()})


def ended(state: State, settings: dict[str, Any]) -> bool:
    """Whether a run needs no more steps: its budget is used, it diverged, or its training loss has stayed low (`stop_loss`)."""
    if state.step >= settings["steps"] or state.diverged_at is not None:
        return True
    if settings["stop_loss"] is None:
        return False
    losses = ((step, value) for step, split, metric, value in reversed(state.history) if (split, metric) == ("train", "loss"))
    low_since = None
    for step, value in losses:
        if not value < settings["stop_loss"]:
            break
        low_since = step
    return low_since is not None and state.step - low_since >= settings["stop_steps"]


class Noise:
    """Standard normal numbers for one step of R runs, each from its own stream; drawn before the step, at a fixed address.

    Until `reserve` is called it counts what a step asks for, and gives zeros.
    """

    def __init__(self, keys: list[int], device: str) -> None:
        self.keys, self.used = keys, 0
        self.numbers = torch.zeros(len(keys), 0, device=device)

    def __call__(self, shape: torch.Size) -> Tensor:
        """(R, *shape): the numbers that follow those already taken."""
        begin, self.used = self.used, self.used + math.prod(shape)
        if self.used > self.numbers.shape[1]:
            return self.numbers.new_zeros(len(self.keys), *shape)
        return self.numbers[:, begin : self.used].view(len(self.keys), *shape)

    def reserve(self) -> None:
        """Make room for as many numbers as were asked for."""
        self.numbers = self.numbers.new_zeros(len(self.keys), self.used)

    def draw(self, step: int) -> None:
        """The numbers of a step."""
        if self.numbers.shape[1]:
            randomness.normal(self.keys, step, self.numbers.shape[1], self.numbers)


def _stop(rows: Tensor, healthy: Tensor) -> None:
    """Put zeros into the rows (R, P) of runs that are not `healthy` (R,)."""
    if rows.device.type != "cpu":
        rows.masked_fill_(~healthy.unsqueeze(1), 0.0)
    elif not healthy.all():  # on the CPU a look is cheaper than a pass over all weights
        rows[~healthy] = 0.0


class Pack:
    """R runs at the same step, ready to train together."""

    def __init__(self, problem: Problem, states: list[State], prepared: Any) -> None:
        self.problem, self.states, self.prepared = problem, states, prepared
        self.layout = weight_layout(problem)
        settings, device = problem.settings, problem.device
        self.train = problem.splits["train"]
        self.batch_layout = self.train.training_layout(settings["batch_size"])
        stacked = {name: torch.stack([state.tensors[name] for state in states]).to(device) for name in states[0].tensors}
        self.flat, self.first, self.second = stacked["weights"], stacked["first_moment"], stacked["second_moment"]
        self.weights = {name: view.detach().requires_grad_() for name, view in self.layout.views(self.flat).items()}
        fixed = [buffers(problem, state.seed) for state in states]
        stacked = {name: torch.stack([own[name] for own in fixed]).to(device) for name in fixed[0]}
        self.tensors = self.weights | stacked  # all that a forward pass needs, (R, ...) by name
        self.strength = torch.tensor([state.strength for state in states], device=device)
        self.active = (self.strength > 0).to(torch.float32)
        self.diverged_at = torch.full((len(states),), -1, device=device)
        # Task loss, penalty and (group_rmsprop) size of the step, summed since the last record.
        self.summed = ("loss", "penalty") + (("step_size",) if settings["optimizer"] == "group_rmsprop" else ())
        self.totals = torch.zeros(len(self.summed), len(states), device=device)
        # What changes from step to step, at fixed addresses: rows, noise, [learning rate, bias corrections], step.
        self.rows = torch.zeros(len(states), settings["batch_size"], dtype=torch.int64, device=device)
        self.scales = torch.zeros(3, device=device)
        self.now = torch.zeros((), dtype=torch.int64, device=device)
        # Dropout has a stream of its own, so that a regularizer's noise does not change the units that are dropped.
        self.noise, self.dropout = (
            Noise([self._key(state, stream) for state in states], device) for stream in ("noise", "dropout")
        )
        self._objective()
        self.noise.reserve()
        self.dropout.reserve()
        self.graph = None

    def _key(self, state: State, stream: str) -> int:
        return randomness.derive(self.problem.task, self.problem.model_name, state.seed, stream)

    def _objective(self) -> tuple[Tensor, Tensor]:
        """Task loss and penalty of the current rows, each (R,)."""
        problem = self.problem
        self.noise.used = self.dropout.used = 0
        batch = self.train.batch(self.rows, self.batch_layout)
        watch = getattr(problem.regularizer, "watch", None)
        batch = watch(batch) if watch else batch

        def step_of(other: Any) -> Step:
            return Step(problem.regularizer_parameters, other, self.active, self.noise, again, self.prepared)

        def again(other: Any) -> tuple[Tensor, list]:
            step = step_of(other)
            tap = Tap(step, None, self.dropout)
            return problem.model.forward(problem.model_parameters, self.tensors, other, tap), step.representations

        step = step_of(batch)
        tap = Tap(step, problem.regularizer, self.dropout)
        step.outputs = problem.model.forward(problem.model_parameters, self.tensors, batch, tap)
        task_loss = batch.losses(step.outputs, problem.settings["loss"]).sum(1) / problem.settings["batch_size"]
        if problem.regularizer is None:
            return task_loss, torch.zeros_like(task_loss)
        return task_loss, problem.regularizer.penalty(step)

    def _gradient(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Task loss, penalty, gradient (R, P) and its norm for the current rows, and which runs are healthy; marks the others."""
        task_loss, penalty = self._objective()
        total = task_loss + self.strength * penalty
        gradients = torch.autograd.grad(total.sum(), list(self.weights.values()))
        with torch.no_grad():
            gradient = self.layout.gather(gradients, len(self.states))
            norm = gradient.square().sum(1).sqrt()
            alive = self.diverged_at < 0
            healthy = alive & torch.isfinite(total) & torch.isfinite(norm)
            self.diverged_at.copy_(torch.where(alive & ~healthy, self.now, self.diverged_at))
        return task_loss, penalty, gradient, norm, healthy

    def _step(self) -> None:
        """One gradient step of every run, from the buffers: no value is read back to the host."""
        task_loss, penalty, gradient, norm, healthy = self._gradient()
        with torch.no_grad():
            clip = self.problem.settings["clip"]
            if clip is not None:
                gradient = gradient * (clip / norm).clamp(max=1).unsqueeze(1)
            if self.problem.settings["weight_decay"]:
                gradient = gradient + self.problem.settings["weight_decay"] * self.flat
            _stop(gradient, healthy)
            rate, first_correction, second_correction = self.scales.unbind()
            if self.problem.settings["optimizer"] == "sgd":
                change = self.first.mul_(self.problem.settings["momentum"]).add_(gradient)
            elif self.problem.settings["optimizer"] == "group_rmsprop":
                used_norm = norm if clip is None else norm.clamp(max=clip)
                self.second.mul_(_GROUP_BETA).add_((1 - _GROUP_BETA) * used_norm.square().unsqueeze(1))
                pace = 1 / ((self.second * second_correction).sqrt() + _GROUP_EPSILON)
                change = gradient * pace
                self.totals[2] += pace.squeeze(1) * rate
            else:
                self.first.mul_(_BETA1).add_(gradient, alpha=1 - _BETA1)
                self.second.mul_(_BETA2).addcmul_(gradient, gradient, value=1 - _BETA2)
                change = (self.first * first_correction) / ((self.second * second_correction).sqrt() + _EPSILON)
            change = change * rate
            _stop(change, healthy)
            self.flat.sub_(change)
            self.totals[:2] += torch.stack([task_loss, penalty])

    def _run_step(self) -> None:
        """The step, on CUDA recorded once as a graph and replayed: hundreds of kernels for one launch."""
        if self.problem.device == "cpu":
            self._step()
            return
        if self.graph is None:
            # Warm-up and capture run the step: put back afterwards what it changed.
            kept = (self.flat, self.first, self.second, self.totals, self.diverged_at)
            before = [tensor.clone() for tensor in kept]
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self._step()
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self._step()
            for tensor, value in zip(kept, before, strict=True):
                tensor.copy_(value)
        self.graph.replay()

    def _scales(self, step: int) -> list[float]:
        """Learning rate, and what corrects the moments' bias (Kingma and Ba 2015, section 3)."""
        settings = self.problem.settings
        every = settings["decay_every"]
        rate = settings["learning_rate"] * settings["decay"] ** (step // every if every else step / 100)
        if step < settings["warmup"]:
            rate *= (step + 1) / settings["warmup"]
        betas = (_BETA1, _GROUP_BETA if settings["optimizer"] == "group_rmsprop" else _BETA2)
        return [rate, *(1 / (1 - beta ** (step + 1)) for beta in betas)]

    def advance(self, stop: int) -> None:
        """Train every run from its step to `stop`, then write the result back to the states."""
        settings, begin = self.problem.settings, self.states[0].step
        started = time.perf_counter()
        drawn = [
            self.train.draw(self._key(state, "batches"), range(begin, stop), settings["batch_size"]) for state in self.states
        ]
        rows = torch.from_numpy(np.stack(drawn, 1)).to(self.problem.device)
        scales = torch.tensor([self._scales(step) for step in range(begin, stop)], device=self.problem.device)
        self.totals.zero_()
        # Nothing comes from the host while it lasts: a GPU would have to wait for it at each step.
        for step in range(begin, stop):
            self.rows.copy_(rows[step - begin])
            self.scales.copy_(scales[step - begin])
            self.now.fill_(step)
            self.noise.draw(step)
            self.dropout.draw(step)
            self._run_step()
        if stop == settings["steps"]:
            # What the last step broke, no further one would find.
            self.now.fill_(stop)
            self._gradient()
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


def train(
    problem: Problem,
    states: list[State],
    measure: Callable[[Problem, dict[str, Tensor], int], list[dict[tuple[str, str], float]]],
    on_record: Callable[[list[State]], None] = lambda states: None,
) -> None:
    """Train all runs to the end (or to divergence), in place.

    A model with `fit(parameters, task, train_split) -> weights` is fitted at once instead, run by run.

    Args:
        states: fresh runs (`start`) or runs from checkpoints, in any mixture of steps.
        measure: (problem, weights (R, ...) by name, examples) -> for each run {(split, metric): value}.
        on_record: called after every segment with the runs that took part in it, for checkpoints and progress.
    """
    if problem.device == "cpu":
        torch.set_num_threads(1)
    regularizer = problem.regularizer
    prepare = getattr(regularizer, "prepare", None)
    prepared = prepare(problem.regularizer_parameters, problem.splits["train"]) if prepare else None
    settings = problem.settings
    steps, every = settings["steps"], settings["record_every"]

    def record(tensors: dict[str, Tensor], members: list[State]) -> None:
        measured = measure(problem, tensors, settings["curve_examples"])
        for state, values in zip(members, measured, strict=False):
            # The last finite weights of a run that diverged are no result.
            lost = state.diverged_at is not None
            state.history += [
                (state.step, split, metric, math.nan if lost else value) for (split, metric), value in values.items()
            ]

    if fit := getattr(problem.model, "fit", None):
        layout = weight_layout(problem)
        for state in [state for state in states if state.step < steps]:
            started = time.perf_counter()
            weights = layout.flatten(fit(problem.model_parameters, problem.about, problem.splits["train"]))
            state.tensors["weights"] = weights
            state.diverged_at = None if weights.isfinite().all() else steps
            state.step, state.seconds = steps, time.perf_counter() - started
            record(layout.views(weights.unsqueeze(0).to(problem.device)), [state])
            on_record([state])

    pack, current, width = None, [], width_of(problem)
    while pending := [state for state in states if not ended(state, settings)]:
        begin = min(state.step for state in pending)
        members = [state for state in pending if state.step == begin][:width]
        if members != current:
            fill = [replace(members[0], history=[]) for _ in range(len(members), width or 0)]
            pack, current = Pack(problem, members + fill, prepared), members
        if begin == 0 and 0 in settings["record_steps"]:
            record(pack.tensors, members)
        pack.advance(min(steps, begin - begin % every + every, *(step for step in settings["record_steps"] if step > begin)))
        record(pack.tensors, members)
        on_record(members)
