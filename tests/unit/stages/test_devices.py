"""Which GPU a job claims, tested with simulated devices."""

from __future__ import annotations

import io
import os
import select
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from compositional.stages.shared import devices, trained_runs

CLAIM = """
import os, sys, time
import torch
from compositional.stages.shared import devices
torch.cuda.device_count = lambda: 1
print("ready", flush=True)
print(devices.claim(int(sys.argv[1])), os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
time.sleep(600)
"""
Start = Callable[..., subprocess.Popen]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """start(jobs_per_gpu, **environment): a process that claims one of the GPUs a and b and keeps it until the test ends."""
    started = []
    inherited = {name: value for name, value in os.environ.items() if name != "SLURM_JOB_ID"}

    def begin(jobs_per_gpu: int = 1, **environment: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", CLAIM, str(jobs_per_gpu)],
            env=inherited | {"TMPDIR": str(tmp_path), "CUDA_VISIBLE_DEVICES": "a,b", "PYTHONPATH": "src"} | environment,
            cwd=Path(__file__).parents[3],
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        started.append(process)
        assert process.stdout.readline() == b"ready\n"
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def claimed(process: subprocess.Popen) -> str:
    """Wait until a process has a device and return it; the process sees no other."""
    name, visible = process.stdout.readline().decode().split()
    assert name == visible
    return name


def test_no_two_jobs_on_one_gpu(start: Start) -> None:
    first, second = start(), start()
    names = {claimed(first), claimed(second)}
    assert names == {"a", "b"}
    third = start()
    assert not select.select([third.stdout], [], [], 2)[0], "the third job took a GPU that another one has"
    # However a job ends, its GPU is free again.
    first.send_signal(signal.SIGKILL)
    assert claimed(third) in names


def test_two_jobs_on_one_gpu_if_configured(start: Start) -> None:
    names = [claimed(start(2)) for _ in range(4)]
    assert sorted(names[:2]) == ["a", "b"], "a GPU got its second job before the other had its first"
    assert sorted(names) == ["a", "a", "b", "b"]


def test_slurm_jobs_keep_their_assigned_gpu(start: Start) -> None:
    """On a node the same number may denote different GPUs in two jobs, so neither waits for the other."""
    jobs = [start(SLURM_JOB_ID=number, CUDA_VISIBLE_DEVICES="0") for number in ("1", "2")]
    assert [claimed(job) for job in jobs] == ["0", "0"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1,0", ["1", "0"]),
        ("1,-1,0", ["1"]),
        ("0,2,1", ["0"]),
        ("-1", []),
        ("GPU-5ebe9f43,GPU-ac33420d", ["GPU-5ebe9f43", "GPU-ac33420d"]),
        ("MIG-5ebe9f43,MIG-ac33420d", ["MIG-5ebe9f43", "MIG-ac33420d"]),
    ],
)
def test_indices_after_an_invalid_one_are_ignored(monkeypatch: pytest.MonkeyPatch, given: str, expected: list[str]) -> None:
    """PyTorch does the same; the simulated machine has two GPUs."""
    machine = {"_is_compiled": lambda: True, "_raw_device_count_nvml": lambda: 2}
    for name, value in (machine | {"_initialized": False, "_cached_device_count": None}).items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert devices.visible() == expected


@pytest.mark.parametrize("given", ["", "-1", "99"])
def test_a_machine_without_gpus_has_no_devices(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert devices.claim(1) is None
    assert devices.resolve("auto") == "cpu"
    with pytest.raises(RuntimeError, match=r"device: cuda was asked for.*CUDA_VISIBLE_DEVICES=.*or set device: cpu"):
        devices.resolve("cuda")


def test_a_job_on_the_cpu_claims_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def claim(jobs_per_gpu: int) -> None:
        raise AssertionError("a job for the CPU took a GPU")

    monkeypatch.setattr(devices, "claim", claim)
    assert devices.resolve("cpu") == "cpu"


def test_without_cuda_a_message_states_why(monkeypatch):
    """The message includes PyTorch's own warning, for example about a driver that is too old."""

    def too_old() -> bool:
        warnings.warn("The NVIDIA driver on your system is too old (found version 11040)", stacklevel=1)
        return False

    monkeypatch.setattr(torch.cuda, "is_available", too_old)
    monkeypatch.setattr(devices, "claim", lambda jobs: None)
    with pytest.raises(RuntimeError, match=r"device: cuda was asked for.*driver on your system is too old.*set device: cpu"):
        devices.resolve("cuda")


@pytest.mark.parametrize(("built", "said"), [(True, True), (False, False)], ids=["CUDA build", "CPU build"])
def test_waiting_is_logged_and_a_cpu_build_waits_for_nothing(tmp_path, monkeypatch: pytest.MonkeyPatch, built: bool, said: bool):
    """Schedulers assign a device by its UUID; PyTorch is not asked about it. The code of plug-ins is imported before it waits."""
    happened = []

    def claim(jobs_per_gpu: int) -> None:
        assert built, "a CPU build of PyTorch took a device"
        happened.append("waited")

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-5ebe9f43")
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: built)
    monkeypatch.setattr(devices, "claim", claim)
    monkeypatch.setattr(trained_runs, "imported", lambda split, family: happened.append("imported"))
    monkeypatch.setattr(trained_runs, "read_problem", lambda *told: None)
    (tmp_path / "splits/t").mkdir(parents=True)
    (tmp_path / "splits/t/task.json").write_text("{}")
    log = io.StringIO()
    content = {"job": {"device": "auto", "jobs_per_gpu": 1}, "common": {"family": {"task": "t"}}}
    trained_runs.load_problem(content, tmp_path, log)
    assert happened == ["imported", "waited"][: 1 + built]
    assert ("waiting until one of these devices is free: GPU-5ebe9f43\n" in log.getvalue()) == said
    assert "computing on cpu" in log.getvalue()
