"""A tensor as a tree of small factorizations over pairs of modes: a convolutional network with product pooling.

Razin, Maman, Cohen (ICML 2022), section 3. Level 0 has one matrix per mode. Each further level multiplies neighbors elementwise
("pools" them) and maps the result by a matrix; the last product is weighted by a vector and summed. For all entries at once, a
pooled pair is a Khatri-Rao product. The last one is never formed: tensor = H_left diag(o) H_right^T.

The local component r of a node consists of its children's weights for channel r and its parent's weights in row r. Its norm is
the product of their norms and grows at a rate proportional to norm^(2 - 2 / K), where K is the number of these factors (3 in a
binary tree).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from compositional.kinds.tensor import Batch
from compositional.layers import Weights, factorization

KIND = "tensor"
REPRESENTATIONS = ()
PARAMETERS = {
    "widths": {
        "type": "array",
        "minItems": 1,
        "items": {"type": "integer", "minimum": 1},
        "default": [512, 512],
        "description": "channels of each level, from the leaves to the root: one number per level, ceil(log2(order)) in all",
    },
    "deviation": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 0.01,
        "description": "standard deviation of initial weights",
    },
    "matricizations": {
        "type": "array",
        "items": {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "integer", "minimum": 1}},
        "default": [[1, 3]],
        "description": "modes (counted from 1) of additional matricizations to track; those of the tree's inner nodes always are",
    },
}


def _levels(order: int) -> list[list[tuple[int, ...]]]:
    """The modes below each node, level by level from the leaves to the root."""
    levels: list[list[tuple[int, ...]]] = [[(mode,) for mode in range(order)]]
    while len(levels[-1]) > 1:
        below = levels[-1]
        levels.append([tuple(chain(*below[index : index + 2])) for index in range(0, len(below), 2)])
    return levels


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run, for tensors of task["shape"].

    Raises:
        ValueError: the number of widths does not fit the order, or there are not so many modes.
    """
    shape, widths = task["shape"], parameters["widths"]
    levels = math.ceil(math.log2(len(shape)))
    if len(widths) != levels:
        raise ValueError(f"hierarchical_tensor_factorization of order {len(shape)} needs {levels} widths, not {widths}")
    if beyond := [modes for modes in parameters["matricizations"] if max(modes) > len(shape)]:
        raise ValueError(f"matricizations {beyond} name modes beyond {len(shape)}, the order of the task's tensor")
    weights = {}
    for level, nodes in enumerate(_levels(len(shape))[:-1]):
        for node, modes in enumerate(nodes):
            inputs = shape[modes[0]] if level == 0 else widths[level - 1]
            weights[f"level{level}.node{node}"] = factorization.normal(source, (inputs, widths[level]), parameters["deviation"])
    return weights | {"output": factorization.normal(source, (widths[-1],), parameters["deviation"])}


def _last_pair(weights: Weights, order: int) -> list[Tensor]:
    """The outputs of the root's two children for every entry of their modes, by channel: (R, entries, width) each."""
    levels = _levels(order)
    values = [weights[f"level0.node{node}"] for node in range(order)]
    for level in range(1, len(levels) - 1):
        pairs = [values[index : index + 2] for index in range(0, len(values), 2)]
        pooled = [factorization.khatri_rao(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        values = [factorization.product(pool, weights[f"level{level}.node{node}"]) for node, pool in enumerate(pooled)]
    return values


def _order(weights: Weights) -> int:
    return sum(name.startswith("level0.") for name in weights)


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """All entries (R, E)."""
    return _entries(weights)


def _entries(weights: Weights) -> Tensor:
    left, right = _last_pair(weights, _order(weights))
    return factorization.product(left * weights["output"].unsqueeze(1), right.transpose(1, 2)).flatten(1)


def _name(modes: tuple[int, ...]) -> str:
    return "_".join(str(mode + 1) for mode in modes)


def observe(parameters: dict, weights: Weights, task: dict) -> dict[str, Tensor]:
    """Norms of the local components of inner nodes, and spectra of matricizations: (R,) by name ("node_1_2_component_1")."""
    shape = task["shape"]
    levels = _levels(len(shape))
    found: dict[str, Tensor] = {}
    for level in range(1, len(levels)):
        for node, modes in enumerate(levels[level]):
            children = range(2 * node, min(2 * node + 2, len(levels[level - 1])))
            norms = [weights[f"level{level - 1}.node{child}"].norm(dim=1) for child in children]
            parent = weights.get(f"level{level}.node{node}")
            norms.append(weights["output"].abs() if parent is None else parent.norm(dim=2))
            found |= factorization.ranked_components(f"node_{_name(modes)}_component", torch.stack(norms).prod(0))
    entries = _entries(weights)
    nodes = [modes for level in levels[1:-1] for modes in level if len(modes) > 1]
    wanted = dict.fromkeys(nodes + [tuple(mode - 1 for mode in modes) for modes in parameters["matricizations"]])
    for modes in wanted:
        singular = factorization.spectrum(factorization.matricization(entries, shape, modes))
        found |= factorization.ranked(f"matricization_{_name(modes)}_singular_value", singular)
        found[f"matricization_{_name(modes)}_effective_rank"] = factorization.effective_rank(singular)
    return found
