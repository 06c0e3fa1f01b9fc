"""Batches that go through all examples again and again."""

from __future__ import annotations

import numpy as np

from compositional import randomness


def draw(key: int, steps: range, count: int, batch_size: int) -> np.ndarray:
    """Indices (steps, batch_size) of a run's training batches. Every epoch takes all `count` examples in a new random order.

    An epoch's last batch is padded with the epoch's first examples.
    """
    batches = -(-count // batch_size)
    drawn = np.empty((len(steps), batch_size), np.int64)
    for place, step in enumerate(steps):
        epoch, batch = divmod(step, batches)
        if place == 0 or batch == 0:
            order = np.resize(randomness.generator(key, epoch).permutation(count), (batches, batch_size))
        drawn[place] = order[batch]
    return drawn
