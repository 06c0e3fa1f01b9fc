"""Throughput of packed training compared with plain PyTorch, measured in one call.

    python benchmarks/packed_training.py                     # this machine's CPU cores
    python benchmarks/packed_training.py --device cuda --runs 1 4 16 64 --minutes 9     # make bench-gpu; docs/gpu.md
    python benchmarks/packed_training.py --problem scan --runs 10 --steps 30 --rounds 6     # where a machine's speed varies

(a) plain: one process per run, standard PyTorch modules (benchmarks/plain.py). On the CPU it is measured both with PyTorch's
defaults (one process after another, all cores) and with one single-threaded process per core; on CUDA both eagerly and with
torch.compile. The better way counts. (b) this project with one run, (c) packs of growing size; on the CPU one single-threaded
process per core. Every way is timed in its own processes, with start-up and steps measured separately. runs/hour are for the full
number of steps, including start-up. A ratio is computed within a round, in which all ways follow each other. For several rounds
the medians are shown, and the smallest and the largest ratio.

Writes results/benchmarks/packed_training_<device>.csv and .png.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from arguments import count, duration, parser_of

BEGAN = time.perf_counter()
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
WAYS = ["plain", "packed", "compiled"]
STEPS = {"scan": 2000, "mnist": 200, "cogs": 50000}  # steps of a full run
# Columns of the table, which are medians over rounds, and their names in `measure`.
COLUMNS = {
    "seconds_per_run_step": "step_per_run",
    "runs_per_hour": "runs_per_hour",
    "ratio_to_plain": "ratio",
    "megabytes": "memory",
    "share_of_peak": "roofline",
}


def splits_of(problem: str, device: str) -> dict:
    """Training data at full size: SCAN jump; images of noise with the size of pairs of MNIST images (28 x 56 pixels), since
    timing needs no digits; pairs of random words with COGS' number of pairs, lengths (by deciles) and vocabulary sizes."""
    import numpy as np

    from compositional.datasets import scan
    from compositional.kinds.image import ImageSplit
    from compositional.kinds.sequence import SequenceSplit
    from compositional.language.vocabulary import Vocabulary

    if problem == "mnist":
        source = np.random.default_rng(0)
        pixels = source.integers(256, size=(20000, 28, 56), dtype=np.uint8)
        return {"train": ImageSplit(pixels, source.integers(10, size=20000), 28, device)}
    if problem == "cogs":
        source = np.random.default_rng(0)
        lengths = [(1, 19), (4, 30), (5, 31), (6, 39), (7, 40), (8, 45), (8, 52), (9, 61), (10, 73), (16, 153)]
        words, symbols = ([f"{side}{number}" for number in range(count)] for side, count in (("word", 743), ("symbol", 683)))
        pairs = [
            (" ".join(source.choice(words, length)), " ".join(source.choice(symbols, written)))
            for length, written in (lengths[number % 10] for number in range(24155))
        ]
        return {"train": SequenceSplit(*zip(*pairs, strict=True), *(Vocabulary.of([*side]) for side in (words, symbols)), device)}
    pairs = [pair for pair in scan.commands() if "jump" not in pair[0]] + [("jump", "I_JUMP")] * 1467
    source, target = (Vocabulary.of([pair[side] for pair in pairs]) for side in (0, 1))
    return {"train": SequenceSplit(*zip(*pairs, strict=True), source, target, device)}


def about_of(splits: dict) -> dict:
    """What task.json says about such data, as far as models need it."""
    train = splits["train"]
    if hasattr(train, "images"):
        return {"image_shape": (1, 28, 56), "classes": 10}
    return {"source_words": train.source.words, "target_words": train.target.words}


def pack_of(problem: str, runs: int, device: str, batch_size: int | None = None):
    """A pack of `runs` runs of this project; batch_size: replaces that of the problem."""
    from compositional.models import Model
    from compositional.plugins import defaults, load
    from compositional.regularizers import Regularizer
    from compositional.training.pack import Pack
    from compositional.training.problem import Problem
    from compositional.training.state import fresh_state

    splits, terms = splits_of(problem, device), defaults("regularizers.entropy")
    name = {"scan": "primitive_attention", "mnist": "cnn", "cogs": "transformer"}[problem]
    model, models, term = load(Model, f"models.{name}"), defaults(f"models.{name}"), load(Regularizer, "regularizers.entropy")
    settings = defaults("training.settings")
    if problem == "mnist":
        settings |= {"batch_size": 64, "learning_rate": 0.001, "loss": "hinge"}
    if problem == "cogs":  # like transformer_cogs at paper scale, without a regularizer
        settings |= {"batch_size": 128, "learning_rate": 0.0001, "decay": 1.0, "clip": 45, "cuda_width": 5}
        sizes = {"encoder_layers": 2, "decoder_layers": 2, "width": 512, "heads": 4, "feedforward_factor": 1, "dropout": 0.1}
        models, term = models | sizes, None
    settings["batch_size"] = batch_size or settings["batch_size"]
    case = Problem(problem, about_of(splits), splits, name, model, models, term, terms, settings, device)
    return Pack(case, [fresh_state(case, seed, 0.1) for seed in range(runs)], None)


def seconds_of(call: Callable[[], object], device: str) -> float:
    """How long `call` takes, with everything that it starts on the device."""
    import torch

    began = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def peak_of(device: str) -> float:
    """Operations per second in a product of large matrices."""
    import torch

    left = torch.randn(8, 1024, 1024, device=device)

    def multiply(count: int) -> None:
        for _ in range(count):
            torch.bmm(left, left)

    seconds_of(lambda: multiply(3), device)  # a warm-up
    return 5 * 8 * 2 * 1024**3 / seconds_of(lambda: multiply(5), device)


def work(way: str, problem: str, runs: int, steps: int, threads: int, device: str, batch_size: int | None) -> dict:
    """Time `steps` steps in this process after a warm-up. The seconds per step are for all its runs together."""
    import torch

    if device == "cpu":
        torch.set_num_threads(threads)
    else:
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    if way != "packed":
        from plain import Trainer

        trainer = Trainer(problem, splits_of(problem, device), device, batch_size, compiled=way == "compiled")

        def advance(count: int) -> None:
            for _ in range(count):
                trainer.step()
    else:
        from compositional.stages.shared import devices

        devices.resolve(device)
        pack = pack_of(problem, runs, device, batch_size)

        def advance(count: int) -> None:
            pack.advance(pack.states[0].step + count)

    startup = time.perf_counter() - BEGAN
    seconds_of(lambda: advance(max(steps // 4, 5)), device)
    seconds = seconds_of(lambda: advance(steps), device) / steps
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result = {"startup": startup, "step": seconds, "memory": memory, "products": 0.0}
    if device == "cuda":
        result["memory"] = torch.cuda.max_memory_allocated() / 2**20
    else:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            advance(5)
        rows = profile.key_averages()
        products = sum(row.self_cpu_time_total for row in rows if any(word in row.key for word in ("mm", "convolution")))
        result["products"] = products / sum(row.self_cpu_time_total for row in rows)
    if way == "packed":
        from torch.utils.flop_counter import FlopCounterMode

        with FlopCounterMode(display=False) as counter:
            pack._step()  # on CUDA this does not use the graph, in which no operations are visible
        result["flops"], result["peak"] = counter.get_total_flops(), peak_of(device)
    return result


def measure(options: argparse.Namespace, problem: str, way: str, runs: int, processes: int, threads: int) -> dict | None:
    """Time this many processes that run at the same time; the slowest counts. None if the way does not work here (PyTorch cannot
    compile the model, or memory is too small for so many runs), or if the time is over."""
    command = [sys.executable, __file__, "--work", way, "--problem", problem, "--runs", str(runs), "--steps", str(options.steps)]
    command += ["--threads", str(threads), "--device", options.device]
    command += ["--batch-size", str(options.batch_size)] if options.batch_size else []
    from compositional.records import surroundings

    environment = os.environ | (surroundings.SET if way == "packed" else {})  # packs have the environment of jobs
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(processes)]
    try:
        end = BEGAN + 60 * options.minutes if options.minutes else None
        printed = [process.communicate(timeout=end and max(end - time.perf_counter(), 0))[0] for process in started]
        why = "does not work here; the error is above" if any(process.returncode for process in started) else None
    except subprocess.TimeoutExpired:
        why = f"is not measured: {options.minutes:g} minutes are over"
        for process in started:
            process.kill()
            process.communicate()
    if why:
        print(f"{problem}: {way}, {runs} runs, {why}", file=sys.stderr, flush=True)
        return None
    results = [json.loads(text.splitlines()[-1]) for text in printed]
    slowest = max(results, key=lambda result: result["step"])
    full = STEPS[problem]
    slowest["runs_per_hour"] = 3600 * runs * processes / (slowest["startup"] + full * slowest["step"])
    slowest["step_per_run"] = slowest["step"] / runs / processes
    slowest["roofline"] = slowest.get("flops", 0) / slowest.get("peak", float("nan")) / slowest["step"]
    return slowest


def main() -> None:
    """Measure every way for every problem, print the results, and write the table and the plot."""
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="where runs train (default: cpu)")
    parser.add_argument("--problem", nargs="+", default=["scan", "mnist"], choices=list(STEPS), help="default: scan mnist")
    parser.add_argument(
        "--runs", nargs="+", type=count, default=[1, 2, 5, 10], help="numbers of runs of the packs (default: 1 2 5 10)"
    )
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS, help="what to measure; compiled is on CUDA only")
    parser.add_argument("--steps", type=count, default=40, help="timed steps (default: 40)")
    parser.add_argument("--rounds", type=count, default=1, help="how often all ways are measured (default: 1)")
    parser.add_argument(
        "--batch-size", type=count, help="replaces the problems' own, must be a multiple of 16; only for trying the program"
    )
    parser.add_argument("--minutes", type=duration, help="leave out what is not measured after this time")
    parser.add_argument("--work", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=count, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=Path("results/benchmarks"), help="folder (default: results/benchmarks)")
    options = parser.parse_args()
    if (options.batch_size or 0) % 16:
        parser.error(f"--batch-size: {options.batch_size} must be a multiple of 16")
    if options.work:
        told = (options.work, options.problem[0], options.runs[0], options.steps, options.threads, options.device)
        print(json.dumps(work(*told, options.batch_size)))
        return
    cores = len(os.sched_getaffinity(0)) if options.device == "cpu" else 1
    rows = []
    for problem in options.problem:
        packed = [(f"packed, {runs} a process", "packed", runs, cores, 1) for runs in options.runs]
        if options.device == "cuda":  # compiled last, because compiling takes minutes if lengths vary
            ways = [("plain", "plain", 1, 1, 1), *packed, ("plain, torch.compile", "compiled", 1, 1, 1)]
        else:
            ways = [("plain, one after another", "plain", 1, 1, cores), ("plain, one per core", "plain", 1, cores, 1), *packed]
        ways = [way for way in ways if way[1] in options.ways]
        results = []  # per round, the result of each way
        for number in range(options.rounds):
            print(f"{problem}: round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
            results.append({label: measure(options, problem, *how) for label, *how in ways})
        ways = [way for way in ways if all(result[way[0]] for result in results)]
        if {label.startswith("plain") for label, *_ in ways} != {True, False}:
            print(f"{problem}: left out, because there must be plain and packed ways to compare", file=sys.stderr)
            continue
        for result in results:
            best_plain = max(result[label]["runs_per_hour"] for label, *_ in ways if label.startswith("plain"))
            for label, *_ in ways:
                result[label]["ratio"] = result[label]["runs_per_hour"] / best_plain
        machine = f"on {cores} CPU cores" if options.device == "cpu" else "on CUDA"
        print(f"\n{problem}, {STEPS[problem]} steps a run, {machine}, {options.rounds} rounds")
        print(f"{'way':28} {'ms/run-step':>12} {'runs/hour':>10} {'ratio (range)':>20} {'products':>9} {'of peak':>8} {'MB':>7}")
        for label, _, runs, *_ in ways:
            of_way = [result[label] for result in results]
            shown = {name: statistics.median(result[name] for result in of_way) for name in of_way[0] if name != "flops"}
            ratios = [result["ratio"] for result in of_way]
            least, greatest = min(ratios), max(ratios)
            rows.append((problem, label, runs, *(shown[name] for name in COLUMNS.values()), least, greatest))
            peak = "-" if math.isnan(shown["roofline"]) else f"{shown['roofline']:.0%}"  # not measured for plain ways
            print(
                f"{label:28} {1000 * shown['step_per_run']:12.2f} {shown['runs_per_hour']:10.0f} "
                f"{shown['ratio']:6.2f} ({least:.2f} to {greatest:.2f}) "
                f"{shown['products']:9.0%} {peak:>8} {shown['memory']:7.0f}",
                flush=True,
            )
    if not rows:
        sys.exit("nothing was measured")
    write(rows, options.output, options.device)


def write(rows: list[tuple], folder: Path, device: str) -> None:
    """Write the table and the plot of all measurements."""
    import csv

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"packed_training_{device}.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(("problem", "way", "runs", *COLUMNS, "least_ratio", "greatest_ratio"))
        writer.writerows(rows)
    problems = sorted({row[0] for row in rows})
    figure, axes = plt.subplots(1, len(problems), figsize=(4 * len(problems), 3.2), squeeze=False, layout="constrained")
    for panel, problem in zip(axes[0], problems, strict=True):
        packed = [row for row in rows if row[0] == problem and row[1].startswith("packed")]
        panel.plot([row[2] for row in packed], [row[4] for row in packed], "o-", label="packed")
        panel.axhline(
            max(row[4] for row in rows if row[0] == problem and row[1].startswith("plain")),
            color="0.4",
            linestyle="--",
            label="plain",
        )
        panel.set(title=f"{problem} ({device})", xlabel="runs a pack", ylabel="runs per hour", xscale="log", ylim=(0, None))
        panel.legend(frameon=False)
    figure.savefig(folder / f"packed_training_{device}.png", dpi=150)


if __name__ == "__main__":
    main()
