"""Standard normal numbers of PyTorch's generator on the CPU, with the same bits, in about half of the time.

The generator is MT19937 (Matsumoto and Nishimura, ACM TOMACS 8:1, 1998). Its recurrence reads only numbers that are at least 227
places away, so many can be computed at once, while PyTorch computes one after the other. Pairs of uniform numbers become pairs of
normal ones (Box and Muller, Annals of Mathematical Statistics 29:2, 1958). Logarithm, sine and cosine are the series of Cephes
(Moshier), with products and sums fused where PyTorch's build for AVX2 fuses them.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from compositional.layers.compiled import compiled, fused

LEAST = 16  # numbers that PyTorch makes together; if fewer are requested, it uses another method
_STATE, _AHEAD = 624, 397
_UPPER, _LOWER, _TWIST = np.uint32(2**31), np.uint32(2**31 - 1), np.uint32(0x9908B0DF)
_FIRST, _SECOND = np.uint32(0x9D2C5680), np.uint32(0xEFC60000)
_1, _7, _11, _15, _18, _30 = (np.uint32(count) for count in (1, 7, 11, 15, 18, 30))
_SEEDING, _MASK, _UNIT = np.uint32(1812433253), np.uint32(2**24 - 1), np.float32(2**-24)
_ZERO, _HALF, _ONE, _MINUS_TWO = (np.float32(value) for value in (0, 0.5, 1, -2))
_CIRCLE, _PER_EIGHTH, _ROOT = np.float32(2 * math.pi), np.float32(4 / math.pi), np.float32(math.sqrt(0.5))
# log 2 and pi / 4 as sums of numbers with few digits, so that products with small integers are exact.
_LOG_2, _LOG_2_REST = np.float32(0.693359375), np.float32(-2.12194440e-4)
_EIGHTH, _EIGHTH_REST = np.float32(-0.78515625), np.float32(-2.4187564849853515625e-4)
_EIGHTH_LAST = np.float32(-3.77489497744594108e-8)
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8 = (
    np.float32(term)
    for term in (
        *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1),
        *(-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
    )
)
_C0, _C1, _C2 = (np.float32(term) for term in (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2))
_S0, _S1, _S2 = (np.float32(term) for term in (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1))
_EXPONENT_OF_HALF, _FRACTION, _DIGITS = np.uint32(0x3F000000), np.uint32(23), np.uint32(2**23 - 1)


@njit
def _logarithm(value):
    """The natural logarithm of a float32 above 0 and up to 1."""
    bits = np.float32(value).view(np.uint32)
    power = np.float32(np.int32(bits >> _FRACTION) - np.int32(126))
    part = np.uint32((bits & _DIGITS) | _EXPONENT_OF_HALF).view(np.float32)
    small = part < _ROOT
    power -= _ONE if small else _ZERO
    rest = (part - _ONE) + (part if small else _ZERO)
    series = fused(_L0, rest, _L1)
    series = fused(series, rest, _L2)
    series = fused(series, rest, _L3)
    series = fused(series, rest, _L4)
    series = fused(series, rest, _L5)
    series = fused(series, rest, _L6)
    series = fused(series, rest, _L7)
    series = fused(series, rest, _L8)
    square = rest * rest
    small_part = fused(series * rest, square, power * _LOG_2_REST) - square * _HALF
    return (rest + small_part) + power * _LOG_2


@njit
def _sine_and_cosine(angle):
    """Both of an angle of at least 0."""
    octant = np.int32((np.int32(angle * _PER_EIGHTH) + np.int32(1)) & np.int32(-2))
    count = np.float32(octant)
    rest = fused(count, _EIGHTH_LAST, fused(count, _EIGHTH_REST, fused(count, _EIGHTH, angle)))
    square = rest * rest
    cosine = fused(fused(_C0, square, _C1), square, _C2) * square
    cosine = fused(cosine, square, -(square * _HALF)) + _ONE
    sine = fused(fused(_S0, square, _S1), square, _S2) * square
    sine = fused(sine, rest, rest)
    swapped = octant & np.int32(2)
    upper, across = (cosine, sine) if swapped else (sine, cosine)
    return -upper if octant & np.int32(4) else upper, across if (octant - np.int32(2)) & np.int32(4) else -across


@njit
def _advance(state):
    """The next numbers of the generator's state, in place."""
    for place in range(_STATE - _AHEAD):
        word = (state[place] & _UPPER) | (state[place + 1] & _LOWER)
        state[place] = state[place + _AHEAD] ^ (word >> _1) ^ ((word & _1) * _TWIST)
    for place in range(_STATE - _AHEAD, _STATE - 1):
        word = (state[place] & _UPPER) | (state[place + 1] & _LOWER)
        state[place] = state[place + _AHEAD - _STATE] ^ (word >> _1) ^ ((word & _1) * _TWIST)
    word = (state[_STATE - 1] & _UPPER) | (state[0] & _LOWER)
    state[_STATE - 1] = state[_AHEAD - 1] ^ (word >> _1) ^ ((word & _1) * _TWIST)


@njit
def _draw(state, uniform):
    """Advance the state, and make uniform numbers in [0, 1) of it."""
    _advance(state)
    for place in range(_STATE):
        word = state[place]
        word ^= word >> _11
        word ^= (word << _7) & _FIRST
        word ^= (word << _15) & _SECOND
        word ^= word >> _18
        uniform[place] = np.float32(np.int32(word & _MASK)) * _UNIT


@njit(error_model="numpy")
def _become_normal(uniform, count, numbers, begin):
    """Make `count` normal numbers, a multiple of LEAST, of as many uniform ones: of each LEAST, the first half are for radii, the
    others for angles."""
    half, pairs = LEAST // 2, count // 2
    lengths, angles, first, second = np.empty((4, pairs), np.float32)
    for pair in range(0, pairs, half):
        for place in range(half):
            lengths[pair + place], angles[pair + place] = uniform[2 * pair + place], uniform[2 * pair + half + place]
    for pair in range(pairs):
        lengths[pair] = np.sqrt(_MINUS_TWO * _logarithm(_ONE - lengths[pair]))
    for pair in range(pairs):
        sine, cosine = _sine_and_cosine(_CIRCLE * angles[pair])
        first[pair], second[pair] = lengths[pair] * cosine + _ZERO, lengths[pair] * sine + _ZERO
    for pair in range(0, pairs, half):
        for place in range(half):
            numbers[begin + 2 * pair + place] = first[pair + place]
            numbers[begin + 2 * pair + half + place] = second[pair + place]


@compiled
def fill(seed, numbers):
    """The float32 numbers (n,), n >= LEAST, that `torch.Generator().manual_seed(seed)` gives for `normal_()`."""
    state, uniform = np.empty(_STATE, np.uint32), np.empty(_STATE, np.float32)
    state[0] = seed
    for place in range(1, _STATE):
        word = state[place - 1]
        state[place] = np.uint32(_SEEDING * np.uint32(word ^ (word >> _30)) + np.uint32(place))
    count = numbers.shape[0]
    for begin in range(0, count, _STATE):
        _draw(state, uniform)
        _become_normal(uniform, min(_STATE, count - begin) // LEAST * LEAST, numbers, begin)
    if count % LEAST:
        # The last ones are made again, of numbers that follow all others.
        following = np.empty(_STATE, np.float32)
        _draw(state, following)
        _become_normal(np.concatenate((uniform, following))[count % _STATE :], LEAST, numbers, count - LEAST)
