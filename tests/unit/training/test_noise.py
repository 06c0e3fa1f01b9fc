"""The random numbers of a step are those of the device's generator, and the same on every processor."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from compositional.layers.normal_compiled import LEAST
from compositional.training import noise


def _filled(count: int, seed: int) -> np.ndarray:
    numbers = torch.empty(count)
    noise.fill(numbers, seed)
    return numbers.numpy()


@pytest.mark.parametrize("seed", [0, 5, 2**63 - 1])
@pytest.mark.parametrize("count", [1, LEAST - 1, LEAST, LEAST + 1, 623, 624, 625, 1247, 1248, 1249, 1255, 200_003])
def test_compiled_normal_numbers_have_the_bits_of_pytorch_s(count, seed):
    if torch.backends.cpu.get_cpu_capability() != "AVX2":
        pytest.skip("PyTorch computes other last bits on this processor")
    theirs = torch.empty(count).normal_(generator=torch.Generator().manual_seed(seed))
    assert np.array_equal(_filled(count, seed).view(np.int32), theirs.numpy().view(np.int32))


def test_normal_numbers_are_those_of_box_and_muller():
    """From NumPy's words of the same generator, of which 24 bits make a uniform number."""
    words = np.random.RandomState(7).randint(2**32, size=64_000, dtype=np.uint32).reshape(-1, 2, LEAST // 2)
    uniform = (words & (2**24 - 1)) / 2**24
    radius, angle = np.sqrt(-2 * np.log(1 - uniform[:, 0])), 2 * np.pi * uniform[:, 1]
    expected = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()
    np.testing.assert_allclose(_filled(64_000, 7), expected, rtol=0, atol=2e-6)


def test_normal_numbers_have_the_same_bits_on_every_processor():
    """Written with a processor that has AVX2, where they are those of PyTorch."""
    digest = hashlib.sha256(_filled(2**20, 2026).tobytes()).hexdigest()
    assert digest == "16d956005126167a90aeaa4dadf82ff460f965a7495d4dfc53ffe04fb68319c3"


def test_each_run_has_its_own_stream():
    def drawn(keys):
        source = noise.Noise(keys, "cpu")
        source((3, 7))
        source.reserve()
        source.used = 0
        source.draw(4)
        return source((3, 7))

    together = drawn([11, 12])
    assert torch.equal(together[1], drawn([12])[0])
    assert not torch.equal(*together)
