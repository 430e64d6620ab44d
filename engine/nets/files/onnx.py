"""Export to ONNX: a network as a graph for ONNX Runtime, TensorRT, OpenVINO or a browser.

The graph is written from the network's description (:meth:`engine.nets.network.PlainNetwork.describe` and
:meth:`~engine.nets.network.PlainNetwork.heads_of`), without torch, in operators of opset 18. The inputs and outputs of
all networks have the same names, those of :class:`engine.nets.network.Network`:

- ``planes``: float32[batch, C, size, size] of the network's encoder;
- ``globals``: float32[batch, G]; missing if the encoder has no global values, since some runtimes bind inputs wrongly
  if the graph does not read one;
- ``policy``, ``value``, ``score``, ``ownership``: the heads of :class:`engine.nets.network.Heads` that the network has,
  after activation, from the view of the side to move.

The batch is dynamic. So is the board size, one for all boards of a batch, unless the network's parameters or the caller
fix it. The metadata has ``keima.name``, ``keima.encoder`` and ``keima.sizes``, such as ``7-19``.

KataGo's networks have the same names, not those of ``katago dumponnx``: KataGo's contract asks for raw outputs, a mask
and one board size, and KataGo writes such graphs itself. The graphs of this module need no mask, and no formulas that
convert raw outputs to probabilities and points.

Sources: the operators of ONNX, https://onnx.ai/onnx/operators; ``docs/ONNX_Model_Files.md`` of KataGo 1.18.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine import __version__
from engine.nets.forward import CENTRE_SIZE, MEAN_SQUARE, SIZE_UNIT, EagerForward, Unwritable, board_scale
from engine.nets.katago.blocks import AttentionBlock, FeedForwardBlock, RmsNorm, TokenBlock
from engine.nets.layers import MISH, RELU, SILU, Convolution, Linear, folded, named_arrays
from engine.nets.network import Heads, NetworkSpec, PlainNetwork, activated
from engine.system import one_line
from engine.system.files import written_whole

OPSET, IR_VERSION = 18, 8
"""The first operator set that has all operators of the graphs, and the file format's version of its time"""
COPIED = 0
"""Length of an axis in ONNX's Reshape: that of the input's axis. Also the length of the batch's axis in all shapes"""
TO_END = (1 << 63) - 1
DESCRIPTIONS = {
    "planes": "input planes of the encoder, from the view of the side to move, rows from the top",
    "globals": "global values of the encoder, from the view of the side to move",
    "policy": "logits: the points row by row from the top, then the pass; not masked for legality",
    "value": "expected result for the side to move, from -1 = loss to 1 = win",
    "score": "expected lead of the side to move in points, komi counted",
    "ownership": "1 = certainly the side to move's, -1 = certainly the opponent's",
}
"""Descriptions of inputs and outputs in the file"""


def save_onnx(path: Path, networks: Sequence[PlainNetwork], spec: NetworkSpec, size: int | None = None) -> None:
    """Write a network as an ONNX file, atomically.

    Args:
        networks: the network, or AlphaGo's policy network and value network, which become one graph.
        spec: spec of the network, or of the pair.
        size: board size of the graph; None = dynamic, if the network plays several sizes.
    Raises:
        ValueError: the package onnx is missing, the network does not play the size, or it has a layer that cannot be
            written; one line.
        OSError: the file cannot be written.
    """
    onnx = _imported_onnx()
    if size is not None:
        spec.check_sizes([size])
    fixed = spec.max_size if size is None and spec.min_size == spec.max_size else size
    graph = Graph(onnx, networks[-1].shape.planes, networks[-1].shape.globals, fixed, spec.max_size)
    try:
        heads = _heads(graph, networks)
    except Unwritable as error:
        raise ValueError(f"network {spec.name} has a layer that is not written as ONNX ({error})") from error
    facts = {"name": spec.name, "encoder": spec.encoder, "sizes": str(fixed or f"{spec.min_size}-{spec.max_size}")}
    model = graph.model(spec.name, {name: head for name, head in heads._asdict().items() if head is not None}, facts)
    onnx.checker.check_model(model)
    with written_whole(path) as part:
        part.write_bytes(model.SerializeToString())


def _imported_onnx() -> Any:
    """The package onnx.

    Raises:
        ValueError: it cannot be imported; one line that says what to install.
    """
    try:
        import onnx
    except (ImportError, OSError) as error:
        raise ValueError(
            f"export to ONNX needs the package onnx ({one_line(error)}), expected: pip install onnx"
        ) from error
    return onnx


def _heads(graph: "Graph", networks: Sequence[PlainNetwork]) -> "Heads[Value]":
    """Write networks into a graph; their heads, the policy of the first one and the value of the second of a pair."""
    found = []
    for part, network in zip(("policy.", "value.") if len(networks) > 1 else ("",), networks, strict=True):
        network = folded(network)
        graph.name_arrays(named_arrays(network), part)
        planes = graph.planes
        if network.shape.planes < planes.shape[1]:
            planes = planes[:, : network.shape.planes]
        forward = OnnxForward(graph, planes)
        network.describe(forward)
        found.append(activated(network.heads_of(forward.outputs, planes, graph.globals)))
    return found[0] if len(found) == 1 else Heads(found[0].policy, found[1].value)


class Value:
    """The result of a node, or an input of the graph, with the operators that networks use on arrays."""

    __array_ufunc__ = None
    """So numpy's numbers leave operators to this class."""

    def __init__(self, graph: "Graph", name: str, shape: tuple[int, ...]):
        self.graph, self.name, self.shape = graph, name, shape

    def __array_namespace__(self) -> "Graph":
        """The functions of such arrays (:func:`engine.nets.forward.library_of`)."""
        return self.graph

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def float(self) -> "Value":
        """The value itself: all numbers are float32."""
        return self

    def __add__(self, other: Any) -> "Value":
        return self.graph.elementwise("Add", self, other)

    def __sub__(self, other: Any) -> "Value":
        return self.graph.elementwise("Sub", self, other)

    def __mul__(self, other: Any) -> "Value":
        return self.graph.elementwise("Mul", self, other)

    def __truediv__(self, other: Any) -> "Value":
        return self.graph.elementwise("Div", self, other)

    def __rsub__(self, other: Any) -> "Value":
        return self.graph.elementwise("Sub", other, self)

    __radd__, __rmul__ = __add__, __mul__

    def __and__(self, other: Any) -> "Value":
        return self.graph.elementwise("And", self, other)

    def __eq__(self, other: Any) -> "Value":  # type: ignore[override]  # elementwise, as in numpy
        return self.graph.elementwise("Equal", self, other)

    def __ne__(self, other: Any) -> "Value":  # type: ignore[override]
        return self.graph.add("Not", self.shape, self == other)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, key: Any) -> "Value":
        """Integers, slices without a step, new axes and an ellipsis."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in keys:
            rest = self.ndim - sum(one is not None and one is not Ellipsis for one in keys)
            at = keys.index(Ellipsis)
            keys[at : at + 1] = [slice(None)] * rest
        axes = [one for one in keys if one is not None]
        cuts = [(axis, *_bounds(one)) for axis, one in enumerate(axes) if one != slice(None)]
        dropped = [axis for axis, one in enumerate(axes) if isinstance(one, int)]
        added = [at for at, one in enumerate(one for one in keys if not isinstance(one, int)) if one is None]
        value, like = self, np.empty(self.shape)
        if cuts:
            where, starts, ends = (np.array(numbers) for numbers in zip(*cuts, strict=True))
            like = like[tuple(slice(one, one + 1 or None) if isinstance(one, int) else one for one in axes)]
            value = self.graph.add("Slice", like.shape, value, starts, ends, where)
        if dropped:
            like = like.squeeze(tuple(dropped))
            value = self.graph.add("Squeeze", like.shape, value, np.array(dropped))
        if added:
            value = self.graph.add("Unsqueeze", np.expand_dims(like, tuple(added)).shape, value, np.array(added))
        return value

    def reshape(self, *lengths: int) -> "Value":
        """The value in another shape; ``COPIED`` and one -1 are allowed, so that no length depends on the board."""
        shape = [self.shape[axis] if length == COPIED else length for axis, length in enumerate(lengths)]
        if -1 in shape:
            batched = int(self.shape[0] == COPIED)
            known = math.prod(length for length in shape[batched:] if length != -1)
            shape[shape.index(-1)] = math.prod(self.shape[batched:]) // known
        return self.graph.add("Reshape", tuple(shape), self, np.array(lengths))

    def permuted(self, *axes: int) -> "Value":
        """The value with its axes in another order."""
        return self.graph.add("Transpose", tuple(self.shape[axis] for axis in axes), self, perm=list(axes))

    def mean(self, axes: Sequence[int], keepdims: bool = False) -> "Value":
        """The mean over some axes."""
        return self.graph.reduced("ReduceMean", self, axes, keepdims)

    def sum(self, axis: int) -> "Value":
        """The sum over an axis."""
        return self.graph.reduced("ReduceSum", self, [axis], False)


def _bounds(key: int | slice) -> tuple[int, int]:
    """Start and end of a cut for ONNX's Slice."""
    if isinstance(key, int):
        return key, key + 1 or TO_END
    assert key.step is None, key
    return key.start or 0, TO_END if key.stop is None else key.stop


class Graph:
    """A graph under construction; as numpy has, it has functions of its arrays, which are :class:`Value`\\ s."""

    def __init__(self, onnx: Any, planes: int, globals_: int, size: int | None, example: int):
        """Begin a graph with its inputs.

        Args:
            planes, globals_: the numbers of input planes and of global values.
            size: board size; None = dynamic.
            example: length of the board's axes in the shapes of values, if the size is dynamic.
        """
        self._onnx, self.size = onnx, size
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._names: dict[tuple[int, int], str] = {}
        """names of the networks' arrays by address and size; views of an array have the same address"""
        self._stored: dict[tuple[int, tuple[int, ...]], str] = {}
        """names of those that are in the graph, by address and shape"""
        self._kept: list[np.ndarray] = []
        """the networks' arrays, so that no other array gets their addresses"""
        side = size or example
        self.planes = Value(self, "planes", (COPIED, planes, side, side))
        self.globals = Value(self, "globals", (COPIED, globals_))
        self._side: Value | None = None

    def name_arrays(self, arrays: Iterator[tuple[str, np.ndarray]], prefix: str) -> None:
        """Set the names of a network's arrays."""
        for name, values in arrays:
            self._names[_address(values), values.size] = prefix + name
            self._kept.append(values)

    def add(self, operator: str, shape: tuple[int, ...], *inputs: Any, **attributes: Any) -> Value:
        """Add a node.

        Args:
            shape: of its result.
            inputs: values, arrays and numbers.
            attributes: ONNX's attributes of the operator.
        """
        name = f"{operator}_{len(self._nodes)}"
        names = [one.name if isinstance(one, Value) else self._constant(one) for one in inputs]
        self._nodes.append(self._onnx.helper.make_node(operator, names, [name], name, **attributes))
        return Value(self, name, shape)

    def _constant(self, given: Any) -> str:
        """The name of a constant, int64 for integers, else float32."""
        values = np.asarray(given)
        values = np.ascontiguousarray(values, np.int64 if values.dtype.kind == "i" and values.ndim else np.float32)
        key = _address(values), values.shape
        if key in self._stored:
            return self._stored[key]
        known = self._names.pop((key[0], values.size), "")
        name = known or f"constant_{len(self._constants)}"
        if known:
            self._stored[key] = name
        self._constants.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def elementwise(self, operator: str, first: Any, second: Any) -> Value:
        """A node with two inputs of shapes that fit each other."""
        return self.add(operator, np.broadcast_shapes(np.shape(first), np.shape(second)), first, second)

    def reduced(self, operator: str, value: Value, axes: Sequence[int], keepdims: bool) -> Value:
        """A node that reduces axes."""
        found = [1 if axis in axes else length for axis, length in enumerate(value.shape)]
        shape = found if keepdims else [length for axis, length in enumerate(value.shape) if axis not in axes]
        return self.add(operator, tuple(shape), value, np.array(axes), keepdims=int(keepdims))

    # Functions as numpy has them.

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """Values joined along an axis."""
        shape = list(values[0].shape)
        shape[axis] = sum(one.shape[axis] for one in values)
        return self.add("Concat", tuple(shape), *values, axis=axis)

    def stack(self, values: Sequence[Value], axis: int) -> Value:
        """Vectors [B] joined along a new axis 1."""
        assert axis == 1, axis
        return self.concat([one[:, None] for one in values], axis)

    def where(self, condition: Value, first: Any, second: Any) -> Value:
        """Items of the first value where the condition holds, else of the second one."""
        shape = np.broadcast_shapes(condition.shape, np.shape(first), np.shape(second))
        return self.add("Where", shape, condition, first, second)

    def tanh(self, value: Value) -> Value:
        """The hyperbolic tangent."""
        return self.add("Tanh", value.shape, value)

    def exp(self, value: Value) -> Value:
        """The exponential function."""
        return self.add("Exp", value.shape, value)

    def logaddexp(self, value: Value, zero: Any) -> Value:
        """log(exp(value) + exp(0))."""
        assert zero == 0, zero
        return self.add("Softplus", value.shape, value)

    def amax(self, value: Value, axis: int, keepdims: bool = False) -> Value:
        """The maximum over an axis."""
        return self.reduced("ReduceMax", value, [axis], keepdims)

    def amin(self, value: Value, axis: int, keepdims: bool = False) -> Value:
        """The minimum over an axis."""
        return self.reduced("ReduceMin", value, [axis], keepdims)

    def matmul(self, first: Value, second: Any) -> Value:
        """The product of matrices in the last two axes."""
        front = np.broadcast_shapes(first.shape[:-2], np.shape(second)[:-2])
        return self.add("MatMul", (*front, first.shape[-2], np.shape(second)[-1]), first, second)

    # Values that depend on the board size.

    def board_scale(self) -> Any:
        """:func:`engine.nets.forward.board_scale` of the board size: a number, or a value if the size is dynamic."""
        if self.size is not None:
            return board_scale(self.size)
        side = self.add("Cast", (1,), self._dynamic_side(), to=self._onnx.TensorProto.FLOAT)
        return (side - CENTRE_SIZE) / SIZE_UNIT

    def on_board(self, table: np.ndarray) -> Any:
        """The rows and columns of the board of a table[rows, columns, ...], as [N*N, ...]."""
        side = self.planes.shape[2]
        rest = table.shape[2:]
        if self.size is not None:
            return np.ascontiguousarray(table[:side, :side]).reshape(-1, *rest)
        ends = self.add("Concat", (2,), self._dynamic_side(), self._dynamic_side(), axis=0)
        part = self.add("Slice", (side, side, *rest), table, np.array([0, 0]), ends, np.array([0, 1]))
        return self.add("Reshape", (side * side, *rest), part, np.array([-1, *rest]))

    def _dynamic_side(self) -> Value:
        """int64[1]: the board size."""
        self._side = self._side or self.add("Shape", (1,), self.planes, start=2, end=3)
        return self._side

    def model(self, name: str, heads: dict[str, Value], facts: dict[str, str]) -> Any:
        """The model with these outputs and this metadata."""
        helper, size = self._onnx.helper, self.size or "size"
        moves = "size*size+1" if self.size is None else self.size**2 + 1
        sides = {"planes": self.planes.shape[1:2] + (size,) * 2, "globals": self.globals.shape[1:],
                 "policy": (moves,), "ownership": (size,) * 2}  # fmt: skip
        for output, head in heads.items():
            self._nodes.append(helper.make_node("Identity", [head.name], [output], output))

        def described(tensor: str) -> Any:
            lengths = ["batch", *sides.get(tensor, ())]
            return helper.make_tensor_value_info(
                tensor, self._onnx.TensorProto.FLOAT, lengths, doc_string=DESCRIPTIONS[tensor]
            )

        inputs = ["planes"] + ["globals"] * bool(self.globals.shape[1])
        graph = helper.make_graph(
            self._nodes, name, [described(one) for one in inputs], [described(one) for one in heads], self._constants
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="keima",
            producer_version=__version__,
        )  # fmt: skip
        helper.set_model_props(model, {f"keima.{key}": text for key, text in facts.items()})
        return model


def _address(values: np.ndarray) -> int:
    return int(values.__array_interface__["data"][0])


class OnnxForward(EagerForward):
    """The forward pass as nodes of a graph."""

    def __init__(self, graph: Graph, planes: Value):
        super().__init__(planes, graph.globals)
        self._graph = graph

    def apply(self, part: Any, source: Any) -> Any:
        """See :meth:`engine.nets.forward.Forward.apply`."""
        if type(part) not in PARTS:
            raise Unwritable(type(part).__name__)
        source.value = PARTS[type(part)](part, source.value)
        return source

    def _convolved(self, layer: Convolution, x: Value) -> Value:
        sides = layer.weight.shape[2:]
        reach = [step * (side // 2) for step, side in zip(layer.dilation, sides, strict=True)]
        inputs = (x, layer.weight) if layer.bias is None else (x, layer.weight, layer.bias)
        return self._graph.add(
            "Conv", (COPIED, len(layer.weight), *x.shape[2:]), *inputs, kernel_shape=list(sides), pads=reach * 2,
            dilations=list(layer.dilation),
        )  # fmt: skip

    def _multiplied(self, weight: np.ndarray, shift: np.ndarray | None, x: Value) -> Value:
        if not x.shape[1]:
            # No global values: runtimes differ in products without terms.
            x, weight = self._graph.planes[:, :1, 0, 0], np.zeros((len(weight), 1), np.float32)
        inputs = (x, weight) if shift is None else (x, weight, shift)
        return self._graph.add("Gemm", (COPIED, len(weight)), *inputs, transB=1)

    def _pooled(self, x: Value, by_size: bool) -> Value:
        mean, scale = x.mean((2, 3)), self._graph.board_scale()
        last = mean * (scale * scale - MEAN_SQUARE) if by_size else self._graph.reduced("ReduceMax", x, (2, 3), False)
        return self._graph.concat([mean, mean * scale, last], axis=1)

    def _activated(self, x: Value, activation: int) -> Value:
        if activation == SILU:
            return x * self._graph.add("Sigmoid", x.shape, x)
        operator = {RELU: "Relu", MISH: "Mish"}.get(activation)
        return self._graph.add(operator, x.shape, x) if operator else x


# Layers that only torch computes otherwise: their formulas are those of ``by_torch``.


def _normalised(part: RmsNorm, x: Value) -> Value:
    """:meth:`engine.nets.katago.blocks.RmsNorm.by_torch`."""
    return x / _rms(x, part.dims, part.epsilon)


def _rms(x: Value, axes: Sequence[int], epsilon: float) -> Value:
    """Root mean square over some axes, kept with length 1."""
    mean = (x * x).mean(axes, keepdims=True) + epsilon
    return x.graph.add("Sqrt", mean.shape, mean)


def _transformed(change: Callable[[Any, Value], Value]) -> Callable[[Any, Value], Value]:
    """:meth:`engine.nets.katago.blocks.TokenBlock.by_torch` with this change of the tokens."""

    def transformed(part: TokenBlock, x: Value) -> Value:
        tokens = x.reshape(COPIED, COPIED, -1).permuted(0, 2, 1)
        changed = change(part, tokens / _rms(tokens, (2,), part.epsilon)).permuted(0, 2, 1)
        return x + x.graph.add("Reshape", x.shape, changed, x.graph.add("Shape", (4,), x))

    return transformed


def _by_matrix(layer: Linear, tokens: Value) -> Value:
    """A linear layer of tokens [B, N*N, C]."""
    return tokens.graph.matmul(tokens, layer.weight.T)


def _fed_forward(part: FeedForwardBlock, tokens: Value) -> Value:
    """:meth:`engine.nets.katago.blocks.FeedForwardBlock.change`."""
    both, width = _by_matrix(part.into, tokens), len(part.into.weight) // 2
    hidden, gate = both[:, :, :width], both[:, :, width:]
    return _by_matrix(part.out, hidden * tokens.graph.add("Sigmoid", hidden.shape, hidden) * gate)


def _attended(part: AttentionBlock, tokens: Value) -> Value:
    """:meth:`engine.nets.katago.blocks.AttentionBlock.change`; a key head serves a group of query heads."""
    graph, matching, group = tokens.graph, part.heads + part.key_heads, part.heads // part.key_heads
    both = _by_matrix(part.into, tokens)
    matched = both[:, :, : matching * part.width].reshape(COPIED, COPIED, matching, part.width)
    value = both[:, :, matching * part.width :].reshape(COPIED, COPIED, part.key_heads, part.value_width)
    if part.is_rotated:
        cosine, sine = (graph.on_board(table) for table in (part.cosine, part.sine))
        first, second = matched[..., : part.width // 2], matched[..., part.width // 2 :]
        matched = graph.concat([first * cosine - second * sine, first * sine + second * cosine], axis=3)
    query = matched[:, :, : part.heads].permuted(0, 2, 1, 3)
    query = query.reshape(COPIED, part.key_heads, group, -1, part.width)
    key = matched[:, :, part.heads :].permuted(0, 2, 3, 1)[:, :, None]
    likeness = graph.matmul(query, key) * (1.0 / math.sqrt(part.width))
    weights = graph.add("Softmax", likeness.shape, likeness, axis=-1)
    seen = graph.matmul(weights, value.permuted(0, 2, 1, 3)[:, :, None])
    seen = seen.reshape(COPIED, part.heads, -1, part.value_width).permuted(0, 2, 1, 3)
    return _by_matrix(part.out, seen.reshape(COPIED, COPIED, part.heads * part.value_width))


PARTS: dict[type, Callable[[Any, Value], Value]] = {
    RmsNorm: _normalised,
    FeedForwardBlock: _transformed(_fed_forward),
    AttentionBlock: _transformed(_attended),
}
"""How parts that torch computes otherwise are written"""
