"""Tests on a GPU: python -m pytest tests/gpu. They need only PyTorch, NumPy, safetensors, numba and pytest.

Without a GPU they are skipped. COMPOSITIONAL_TEST_DEVICE=cpu runs those that are meaningful on a CPU, to test the tests.
"""

from __future__ import annotations

import os

import pytest
import torch

from compositional.stages.shared import devices

WANTED = os.environ.get("COMPOSITIONAL_TEST_DEVICE", "cuda")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that this machine cannot run, with the reason; tests that need no device run everywhere."""
    missing = WANTED == "cuda" and not torch.cuda.is_available()
    for item in items:
        if "gpu" not in item.path.parent.name or "device" not in item.fixturenames:
            continue
        if missing:
            item.add_marker(pytest.mark.skip(reason="no CUDA device here: run `make test-gpu` where there is one"))
        elif WANTED != "cuda" and item.get_closest_marker("cuda"):
            item.add_marker(pytest.mark.skip(reason=f"says something of CUDA alone, and this is {WANTED}"))


@pytest.fixture(scope="session")
def device() -> str:
    """The device, set up like in a job. The processes of `pytest -n` share it."""
    return devices.resolve(WANTED, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
