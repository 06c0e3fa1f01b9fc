"""How long greedy decoding takes, compared with plain PyTorch, measured in one call.

    python benchmarks/decoding.py     # half a minute: the transformer of COGS at laptop scale

plain: what a careful user writes (benchmarks/plain_transformer.py). The input is encoded once, and each step passes everything
written so far through the decoder. packed: this project, which keeps the keys and values of what was written. Networks are
untrained, sentences are random words with COGS' lengths, and both ways write equally many symbols. One thread. The two ways take
turns; shown are medians over rounds, the smallest and largest ratio, and the share of equal symbols.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace

import torch
from arguments import count, parser_of
from packed_training import about_of, splits_of  # finds the library
from plain_sequences import known
from plain_transformer import Transformer
from torch import Tensor

from compositional.configuration.configuration import configuration
from compositional.evaluation import decoding
from compositional.kinds.sequence import Batch
from compositional.language.vocabulary import START
from compositional.models import Model
from compositional.plugins import load
from compositional.training.problem import Problem, initial_weights

SENTENCES = 64


def written_plain(network: Transformer, batch: Batch, steps: int) -> Tensor:
    """Symbols (B, steps) that plain PyTorch writes."""
    words, seen = network.encode(batch.inputs[0], known(batch.inputs[0], batch.input_lengths[0]))
    symbols = torch.full((SENTENCES, 1), START)
    for _ in range(steps):
        symbols = torch.cat([symbols, network.decode(words, seen, symbols)[:, -1:].argmax(-1)], 1)
    return symbols[:, 1:]


def written_packed(case: Problem, weights: dict[str, Tensor], batch: Batch, steps: int) -> Tensor:
    """Symbols (R, B, steps) that this project writes."""
    batch, symbols = replace(batch, kept={}, past={}), torch.empty(*batch.input_lengths.shape, 0, dtype=torch.long)
    for _ in range(steps):
        following = decoding.next_symbols(case, weights, batch, symbols).argmax(-1)
        symbols = torch.cat([symbols, following.unsqueeze(-1)], 2)
    return symbols


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--steps", type=count, nargs="+", default=[25, 50, 100, 150], help="symbols that are written")
    parser.add_argument("--runs", type=count, default=3, help="runs in the pack")
    parser.add_argument("--rounds", type=count, default=3, help="how often both ways are measured (default: 3)")
    given = parser.parse_args()
    torch.set_num_threads(1)
    splits = splits_of("cogs", "cpu")
    about = about_of(splits)
    told = configuration().family_parameters(("cogs", "transformer_small", "none"))
    model = load(Model, told["model_module"])
    case = Problem("cogs", about, splits, "transformer_small", model, told["model_parameters"], None, {}, told["settings"], "cpu")
    runs = [initial_weights(case, seed) for seed in range(given.runs)]
    weights = {name: torch.stack([one[name] for one in runs]) for name in runs[0]}
    networks = [Transformer(case, one).eval() for one in runs]
    _, batch = case.splits["train"].evaluation_batches(given.runs, SENTENCES, SENTENCES)[0]
    with torch.no_grad():  # the first call of anything is slower
        written_plain(networks[0], batch, 2)
        written_packed(case, weights, batch, 2)
    print(f"{'symbols':>8}{'plain (s)':>12}{'packed (s)':>12}{'ratio':>8}{'from':>8}{'to':>8}{'equal':>8}   of one run")
    for steps in given.steps:
        rounds = []
        for _ in range(given.rounds):
            start = time.process_time()
            with torch.no_grad():
                plain = torch.stack([written_plain(network, batch, steps) for network in networks])
            middle = time.process_time()
            packed = written_packed(case, weights, batch, steps)
            rounds.append(((middle - start) / given.runs, (time.process_time() - middle) / given.runs))
        ratios = sorted(one / other for one, other in rounds)
        times = [statistics.median(column) for column in zip(*rounds, strict=True)]
        equal = (plain == packed).double().mean().item()
        shown = (*times, statistics.median(ratios), ratios[0], ratios[-1], equal)
        print(f"{steps:8d}{shown[0]:12.3f}{shown[1]:12.3f}" + "".join(f"{value:8.2f}" for value in shown[2:]), flush=True)


if __name__ == "__main__":
    main()
