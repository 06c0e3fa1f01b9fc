"""The homomorphism error of networks before training, for comparison with the figure `homomorphism_measure`.

    snakemake results/splits/scan_{jump,around_right,length}
    python benchmarks/untrained_homomorphism.py

The networks are those with which the figure's runs of the same seeds start. Shown are the error on held-out phrases and the error
in distribution, both of encoder states.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from arguments import parser_of

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))

from compositional.configuration.configuration import configuration
from compositional.evaluation import homomorphism
from compositional.training.problem import buffers, initial_weights
from compositional.training.reading import read_problem

TASKS, MODELS = ("scan_jump", "scan_around_right", "scan_length"), ("lstm_attention_annealed", "primitive_attention")
SEEDS = range(3)


def main() -> None:
    parser_of(__doc__).parse_args()
    for task in TASKS:
        folder = ROOT / "results/splits" / task
        if not folder.is_dir():
            sys.exit(f"results/splits/{task} is missing: build it first (see the head of this file)")
        for model in MODELS:
            problem = read_problem(folder, configuration().family_parameters((task, model, "none")), "cpu")
            each = [initial_weights(problem, seed) | buffers(problem, seed) for seed in SEEDS]
            found = homomorphism.measure(problem, {name: torch.stack([own[name] for own in each]) for name in each[0]})
            for metric in ("homomorphism_error", "homomorphism_error_in_distribution"):
                values = ", ".join(f"{own[f'{metric} in encoder_states']:.3f}" for own in found)
                print(f"{task}, {model}, {metric}: {values}")


if __name__ == "__main__":
    main()
