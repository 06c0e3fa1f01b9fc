"""Counter-based random numbers: every draw is a function of (key, stream, step) and of nothing that happened before.

A run's key is made from its task, model and seed alone. Regularizers and lambdas are therefore compared with the same
initialization, batches and noise, and adding a run changes no other run. Resuming needs no generator state.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # importing PyTorch takes longer than drawing most splits, which do not need it
    from torch import Tensor


def derive(*parts: object) -> int:
    """A 128-bit key from any parts, for example ("scan_jump", "lstm_attention", 3, "initialization")."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


def generator(key: int, step: int = 0) -> np.random.Generator:
    """NumPy generator (Philox) at the given step of the stream `key`; streams of different steps do not overlap."""
    return np.random.Generator(np.random.Philox(key=key, counter=step << 128))


def uniform_tensor(source: np.random.Generator, shape: tuple[int, ...], low: float, high: float) -> Tensor:
    """A float32 tensor of the given shape, uniform in [low, high)."""
    import torch

    return torch.from_numpy(source.random(shape, dtype=np.float32) * np.float32(high - low) + np.float32(low))


def uniform_noise(keys: Tensor, stream: int, shape: tuple[int, ...]) -> Tensor:
    """Numbers in [0, 1) that depend only on each example's key and the stream: keys (R, B) -> (R, B, *shape).

    The generator is counter-based and uses integer arithmetic, so it gives the same numbers on every device and can be part of a
    CUDA graph. It mixes position and key in two rounds of Chris Wellons' 32-bit mixer ("lowbias32", hash-prospector).
    """

    import torch

    def mix(values: Tensor) -> Tensor:
        values = values & 0xFFFFFFFF
        values = ((values ^ (values >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
        values = ((values ^ (values >> 15)) * 0x846CA68B) & 0xFFFFFFFF
        return values ^ (values >> 16)

    count = int(np.prod(shape))
    place = mix(torch.arange(count, device=keys.device) + (stream + 1) * 0x9E3779B9)
    return (mix(place ^ mix(keys).unsqueeze(-1)) >> 8).to(torch.float32).mul_(2**-24).unflatten(-1, shape)
