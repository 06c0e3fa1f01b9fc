"""The message if a GPU's memory is too small, tested with a simulated GPU."""

from __future__ import annotations

import pytest
import torch

from compositional.stages.shared import memory

GIB = 2**30


@pytest.mark.parametrize(
    ("needed", "message"),
    [
        (3 * GIB, "the memory of this GPU (16 GiB) is too small for 64 runs of test/cnn at once; 2 would fit: set cuda_width: 2"),
        (11 * GIB, "16 GiB.*not even one fits: use a GPU with more memory"),
    ],
)
@pytest.mark.parametrize("own", [6 * GIB, 2 * GIB], ids=["alone", "shared"])
def test_the_message_states_the_measured_number_of_runs_that_fit(problem, monkeypatch, needed, message, own):
    """10 of 16 GiB are free, and 8 of these may be used. If this job has only 2 of the others, it shares the GPU."""
    case = problem("cnn")
    case.settings["cuda_width"] = 64
    fakes = {
        "empty_cache": lambda: None,
        "reset_peak_memory_stats": lambda: None,
        "memory_allocated": lambda: GIB,
        "max_memory_allocated": lambda: GIB + needed,
        "mem_get_info": lambda: (10 * GIB, 16 * GIB),
        "memory_reserved": lambda: own,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(memory, "width_of", lambda case: case.settings["cuda_width"])
    said = pytest.raises(RuntimeError, match=message.replace("(", r"\(").replace(")", r"\)"))
    with said as refused, memory.explained(case, 0):
        raise torch.OutOfMemoryError("CUDA out of memory")
    assert ("Other processes use 4 GiB: if those are jobs of yours, lower jobs_per_gpu" in str(refused.value)) == (own < 6 * GIB)


def test_other_errors_are_not_replaced(problem):
    case = problem("cnn")
    with pytest.raises(ZeroDivisionError), memory.explained(case, 0):
        raise ZeroDivisionError
