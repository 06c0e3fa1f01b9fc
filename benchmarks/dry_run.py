"""CPU time and memory of a dry run of a large grid: python benchmarks/dry_run.py [runs, default 2000]."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from arguments import count, parser_of

ROOT = Path(__file__).resolve().parent.parent
SEEDS = 20
LEAST = 2 * SEEDS  # runs without and with a regularizer


def main() -> None:
    """Resolve a grid of this many runs in an empty folder and print the time and memory that it took."""
    parser = parser_of(__doc__)
    parser.add_argument("runs", type=count, nargs="?", default=2000, help=f"at least {LEAST}, in steps of {SEEDS}")
    runs = parser.parse_args().runs
    if runs < LEAST:
        parser.error(f"runs: {runs} must be at least {LEAST}: {SEEDS} seeds, each without and with a regularizer")
    strengths = [round(0.001 * (index + 1), 6) for index in range(runs // SEEDS - 1)]
    grid = {"task": "digits_concat", "model": "cnn", "regularizers": {"entropy": strengths}, "seeds": list(range(SEEDS))}
    overlay = {"studies": {"compositional_regularization": {"figures": {"ablation": {"grids": [grid]}}}}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "overlay.yaml"
        path.write_text(yaml.safe_dump(overlay), encoding="utf-8")
        command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--directory", folder, "--dry-run"]
        command += ["--quiet", "all", "--configfile", str(path), "--", "results/figures/ablation.pdf"]
        before = os.times()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    clock = after.elapsed - before.elapsed
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    runs = SEEDS * (len(strengths) + 1)
    print(f"{runs} runs resolved in {seconds:.1f} s of CPU time ({clock:.1f} s on the clock) and {memory:.0f} MB")


if __name__ == "__main__":
    main()
