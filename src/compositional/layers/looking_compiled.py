"""Additive attention of one decoder step, compiled for float32 on the CPU: one pass over the memory instead of one per operation.

Additions and multiplications are in a fixed order and are not fused, so the bits of a row depend only on the row. Words that are
blocked are left out: most inputs are much shorter than the longest one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from compositional.layers.compiled import compiled
from compositional.layers.lstm_compiled import logistic
from compositional.layers.softmax_compiled import largest_of, power_of_e, sum_of_products

_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)


@cache
def _compiled(width: int) -> tuple[Callable, Callable]:
    """Both passes for `width` units. A constant width lets the compiler compute many units at once."""

    def attend(queries, keys, values, blocked, score, looks, seen, start, size):
        words = keys.shape[2]
        tangent, mixed, ones = np.empty(width, np.float32), np.empty(width, np.float32), np.ones(words, np.float32)
        for run in range(queries.shape[0]):
            for row in range(size):
                look = looks[run, start + row]
                for word in range(words):
                    look[word] = blocked[run, row, 0, word]
                    if look[word] == _ZERO:
                        for unit in range(width):
                            total = queries[run, start + row, unit] + keys[run, row, word, unit]
                            tangent[unit] = _TWO * logistic(_TWO * total) - _ONE
                        look[word] = sum_of_products(tangent, score[run], width)
                most = largest_of(look, words)
                for word in range(words):
                    look[word] = power_of_e(look[word] - most)
                scale = _ONE / sum_of_products(look, ones, words)
                mixed[:] = _ZERO
                for word in range(words):
                    look[word] *= scale
                    if blocked[run, row, 0, word] == _ZERO:
                        share = look[word]
                        for unit in range(width):
                            mixed[unit] += share * values[run, row, word, unit]
                for unit in range(width):
                    seen[run, start + row, width + unit] = mixed[unit]

    def gradient(
        queries, keys, values, blocked, score, looks, grad_looks, grad_seen, grad_queries, grad_keys, grad_values, grad_score,
        start, size,
    ):  # fmt: skip
        words = keys.shape[2]
        grad_mixed, grad_query = np.empty(width, np.float32), np.empty(width, np.float32)
        grad_look = np.empty(words, np.float32)
        for run in range(queries.shape[0]):
            for row in range(size):
                look = looks[run, start + row]
                for unit in range(width):
                    grad_mixed[unit] = grad_seen[run, start + row, width + unit]
                for word in range(words):
                    grad_look[word] = _ZERO
                    if blocked[run, row, 0, word] == _ZERO:
                        own = sum_of_products(values[run, row, word], grad_mixed, width)
                        grad_look[word] = grad_looks[run, start + row, word] + own
                mean = sum_of_products(look, grad_look, words)
                grad_query[:] = _ZERO
                for word in range(words):
                    if blocked[run, row, 0, word] == _ZERO:
                        share, grad = look[word], look[word] * (grad_look[word] - mean)
                        for unit in range(width):
                            tangent = (
                                _TWO * logistic(_TWO * (queries[run, start + row, unit] + keys[run, row, word, unit])) - _ONE
                            )
                            slope = grad * score[run, unit] * (_ONE - tangent * tangent)
                            grad_query[unit] += slope
                            grad_keys[run, row, word, unit] += slope
                            grad_values[run, row, word, unit] += share * grad_mixed[unit]
                            grad_score[run, unit] += grad * tangent
                for unit in range(width):
                    grad_queries[run, start + row, unit] = grad_query[unit]

    return compiled(attend, f"_{width}"), compiled(gradient, f"_{width}")


def passes(width: int) -> tuple[Callable, Callable]:
    """As `looking._attend` and `looking._gradient`, for `width` units."""

    def of_arrays(function: Callable) -> Callable:
        return lambda *given: function(*(one if isinstance(one, int) else one.numpy() for one in given))

    attend, gradient = _compiled(width)
    return of_arrays(attend), of_arrays(gradient)
