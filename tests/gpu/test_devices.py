"""How a job sets up its device, and what it says where there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from gpu import problems

from compositional.stages.shared import devices, memory

ROOT = Path(__file__).parents[2]
TAKE_TURNS = """
import sys, time
from compositional.stages.shared import devices
devices.resolve("cuda")
print(time.time(), flush=True)
time.sleep(2)
print(time.time(), flush=True)
"""


@pytest.mark.cuda
def test_numbers_do_not_depend_on_luck(device):
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cuda.matmul.allow_tf32
    assert not torch.backends.cudnn.allow_tf32
    left, right = (torch.randn(512, 512, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    # Ten bits of mantissa, as TensorFloat32 has, would leave an error of about 1e-2.
    torch.testing.assert_close((left.cuda() @ right.cuda()).cpu(), left @ right, rtol=0, atol=1e-3)


@pytest.mark.cuda
def test_two_jobs_take_turns_on_one_gpu(device, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv(devices.VARIABLE, devices.visible()[0])
    jobs = [subprocess.Popen([sys.executable, "-c", TAKE_TURNS], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    (first, second) = sorted([float(line) for line in job.communicate()[0].split()] for job in jobs)
    assert second[0] >= first[1]


@pytest.mark.cuda
def test_too_little_memory_is_said_with_what_fits(device):
    case = problems.problem("cnn", None, device)
    with pytest.raises(RuntimeError, match=r"would fit: set cuda_width: \d+"), memory.explained(case, 0):
        torch.empty(2**50, device=device)
