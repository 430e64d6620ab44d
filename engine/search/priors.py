"""Priors: from a network's logits to the two-byte codes of a node's moves that have no edge yet.

Most nodes stay leaves, and of the others only a few moves are ever selected. So the tree neither sorts nor lists moves:
a node stores a code for each policy index, and which move without an edge is the likeliest. When that move gets an
edge, a pass over the node's codes finds the next one. All loops run over whole arrays, so that compilers vectorise
them.
"""

import math

import numpy as np

from engine.go.random import next_below
from engine.system.jit import inlined_kernel, kernel

HALF = np.float32(0.5)
LOWEST = np.float32(-87.0)
"""Smallest integer x for which e ** x is a normal float32"""
LOG2_E = np.float32(1.0 / math.log(2.0))
MANTISSA_BITS, EXPONENT_BIAS = np.int32(23), np.int32(127)
C0, C1, C2, C3, C4, C5 = map(
    np.float32, (0.999999896, 0.69315462, 0.24014077, 0.0558632827, 0.00894621467, 0.00189510729)
)
"""Coefficients of a polynomial in f for 2 ** f, f from 0 to 1, accurate to 2e-7 (Chebyshev approximation)"""


@inlined_kernel
def exponential(x):
    """e ** x for a float32 x <= 0, to float32 precision; bit-identical on all machines, and vectorised."""
    y = max(x, LOWEST) * LOG2_E
    whole = np.floor(y)
    f = y - whole
    power = C0 + f * (C1 + f * (C2 + f * (C3 + f * (C4 + f * C5))))
    return power * np.int32((np.int32(whole) + EXPONENT_BIAS) << MANTISSA_BITS).view(np.float32)


@kernel
def _sum(values, n):
    """Sum of the first n values of a float32 array, in four accumulators so that additions overlap."""
    a = b = c = d = 0.0
    i = 0
    while i + 4 <= n:
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
        i += 4
    while i < n:
        a += values[i]
        i += 1
    return (a + b) + (c + d)


@kernel
def _largest(values, n):
    """Largest of the first n values of a float32 array, n > 0, in four accumulators."""
    a = b = c = d = values[0]
    i = 1
    while i + 4 <= n:
        a = max(a, values[i])
        b = max(b, values[i + 1])
        c = max(c, values[i + 2])
        d = max(d, values[i + 3])
        i += 4
    while i < n:
        a = max(a, values[i])
        i += 1
    return max(max(a, b), max(c, d))


@kernel
def write_codes(listed, n, logits, temperature, surprise, likelihood, codes):
    """Turn logits into priors over the listed moves (softmax of logits / temperature), and write the priors' codes.

    Args:
        listed, n: uint16[>= n]: policy indices of the n moves.
        logits: float32[N*N + 1], policy order.
        surprise, likelihood: float32[>= n], working memory, overwritten.
        codes: uint16[N*N + 1], overwritten: prior codes by policy index; GONE for moves not listed.
    """
    for j in range(n):
        surprise[j] = logits[listed[j]]
    top = _largest(surprise, n)
    cooling = np.float32(1.0 / temperature)
    for j in range(n):
        surprise[j] = (top - surprise[j]) * cooling
    for j in range(n):
        likelihood[j] = exponential(-surprise[j])
    shift = np.float32(math.log(_sum(likelihood, n)))
    steps_a_nat, most = np.float32(CODES_PER_NAT), np.float32(LAST_CODE)
    codes[:] = GONE
    for j in range(n):
        codes[listed[j]] = np.uint16(min((surprise[j] + shift) * steps_a_nat + HALF, most))


@kernel
def write_equal_codes(listed, n, state, codes):
    """Write the codes of equal priors for the listed moves, with random jitter that decides their order.

    Args:
        listed, n, codes: as for :func:`write_codes`.
        state: uint64[4], random state.
    """
    surprise = math.log(n)
    codes[:] = GONE
    for j in range(n):
        codes[listed[j]] = to_prior_code(surprise + next_below(state, JITTER) / CODES_PER_NAT)


CODES_PER_NAT = 2048.0
"""A prior's code is -ln(prior) in steps of 1/2048: precise to 0.02%, for priors down to e^-32."""
GONE = 65535
"""In place of a code: the policy index is no move of the node, or the move has an edge"""
LAST_CODE = 65534.0
"""Largest code of a prior"""
JITTER = 16
"""Equal priors get 0 to 15 random steps of 1/2048, less than 1%, so that they differ."""
NO_MOVE = np.uint32(0xFFFFFFFF)
"""In place of a result of :func:`likeliest` before a node has codes; not a move (:func:`is_move`)"""
INDEX_MASK = np.uint32(0xFFFF)
HALF_WORD = np.uint32(16)


@kernel
def to_prior_code(surprise):
    """The code (uint16) of a prior; ``surprise`` is -ln(prior)."""
    return np.uint16(min(surprise * CODES_PER_NAT + 0.5, LAST_CODE))


@kernel
def prior_of(code):
    """The prior that has this code, as float64."""
    return math.exp(-np.float64(code) / CODES_PER_NAT)


@kernel
def likeliest(codes):
    """The likeliest move, which has the smallest code (at equal codes the smallest policy index).

    Args:
        codes: uint16[A], by policy index.
    Returns:
        uint32: the move's code in the upper 16 bits, its policy index in the lower; not a move (:func:`is_move`) if all
        codes are GONE.
    """
    best = NO_MOVE
    for index in range(len(codes)):
        best = min(best, (np.uint32(codes[index]) << HALF_WORD) | np.uint32(index))
    return best


@kernel
def is_move(top):
    """Whether ``top``, a result of :func:`likeliest`, is a move."""
    return (top >> HALF_WORD) != GONE


@kernel
def index_of_best(top):
    """Policy index of ``top``, a result of :func:`likeliest`."""
    return np.int64(top & INDEX_MASK)


@kernel
def prior_of_best(top):
    """Prior of ``top``, a result of :func:`likeliest`."""
    return prior_of(top >> HALF_WORD)
