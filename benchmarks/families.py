"""Compare all families that figures train with a plain PyTorch loop (kernels: scikit-learn; factorizations: dense), in one call.

    python benchmarks/families.py                                # about ten minutes on two cores
    python benchmarks/families.py --family "COGS, transformer"   # some of them (--rounds 9 --seconds 2: longer)
    python benchmarks/families.py --short                        # make bench: only plain and largest packs, with shorter turns
    python benchmarks/families.py --keep                         # also write benchmarks/reference.csv and docs/performance.md

Plain PyTorch and packs of growing size are compared, each with one single-threaded process per core. For each family they take
turns. A round is one turn of each, and ratios are computed within a round. The output has medians over rounds, and the smallest
and largest ratio. Time is CPU time of one core for one step of one run, so other work on the machine changes it little. Both
sides compute the same loss (tests/unit/test_benchmarks.py). The plain side draws batches uniformly, as is usual.

share_of_peak: operations per second, as a share of those of a core in products of 512 x 512 matrices; not measured for plain.
megabytes: the peak of the process, with imported libraries. products, elementwise, memory, python: shares of a step under the
profiler. python is all that is not an operation of PyTorch, with autograd and the profiler's own costs.

Writes results/benchmarks/families.csv and .png. Exit status 1 with --short: something became slower by more than a tenth.
"""

from __future__ import annotations

import argparse
import csv
import math
import multiprocessing
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler's messages

import family_table
import plain_factorizations
import plain_training
import problems
import torch
from arguments import count, duration, parser_of
from numba.core.dispatcher import Dispatcher
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.flop_counter import FlopCounterMode

from compositional.records import surroundings
from compositional.stages.shared import devices
from compositional.training.pack import Pack
from compositional.training.problem import Problem
from compositional.training.state import fresh_state

TUNABLES = "GLIBC_TUNABLES"
# Parts of names of operations. "compiled" is what numba compiles, and elementwise, as all other operations are.
PRODUCTS = ("mm", "convolution", "attention", "rnn")
MEMORY = (
    *("copy", "cat", "clone", "index", "gather", "scatter", "fill", "zero", "ones", "empty", "pad", "stack"),
    *("embed", "one_hot"),
)
VIEWS = ("view", "reshape", "expand", "transpose", "slice", "select", "split", "chunk", "unbind", "stride", "squeeze", "permute")


def advancing(name: str, case: Problem, way: str, runs: int) -> Callable[[int], object]:
    """What takes so many steps of a way."""
    if case.model.fit:
        train = case.splits["train"]
        once = (
            (lambda: plain_training.fit(case))
            if way == "plain"
            else lambda: case.model.fit(case.model_parameters, case.about, train)
        )
        return lambda steps: [once() for _ in range(steps)]
    if way == "plain" and name in problems.FACTORIZATIONS:
        return plain_factorizations.plain(problems.FACTORIZATIONS[name], case)
    if way == "plain":
        trainer = plain_training.Trainer(case)
        return lambda steps: [trainer.step() for _ in range(steps)]
    pack = Pack(case, [fresh_state(case, seed, plain_training.STRENGTH) for seed in range(runs)], None)
    return lambda steps: pack.advance(pack.states[0].step + steps)


def seconds_of(work: Callable[[], object]) -> float:
    """CPU time of this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _recorded(function: Dispatcher) -> Callable:
    def recorded(*arguments: object) -> object:
        with record_function("compiled"):
            return function(*arguments)

    return recorded


@contextmanager
def compiled_shown() -> Iterator[None]:
    """Inside, the profiler sees calls of what numba has compiled, if it was called before."""
    loaded = [module for name, module in sys.modules.items() if name.startswith("compositional.")]
    parts = [(module, *part) for module in loaded if hasattr(module, "compiled") for part in vars(module).items()]
    with ExitStack() as patches:
        for module, name, own in parts:
            if isinstance(own, Dispatcher):
                patches.enter_context(mock.patch.object(module, name, _recorded(own)))
            elif hasattr(own, "cache_info"):  # functions for a width
                patches.enter_context(mock.patch.object(module, name, lambda width, own=own: tuple(map(_recorded, own(width)))))
        yield


def parts_of(advance: Callable[[int], object]) -> dict[str, float]:
    """Where a step's time goes, in shares."""
    spent = dict.fromkeys(("products", "elementwise", "memory"), 0.0)
    with compiled_shown(), profile(activities=[ProfilerActivity.CPU]) as seen:
        began = time.perf_counter()
        advance(2)
        total = time.perf_counter() - began
    for event in seen.key_averages():
        operation = event.key.removeprefix("aten::")
        if operation == event.key and operation != "compiled":
            continue
        if any(word in operation for word in PRODUCTS):
            kind = "products"
        elif any(word in operation for word in MEMORY):
            kind = "memory"
        elif any(word in operation for word in VIEWS):
            continue  # no work on numbers: what a call costs
        else:
            kind = "elementwise"
        spent[kind] += event.self_cpu_time_total / 1e6
    shares = {kind: seconds / total for kind, seconds in spent.items()}
    return shares | {"python": max(0.0, 1 - sum(shares.values()))}


def operations_of(advance: Callable[[int], object]) -> float:
    """Floating-point operations of a step's products."""
    with FlopCounterMode(display=False) as counter:
        advance(1)
    return counter.get_total_flops()


def peak() -> float:
    """Floating-point operations a second of a product on one core."""
    left = torch.randn(8, 512, 512)
    torch.bmm(left, left)
    return 8 * 2 * 512**3 / seconds_of(lambda: torch.bmm(left, left))


def serve(orders: Connection, name: str, case: Problem, way: str, runs: int) -> None:
    """A worker: takes steps when told to, until it is asked for the rest."""
    torch.set_num_threads(1)
    if way == "packed":
        devices.resolve("cpu")  # as in a job
    advance = advancing(name, case, way, runs)
    advance(2)
    orders.send(seconds_of(lambda: advance(1)))
    while count := orders.recv():
        orders.send((seconds_of(lambda: advance(count)) / count / runs, peak()))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if orders.recv():
        # Of the library's own LSTM, on the plain side, the counter sees nothing.
        operations = operations_of(advance) if way == "packed" else math.nan
        orders.send(parts_of(advance) | {"megabytes": memory, "operations": operations})


def hold(name: str, given: dict[tuple[str, int], list[Connection]]) -> None:
    """Fork workers for ways, one for each connection; they share the imports and the data. If one fails, all end."""
    torch.set_num_threads(1)
    case, context = problems.problem_of(name), multiprocessing.get_context("fork")
    workers = [context.Process(target=serve, args=(own, name, case, *way)) for way, every in given.items() for own in every]
    for worker in workers:
        worker.start()
    while running := [worker for worker in workers if worker.is_alive()]:
        wait([worker.sentinel for worker in running])
        if any(worker.exitcode for worker in workers):
            for worker in workers:
                worker.terminate()


def measure(name: str, options: argparse.Namespace) -> list[dict]:
    """A row for each way of a family."""
    sizes, cores = problems.FAMILIES[name].runs, len(os.sched_getaffinity(0))
    sizes = sizes[-1:] if options.short else sizes
    ways = [("plain", 1), *(("packed", runs) for runs in sizes)]
    context, workers, counts = multiprocessing.get_context("spawn"), {}, {}
    # The C library reads how to allocate memory when a process starts. Packs have what jobs have, plain PyTorch has the default.
    of_jobs = {} if options.default_allocator else {TUNABLES: surroundings.SET[TUNABLES]}
    for group, settings in ((ways[:1], {}), (ways[1:], of_jobs)):
        pipes = {way: [context.Pipe() for _ in range(cores)] for way in group}
        with mock.patch.dict(os.environ, settings):
            context.Process(target=hold, args=(name, {way: [theirs for _, theirs in own] for way, own in pipes.items()})).start()
        for way, own in pipes.items():
            workers[way] = [mine for mine, _ in own]
            for _, theirs in own:
                theirs.close()
    for way in ways:
        counts[way] = max(1, round(options.seconds / max(worker.recv() for worker in workers[way])))
    rounds = []
    for _ in range(options.rounds):
        found = {}
        for way in ways:
            for worker in workers[way]:
                worker.send(counts[way])
            answers = [worker.recv() for worker in workers[way]]
            found[way] = [statistics.mean(values) for values in zip(*answers, strict=True)]
        rounds.append(found)
    rows = []
    for way in ways:
        for number, worker in enumerate(workers[way]):
            worker.send(0)
            worker.send(number == 0)
        rest = workers[way][0].recv()
        seconds = statistics.median(found[way][0] for found in rounds)
        ratios = [found["plain", 1][0] / found[way][0] for found in rounds]
        share = rest.pop("operations") / way[1] / seconds / statistics.median(found[way][1] for found in rounds)
        row = {"family": name, "way": way[0], "runs": way[1], "milliseconds": 1000 * seconds, "ratio": statistics.median(ratios)}
        rows.append(row | {"least": min(ratios), "greatest": max(ratios), "share_of_peak": share} | rest)
    return rows


def main() -> None:
    """Measure, print, write, compare."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--family",
        nargs="+",
        help="names in the table of docs/performance.md (default: all)",
        default=list(problems.FAMILIES),
        choices=list(problems.FAMILIES),
        metavar="FAMILY",
    )
    parser.add_argument("--rounds", type=count, default=5, help="how often each is measured (default: 5)")
    parser.add_argument("--seconds", type=duration, default=0.4, help="length of a turn (default: 0.4)")
    parser.add_argument("--short", action="store_true", help="plain and largest packs, compared with benchmarks/reference.csv")
    parser.add_argument("--keep", action="store_true", help="write benchmarks/reference.csv and docs/performance.md")
    parser.add_argument("--default-allocator", action="store_true", help="packs allocate memory like plain PyTorch")
    options = parser.parse_args()
    if options.keep and (options.short or len(options.family) < len(problems.FAMILIES)):
        parser.error("--keep is for all families and packs: leave --short and --family out")
    torch.set_num_threads(1)
    rows: list[dict] = []
    problems.RESULTS.mkdir(parents=True, exist_ok=True)
    for name in options.family:
        rows += (found := measure(name, options))
        for row in found:
            print(family_table.line(row), flush=True)
        with (problems.RESULTS / "families.csv").open("w", newline="", encoding="utf-8") as stream:
            family_table.write(rows, stream)
    family_table.draw(rows, problems.RESULTS / "families.png")
    if options.keep:
        family_table.keep(rows, ROOT)
    if options.short:
        with (ROOT / "benchmarks" / "reference.csv").open(encoding="utf-8") as stream:
            kept = list(csv.DictReader(stream))
        slower = family_table.slower(rows, kept)
        print(*(slower or ["nothing became slower by more than a tenth"]), sep="\n")
        sys.exit(bool(slower))


if __name__ == "__main__":
    main()
