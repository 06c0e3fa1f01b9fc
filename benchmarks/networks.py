"""The cost of writing a model as an ordinary torch.nn.Module: CPU time per run-step, with all ways measured in turn in one
process.

    python benchmarks/networks.py
    python benchmarks/networks.py --model gru_attention --rounds 9 --steps 10

plain: a typical PyTorch training loop, with the same network, batches, loss, clipping and Adam. plain, uniform: sentences are
drawn uniformly and padded to the longest of their batch; this project's batches are stratified by length and always contain long
sentences. adapter: the same network trained by this project (`training.networks`), one run. packed: the most similar model
written for many runs; only batchnorm_cnn computes exactly the same. One thread. Medians over rounds; smallest and largest ratio.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import torch
from arguments import count, parser_of
from packed_training import about_of, splits_of
from torch import Tensor, nn
from torch.nn import functional

from compositional import plugins
from compositional.kinds.sequence import SequenceSplit, Single
from compositional.language.vocabulary import PAD, START
from compositional.models import Model
from compositional.plugins import defaults
from compositional.training.pack import Pack
from compositional.training.problem import Problem, initial_weights
from compositional.training.state import fresh_state

# Model: the most similar packed model, data and batch size.
MODELS = {
    "gru_attention": ("lstm_attention", "scan", 256),
    "transformer_torch": ("transformer", "scan", 64),
    "batchnorm_cnn_torch": ("batchnorm_cnn", "mnist", 64),
}
SMALLER = {
    "transformer": {"encoder_layers": 2, "decoder_layers": 2, "width": 32, "heads": 4, "dropout": 0.1},
    "transformer_torch": {"width": 32, "heads": 4, "feedforward_width": 64},
    "batchnorm_cnn": {"channels": [16, 16, 32, 32], "dense_widths": [64]},
    "batchnorm_cnn_torch": {"channels": [16, 16, 32, 32], "dense_widths": [64]},
}


def problem_of(model: str, data: str, size: int) -> Problem:
    """A model without a regularizer, on SCAN or on images with the shape of pairs of MNIST images."""
    splits = splits_of(data, "cpu")
    options = defaults(f"models.{model}") | SMALLER.get(model, {})
    settings = defaults("training.settings") | {"batch_size": size, "decay": 1.0}
    module = plugins.load(Model, f"models.{model}")
    return Problem("benchmark", about_of(splits), splits, model, module, options, None, {}, settings, "cpu")


def packed(problem: Problem, runs: int) -> Callable[[int], None]:
    """A function that takes steps with a pack of this project; the first steps are already taken."""
    pack = Pack(problem, [fresh_state(problem, seed, 0.0) for seed in range(runs)], None)

    def advance(steps: int) -> None:
        pack.advance(pack.states[0].step + steps)

    advance(2)
    return advance


def uniform_batch(split: SequenceSplit, size: int) -> tuple[Single, Tensor]:
    """The inputs of a network, and the targets (B, T)."""
    rows = torch.randint(len(split), (size,))
    lengths, targets = split.input_lengths[rows], split.targets[rows, : int(split.target_lengths[rows].max())]
    inputs = split.inputs[rows, : int(lengths.max())]
    previous = torch.cat([torch.full((size, 1), START), targets[:, :-1]], 1)
    return Single(inputs, torch.arange(inputs.shape[1]) < lengths[:, None], lengths, previous), targets


def plain(problem: Problem, uniform: bool = False) -> Callable[[int], None]:
    """A function that takes steps in a plain loop with the same network, on the same batches or on uniform ones."""
    network = problem.model.Network(problem.model_parameters, problem.about)
    network.load_state_dict(initial_weights(problem, 0), strict=False)
    optimizer = torch.optim.Adam(network.parameters(), lr=problem.settings["learning_rate"])
    split, size = problem.splits["train"], problem.settings["batch_size"]
    batch_of = split.training_batches(size)
    state, pack = fresh_state(problem, 0, 0.0), Pack(problem, [fresh_state(problem, 0, 0.0)], None)

    def loss_at(step: int) -> Tensor:
        if uniform:
            given, targets = uniform_batch(split, size)
            logits = network(given).flatten(0, 1)
            return functional.cross_entropy(logits, targets.flatten(), ignore_index=PAD, reduction="sum") / size
        rows = split.draw(pack.key(state, "batches"), range(step, step + 1), size)
        batch = batch_of(torch.from_numpy(rows))
        return batch.losses(batch.packed(network(batch.single())), problem.settings["loss"]).sum() / size

    def advance(steps: int) -> None:
        for _ in range(steps):
            loss = loss_at(state.step)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), problem.settings["clip"])
            optimizer.step()
            state.step += 1

    advance(2)
    return advance


def main() -> None:
    """Measure all models and print the results."""
    parser = parser_of(__doc__)
    parser.add_argument("--model", nargs="+", default=list(MODELS), choices=list(MODELS), help="default: all")
    parser.add_argument("--runs", nargs="+", type=count, default=[1, 8], help="numbers of runs of the packed model")
    parser.add_argument("--steps", type=count, default=5, help="timed steps per round")
    parser.add_argument("--rounds", type=count, default=7, help="how often all ways are measured (default: 7)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for model in options.model:
        other, data, size = MODELS[model]
        own, neighbor = problem_of(model, data, size), problem_of(other, data, size)
        ways = {"plain": (plain(own), 1), "adapter": (packed(own, 1), 1)}
        ways |= {"plain, uniform": (plain(own, uniform=True), 1)} if data == "scan" else {}
        ways |= {f"packed {other}, {runs} runs": (packed(neighbor, runs), runs) for runs in options.runs}
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, (advance, runs) in ways.items():
                began = time.process_time()
                advance(options.steps)
                seconds[way].append((time.process_time() - began) / options.steps / runs)
        print(f"\n{model}, {data}, batch {size}: CPU ms per run-step, medians of {options.rounds} rounds")
        for way, values in seconds.items():
            ratios = [value / base for value, base in zip(values, seconds["plain"], strict=True)]
            shown = f"{statistics.median(ratios):.2f} of plain ({min(ratios):.2f} to {max(ratios):.2f})"
            print(f"{way:36} {1000 * statistics.median(values):8.1f}   {shown}", flush=True)


if __name__ == "__main__":
    main()
