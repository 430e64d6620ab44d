"""SIMD kernels in LLVM IR for networks on the CPU: matrix products, Winograd transformations, activations.

LLVM's auto-vectorisation of Numba's loops is too slow for these three: the sums of a matrix product must stay in
registers until they are complete, LLVM cannot prove that the points of a tile do not overlap in memory, and
exponentials are library calls. So they are written in LLVM IR, on vectors of :data:`WIDTH` numbers, which LLVM maps to
the processor's registers.

Functions of this module emit IR when a kernel that calls them is compiled; ``builder`` is llvmlite's ``IRBuilder``, and
values are llvmlite's too.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import codegen, config
from numba.extending import intrinsic as numba_intrinsic

# Numba makes its configuration's names when it is imported: type checkers do not see them.
_ASKED_FOR = getattr(config, "CPU_FEATURES")  # noqa: B009
FEATURES = codegen.get_host_cpu_features() if _ASKED_FOR is None else _ASKED_FOR
"""Processor features that Numba compiles for, the same string as in the cache keys of compiled kernels"""
WIDTH = 16 if "+avx512f" in FEATURES.split(",") else 8
"""Number of float32 in a vector: a register of AVX-512, or of AVX2; two of NEON"""
WIDEST_PANEL = 3 * WIDTH
"""Maximum number of outputs that a matrix product accumulates at a time"""
MOST_ROWS = 9 if WIDTH == 16 else 4
"""Maximum number of rows multiplied at a time: with three vectors each, these rows fill AVX-512's 32 registers, or
AVX2's 16, and each sum is updated again only after the four cycles of an addition"""
LN2_HIGH, TERMS = 0.693359375, 7
"""ln 2 rounded to few bits, so that its multiples are exact; degree of the exponential's Taylor polynomial"""
LEAST, MOST = -87.0, 20.0
"""Below LEAST exp(x) is not a normal float32; above MOST activations equal x."""
_INT, _INDEX = ir.IntType(64), types.intp
_VECTOR = ir.VectorType(ir.FloatType(), WIDTH)
_WHOLE = ir.VectorType(ir.IntType(32), WIDTH)
_FUSED = ("contract",)
"""Flag that allows LLVM to fuse multiplication and addition"""
Emitter = Callable[..., Any]
intrinsic: Callable[[Callable[..., Any]], Emitter] = numba_intrinsic
"""Numba's ``intrinsic``; its type hints wrongly require callers to pass the typing context"""


def _number(value: int) -> ir.Constant:
    return ir.Constant(_INT, value)


def _all(value: float) -> ir.Constant:
    """A vector with all elements equal to a compile-time constant."""
    return ir.Constant(_VECTOR, [value] * WIDTH)


def _vector_at(builder: Any, data: Any, index: Any) -> Any:
    """A pointer to the vector that starts at an element of an array."""
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


def _load(builder: Any, place: Any) -> Any:
    return builder.load(place, align=4)


def _data(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> list[Any]:
    """An intrinsic's arguments, with each array replaced by a pointer to its first element."""
    return [
        context.make_array(of)(context, builder, value).data if isinstance(of, types.Array) else value
        for of, value in zip(signature.args, args, strict=True)
    ]


def _check_flat(*arrays: Any) -> None:
    """Assert that all are float32[:], contiguous: offsets are counted in elements."""
    for of in arrays:
        assert isinstance(of, types.Array) and of.dtype == types.float32 and of.ndim == 1 and of.layout == "C"


@intrinsic
def multiply_rows(typing: Any, left: Any, at: Any, rows: Any, inner: Any, right: Any, weights: Any, panel: Any,
                  ahead: Any, ahead_step: Any, out: Any, out_at: Any, out_step: Any) -> Any:  # fmt: skip
    """out[out_at + r * out_step + j] = sum over k of left[at + r * inner + k] * right[weights + k * panel + j].

    For r < ``rows`` (1 to ``MOST_ROWS``), k < ``inner`` (at least 1), j < ``panel`` (1 to 3 times ``WIDTH``). The order
    of the sum is that of k, so a row's outputs do not depend on the number of rows.

    Args:
        left, right, out: float32[:], contiguous.
        ahead, ahead_step: ``right[ahead + k * ahead_step]`` is prefetched meanwhile.
    """
    del typing
    _check_flat(left, right, out)
    signature = types.void(left, *[_INDEX] * 3, right, *[_INDEX] * 4, out, _INDEX, _INDEX)

    def emit(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        left, at, rows, inner, right, weights, panel, ahead, ahead_step, out, out_at, out_step = _data(
            context, builder, signature, args
        )
        end = builder.append_basic_block("multiplied")
        # One loop for each number of rows and of vectors.
        weights, fetched = builder.gep(right, [weights]), builder.gep(right, [ahead])
        choice = builder.switch(builder.add(builder.mul(rows, _number(WIDEST_PANEL)), panel), end)
        for count in range(1, MOST_ROWS + 1):
            for vectors in range(1, WIDEST_PANEL // WIDTH + 1):
                block = builder.append_basic_block(f"rows{count}x{vectors}")
                choice.add_case(_number(count * WIDEST_PANEL + vectors * WIDTH), block)
                builder.position_at_end(block)
                starts = [builder.add(at, builder.mul(inner, _number(row))) for row in range(count)]
                lines = [builder.gep(left, [start]) for start in starts]
                sums = _summed(builder, lines, weights, vectors, inner, fetched, ahead_step)
                for row in range(count):
                    start = builder.add(out_at, builder.mul(out_step, _number(row)))
                    for j in range(vectors):
                        place = _vector_at(builder, out, builder.add(start, _number(j * WIDTH)))
                        builder.store(sums[row][j], place, align=4)
                builder.branch(end)
        builder.position_at_end(end)
        return context.get_dummy_value()

    return signature, emit


def _summed(builder: Any, lines: Sequence[Any], weights: Any, vectors: int, inner: Any, fetched: Any,
            fetched_step: Any) -> list[list[Any]]:  # fmt: skip
    """Emit a loop over k that sums, for each line and vector, line[k] times the vector of weights; return the sums."""
    before, loop, after = builder.basic_block, *(builder.append_basic_block(name) for name in ("sum", "summed"))
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(_INT)
    k.add_incoming(_number(0), before)
    sums = [[builder.phi(_VECTOR) for _ in range(vectors)] for _ in lines]
    first = builder.mul(k, _number(vectors * WIDTH))
    row = [_load(builder, _vector_at(builder, weights, builder.add(first, _number(j * WIDTH)))) for j in range(vectors)]
    _fetch(builder, builder.gep(fetched, [builder.mul(k, fetched_step)]))
    added = []
    for line, so_far in zip(lines, sums, strict=True):
        value = _repeated(builder, _load(builder, builder.gep(line, [k])))
        added.append([_fused(builder, value, weight, one) for weight, one in zip(row, so_far, strict=True)])
    following = builder.add(k, _number(1))
    k.add_incoming(following, loop)
    for so_far, more in zip(sums, added, strict=True):
        for one, new in zip(so_far, more, strict=True):
            one.add_incoming(_all(0.0), before)
            one.add_incoming(new, loop)
    builder.cbranch(builder.icmp_signed("<", following, inner), loop, after)
    builder.position_at_end(after)
    return added


def _fused(builder: Any, left: Any, right: Any, more: Any) -> Any:
    """left * right + more"""
    return builder.fadd(builder.fmul(left, right, flags=_FUSED), more, flags=_FUSED)


def _fetch(builder: Any, place: Any) -> None:
    """Prefetch an element's cache line; it may lie beyond the array's end."""
    pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
    fetch = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
    builder.call(fetch, [builder.bitcast(place, pointer), *(ir.Constant(number, value) for value in (0, 3, 1))])


def _repeated(builder: Any, value: Any) -> Any:
    """A vector with all elements equal to a value."""
    empty = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, empty, ir.Constant(_WHOLE, [0] * WIDTH))


def on_both_sides(matrix: Sequence[Sequence[float]], adds: bool = False) -> Emitter:
    """An intrinsic that transforms tiles x[n, n] to ``matrix`` x ``matrix``^T, [m, m], a vector of channels at a time.

    Arguments of the intrinsic: ``source`` and ``at``, the array and the index of the tile's first element; ``row`` and
    ``point``, the strides of the tile's rows and points; then ``target`` and the same three numbers for the target.

    Args:
        matrix: m rows of n numbers.
        adds: outputs are added to the target.
    """

    @intrinsic
    def transform(typing: Any, source: Any, at: Any, row: Any, point: Any, target: Any, target_at: Any, target_row: Any,
                  target_point: Any) -> Any:  # fmt: skip
        del typing
        _check_flat(source, target)
        signature = types.void(source, *[_INDEX] * 3, target, *[_INDEX] * 3)

        def emit(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            source, at, row, point, target, *to = _data(context, builder, signature, args)
            size = range(len(matrix[0]))
            place = _places(builder, source, at, row, point)
            tile = [[_load(builder, place(i, j)) for j in size] for i in size]
            half = [[_combined(builder, line, [tile[i][j] for i in size]) for j in size] for line in matrix]
            place = _places(builder, target, *to)
            for i in range(len(matrix)):
                for j, line in enumerate(matrix):
                    value = _combined(builder, line, half[i])
                    if adds:
                        value = builder.fadd(_load(builder, place(i, j)), value)
                    builder.store(value, place(i, j), align=4)
            return context.get_dummy_value()

        return signature, emit

    return transform


def _places(builder: Any, data: Any, at: Any, row: Any, point: Any) -> Callable[[int, int], Any]:
    """A function from row and column in a tile to a pointer to the vector of that point."""

    def place(i: int, j: int) -> Any:
        steps = builder.add(builder.mul(row, _number(i)), builder.mul(point, _number(j)))
        return _vector_at(builder, data, builder.add(at, steps))

    return place


def _combined(builder: Any, factors: Sequence[float], vectors: Sequence[Any]) -> Any:
    """The linear combination of vectors with compile-time constants as factors."""
    total = None
    for factor, vector in zip(factors, vectors, strict=True):
        if factor == 0.0:
            continue
        if total is None:
            total = vector if factor == 1.0 else builder.fmul(_all(factor), vector)
        elif factor in (1.0, -1.0):
            total = (builder.fadd if factor == 1.0 else builder.fsub)(total, vector)
        else:
            total = _fused(builder, _all(factor), vector, total)
    assert total is not None
    return total


def _activation(formula: Callable[[Any, Any, Any], Any]) -> Emitter:
    """An intrinsic ``f(array, at)`` that applies an activation in place to the vector of float32[:] at an index.

    Args:
        formula: emits the activation from a builder, x and exp(x), with x clamped to at least ``LEAST``, at which the
            activation is 0 in float32.
    """

    @intrinsic
    def activate(typing: Any, array: Any, at: Any) -> Any:
        del typing
        _check_flat(array)

        def emit(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            place = _vector_at(builder, *_data(context, builder, signature, args))
            x = _load(builder, place)
            # NaN stays NaN.
            x = builder.select(builder.fcmp_ordered("<", x, _all(LEAST)), _all(LEAST), x)
            builder.store(formula(builder, x, _exponential(builder, x)), place, align=4)
            return context.get_dummy_value()

        return types.void(array, _INDEX), emit

    return activate


def _exponential(builder: Any, x: Any) -> Any:
    """exp(x) of x >= ``LEAST``, with x clamped to at most ``MOST``: 2^n times a series in the remainder r, |r| < 0.35.

    NaN is clamped to ``MOST``, so that the conversion to an integer is defined.
    """
    x = builder.select(builder.fcmp_ordered("<", x, _all(MOST)), x, _all(MOST))
    # n + 127, the biased exponent of float32, is positive, so truncation rounds down.
    exponent = builder.fptosi(builder.fadd(builder.fmul(x, _all(1.0 / math.log(2.0))), _all(127.5)), _WHOLE)
    n = builder.fsub(builder.sitofp(exponent, _VECTOR), _all(127.0))
    # ln 2 in two parts: the product of n with the first part is exact.
    r = builder.fsub(x, builder.fmul(n, _all(LN2_HIGH)))
    r = builder.fsub(r, builder.fmul(n, _all(math.log(2.0) - LN2_HIGH)))
    total = _all(1.0 / math.factorial(TERMS))
    for k in reversed(range(TERMS)):
        total = _fused(builder, total, r, _all(1.0 / math.factorial(k)))
    power = builder.bitcast(builder.shl(exponent, ir.Constant(_WHOLE, [23] * WIDTH)), _VECTOR)
    return builder.fmul(total, power)


def _mish(builder: Any, x: Any, e: Any) -> Any:
    """x tanh(log(1 + e)) = x e (e + 2) / (e (e + 2) + 2)"""
    product = builder.fmul(e, builder.fadd(e, _all(2.0)))
    return builder.fmul(x, builder.fdiv(product, builder.fadd(product, _all(2.0))))


def _silu(builder: Any, x: Any, e: Any) -> Any:
    """x e / (1 + e)"""
    return builder.fmul(x, builder.fdiv(e, builder.fadd(e, _all(1.0))))


mish, silu = _activation(_mish), _activation(_silu)
