"""How a job sets up its device, and its message if there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from gpu import problems

from compositional.stages.shared import devices, memory, trained_runs

ROOT = Path(__file__).parents[2]
PLACES = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
TRAIN = """
import hashlib, sys
from compositional.evaluation import learning_curves
from compositional.stages.shared import devices
from compositional.training.loop import train_runs
from compositional.training.state import fresh_state
from gpu import problems
case = problems.problem("cnn", "entropy", devices.resolve(sys.argv[1], jobs_per_gpu=2), steps=60)
state = fresh_state(case, 0, 0.1)
print("claimed", flush=True)
sys.stdin.readline()
train_runs(case, [state], learning_curves.measure)
print(hashlib.sha256(state.tensors["weights"].numpy().tobytes()).hexdigest())
"""
TAKE_TURNS = """
import sys, time
from compositional.stages.shared import devices
devices.resolve("cuda")
print(time.time(), flush=True)
time.sleep(2)
print(time.time(), flush=True)
"""


@pytest.mark.cuda
def test_computation_is_deterministic_and_in_full_precision(device):
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cuda.matmul.allow_tf32
    assert not torch.backends.cudnn.allow_tf32
    left, right = (torch.randn(512, 512, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    # TensorFloat32's ten bits of mantissa would leave an error of about 1e-2.
    torch.testing.assert_close((left.cuda() @ right.cuda()).cpu(), left @ right, rtol=0, atol=1e-3)
    assert trained_runs.device_name(device).endswith(", full float32, deterministic")


@pytest.mark.cuda
def test_two_jobs_take_turns_on_one_gpu(device, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", PLACES)
    monkeypatch.setenv(devices.DEVICES, devices.visible()[0])
    jobs = [subprocess.Popen([sys.executable, "-c", TAKE_TURNS], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    (first, second) = sorted([float(line) for line in job.communicate()[0].split()] for job in jobs)
    assert second[0] >= first[1]


def test_two_simultaneous_jobs_have_the_same_bytes_as_one(device, tmp_path, monkeypatch):
    """jobs_per_gpu allows both."""
    for name, value in (("TMPDIR", str(tmp_path)), ("PYTHONPATH", PLACES)):
        monkeypatch.setenv(name, value)
    if device == "cuda":
        monkeypatch.setenv(devices.DEVICES, devices.visible()[0])
    command, pipes = [sys.executable, "-c", TRAIN, device], {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}

    def digests(count: int) -> set[str]:
        jobs = [subprocess.Popen(command, text=True, **pipes) for _ in range(count)]
        for job in jobs:
            assert job.stdout.readline() == "claimed\n"
        for job in jobs:  # both have claimed the GPU, neither has started
            job.stdin.write("begin\n")
            job.stdin.flush()
        return {job.communicate()[0].strip() for job in jobs}

    (alone,) = digests(1)
    assert len(alone) == 64
    assert digests(2) == {alone}


def test_the_error_without_a_visible_device_states_what_to_do():
    code = "from compositional.stages.shared import devices; devices.resolve('cuda')"
    environment = os.environ | {devices.DEVICES: "", "PYTHONPATH": PLACES}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "device: cuda was asked for, but PyTorch sees no CUDA device" in done.stderr
    assert "or set device: cpu (or auto) in the configuration" in done.stderr


@pytest.mark.cuda
def test_the_error_for_too_little_memory_states_how_many_runs_fit(device):
    case = problems.problem("cnn", None, device)
    with pytest.raises(RuntimeError, match=r"would fit: set cuda_width: \d+"), memory.explained(case, 0):
        torch.empty(2**50, device=device)
