"""Loading networks onto devices, and comparing their outputs with a reference.

The reference is the plain float32 forward pass on the CPU (:class:`Reference`). Devices differ from it by folded
normalisation, Winograd's convolutions, the order of sums, and fewer bits.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engine.nets.compute.by_program import HAS_MATRIX_UNIT, ProgramNetwork
from engine.nets.compute.simd import FEATURES
from engine.nets.compute.winograd import tile_side
from engine.nets.devices import auto_device, checked_device, imported_torch
from engine.nets.files.read import POLICY_PLANES, pair_spec, read_network
from engine.nets.forward import NumpyForward, Unwritable
from engine.nets.layers import named_arrays
from engine.nets.network import (
    HEADS,
    Heads,
    NetArrays,
    Network,
    NetworkSpec,
    PlainNetwork,
    activated,
    differences,
    excess,
    in_units,
)
from engine.nets.notices import say_once
from engine.system import jit
from weights import NetworkPath, files_of


class AlphaGoPair:
    """AlphaGo's policy network and value network behind one Network interface."""

    def __init__(self, policy: Any, value: Any):
        """Join two networks on one device.

        Raises:
            ValueError: as for :func:`pair_spec`.
        """
        self.spec = pair_spec(policy.spec, value.spec)
        self.device, self.batches_requests = policy.device, policy.batches_requests
        self._policy, self._value = policy, value

    def evaluate(self, planes: np.ndarray, globals_: np.ndarray) -> NetArrays:
        """See :meth:`engine.nets.network.Network.evaluate`; planes are those of the value network's encoder."""
        policy = self._policy.evaluate(planes[:, :POLICY_PLANES], globals_).policy
        return NetArrays(policy, self._value.evaluate(planes, globals_).value)

    def evaluate_tensors(self, planes: Any, globals_: Any) -> Heads[Any]:
        """As :meth:`evaluate`, by two networks of torch for tensors on their device."""
        policy = self._policy.evaluate_tensors(planes[:, :POLICY_PLANES], globals_).policy
        return Heads(policy, self._value.evaluate_tensors(planes, globals_).value)


class Reference:
    """A network's exact outputs: by numpy in float32, or by torch on the CPU if only torch computes its layers."""

    def __init__(self, network: PlainNetwork):
        self._network = network
        self._model: Any = None
        """the network as a model of torch, once it is needed"""

    def outputs(self, planes: np.ndarray, globals_: np.ndarray) -> dict[str, np.ndarray]:
        """What the network describes (:meth:`engine.nets.network.PlainNetwork.describe`), by name.

        Args:
            planes: float32[B, C, N, N]; ``globals_`` float32[B, G].
        """
        if self._model is None:
            forward = NumpyForward(planes, globals_)
            with suppress(Unwritable):
                self._network.describe(forward)
                return forward.outputs
        return self._by_torch(planes, globals_)

    def __call__(self, planes: np.ndarray, globals_: np.ndarray) -> NetArrays:
        """The network's outputs; arguments as for :meth:`outputs`."""
        return activated(self._network.heads_of(self.outputs(planes, globals_), planes, globals_))

    def _by_torch(self, planes: np.ndarray, globals_: np.ndarray) -> dict[str, np.ndarray]:
        torch = imported_torch("a network with attention")
        from engine.nets.model import model_of

        self._model = self._model or model_of(self._network).eval()
        with torch.inference_mode():
            found = self._model.outputs(torch.from_numpy(planes), torch.from_numpy(globals_))
        return {name: values.numpy() for name, values in found.items()}


Samples = Callable[[str, int], tuple[np.ndarray, np.ndarray]]
"""Function from an encoder's name and a board size to planes and globals of some positions"""


def load_network(
    path: NetworkPath, device: str = "auto", samples: Samples | None = None, reduced: bool | None = None
) -> Network:
    """Read a network file and load it onto a device.

    Args:
        path: a file, or the files of AlphaGo's policy network and value network, which are joined.
        device: ``auto`` (CUDA if available, else the CPU), or torch's name of a device.
        samples: positions for a comparison with the reference (:class:`Reference`). A network that differs too much in
            16 bits runs in 32, and one that a device computes wrongly runs on the CPU, each with a line on standard
            error.
        reduced: as for :func:`network_on`.
    Raises:
        ValueError: one line that names the file or the device and what was expected.
    """
    files = files_of(path)
    if len(files) > 1:
        first, second = (load_network(one, device, samples, reduced) for one in files)
        if first.device != second.device:
            # One of them is computed wrongly there; the two are evaluated together.
            first, second = (load_network(one, "cpu", samples, reduced) for one in files)
        return AlphaGoPair(first, second)
    network, spec, _ = read_network(files[0])
    chosen = auto_device(has_mps=False) if device == "auto" else checked_device(device)
    return checked(network, spec, chosen, samples, reduced)


def network_on(
    network: PlainNetwork, spec: NetworkSpec, device: str, reduced: bool | None = None, by_program: bool = True
) -> Any:
    """A network on a device: on the CPU as programs if they support its layers, else by torch.

    Args:
        reduced: 16 bits, which only torch computes; None = if they are faster on the device.
        by_program: False = torch alone.
    """
    prefers_torch = reduced or (reduced is None and HAS_MATRIX_UNIT and _has_torch())
    if device == "cpu" and by_program and not prefers_torch:
        with suppress(Unwritable):
            return ProgramNetwork(network, spec)
    imported_torch(f"network {spec.name} on {device}")
    from engine.nets.compute.by_torch import TorchNetwork

    return TorchNetwork(network, spec, device, reduced)


def _has_torch() -> bool:
    """Whether torch can be imported."""
    with suppress(ValueError):
        imported_torch("a matrix unit")
        return True
    return False


def checked(
    network: PlainNetwork, spec: NetworkSpec, device: str, samples: Samples | None, reduced: bool | None = None
) -> Any:
    """The network on a device, in 16 bits if they are faster and precise enough; on the CPU if only that is correct.

    Args:
        samples: positions to compare on (:func:`load_network`); None = no comparison.
        reduced: as for :func:`network_on`.
    """
    made = network_on(network, spec, device, reduced)
    if samples is None or _is_exact(made):
        return made
    if isinstance(made, ProgramNetwork):
        return _checked_program(made, network, samples)
    reference, largest = Reference(network), samples(spec.encoder, spec.max_size)
    if made.dtype != "float32":
        if not (wrong := _excess(made, reference, *largest)):
            return made
        say_once(f"network {spec.name} runs in float32: in {made.dtype} {wrong}")
        return checked(network, spec, device, samples, reduced=False)
    # Errors in float32 show in every position: one is enough.
    if not (wrong := _excess(made, reference, *(part[-1:] for part in largest))):
        return made
    say_once(f"network {spec.name} runs on the CPU: {device} computes it wrongly, {wrong}")
    return checked(network, spec, "cpu", samples)


def _checked_program(made: ProgramNetwork, network: PlainNetwork, samples: Samples) -> Any:
    """A network's programs if they are correct, else the network by torch; programs found correct are remembered."""
    spec, mark = made.spec, _mark_of(made, network)
    if mark is not None and mark.exists():
        with suppress(OSError):
            mark.touch()
        return made
    reference = Reference(network)
    for size in (spec.max_size, *_of_other_tiles(spec)):
        if wrong := _excess(made, reference, *(part[-1:] for part in samples(spec.encoder, size))):
            say_once(f"network {spec.name} runs slowly: our own kernels compute it wrongly here, {wrong}")
            return network_on(network, spec, "cpu", reduced=False, by_program=False)
    if mark is not None:
        with suppress(OSError):
            mark.parent.mkdir(exist_ok=True)
            mark.touch()
    # Without the programs of the comparison, of which a game may need one alone.
    return ProgramNetwork(network, spec)


def _is_exact(network: Any) -> bool:
    """Whether torch computes a network on the CPU in float32, which needs no comparison."""
    return network.device == "cpu" and network.dtype == "float32" and not isinstance(network, ProgramNetwork)


def _mark_of(made: ProgramNetwork, network: PlainNetwork) -> Path | None:
    """The file that marks a network's programs as correct, for these weights, kernels and this processor; None = no
    folder can be written."""
    if jit.FOLDER is None:
        return None
    digest = hashlib.sha256(
        f"{jit.FOLDER.name} {FEATURES} {made.spec.encoder} {made.spec.sizes} {network.shape}".encode()
    )
    digest.update(made.lines().tobytes())
    for name, values in named_arrays(network):
        digest.update(name.encode())
        digest.update(values.data)
    return jit.FOLDER.parent / jit.RESULTS / f"correct-{digest.hexdigest()[:16]}"


def _of_other_tiles(spec: NetworkSpec) -> list[int]:
    """The largest board size with another Winograd tile size than ``max_size``, in a list; empty if there is none."""
    sizes = range(spec.max_size, spec.min_size - 1, -1)
    return [size for size in sizes if tile_side(size) != tile_side(spec.max_size)][:1]


def _excess(network: Network, reference: Reference, planes: np.ndarray, globals_: np.ndarray) -> str:
    """Text for the differences between a network on its device and the reference; empty if it is close enough."""
    return excess(reference(planes, globals_), network.evaluate(planes, globals_))


SMALL = 9
"""Board size on which outputs are compared, besides the largest"""


class Check(NamedTuple):
    """The comparison of one device and dtype with the reference."""

    device: str
    dtype: str
    plays: bool
    """whether the engine plays with this dtype on the device"""
    errors: dict[str, float]
    """largest differences by unit: win rate, policy (probability), score (points), ownership (-1 to 1)"""
    limits: dict[str, float]

    @property
    def is_close(self) -> bool:
        """Whether all differences are within their limits."""
        return all(error <= self.limits[head] for head, error in self.errors.items())


def verify(network: PlainNetwork, spec: NetworkSpec, devices: Sequence[str], samples: Samples) -> Iterator[Check]:
    """Compare a network on every device, in 32 and in 16 bits, with the reference.

    Args:
        samples: the positions.
    Raises:
        RuntimeError: a device failed.
    """
    inputs, reference = [samples(spec.encoder, size) for size in board_sizes(spec)], Reference(network)
    exact = [reference(*arrays) for arrays in inputs]
    for device in devices:
        playing = checked(network, spec, device, samples)
        for reduced in (False, True):
            made = network_on(network, spec, device, reduced)
            found = [made.evaluate(*arrays) for arrays in inputs]
            parts = [differences(one, other) for one, other in zip(exact, found, strict=True)]
            errors = {head: max(part[head] for part in parts) for head in parts[0]}
            limits = {head.unit: head.limit_16 if reduced else head.limit_32 for head in HEADS.values()}
            plays = (playing.device, playing.dtype) == (device, made.dtype)
            yield Check(device, made.dtype, plays, errors, limits)


def board_sizes(spec: NetworkSpec) -> list[int]:
    """The board sizes to compare: the largest, and a small one if the network plays it."""
    return sorted({spec.max_size, max(spec.min_size, min(SMALL, spec.max_size))})


def symmetry_spread(network: PlainNetwork, spec: NetworkSpec, samples: Samples) -> dict[str, float]:
    """Standard deviation of a network's outputs over the eight symmetries, averaged over positions.

    Args:
        samples: the positions, on the largest board.
    Returns:
        dict: ``win rate`` and ``score`` (points), if the network has the heads.
    """
    (planes, globals_), reference = samples(spec.encoder, spec.max_size), Reference(network)
    views = [in_units(reference(shown, globals_)) for shown in _symmetries(planes)]
    return {
        head: float(np.stack([view[head] for view in views]).std(axis=0).mean())
        for head in ("win rate", "score")
        if head in views[0]
    }


def _symmetries(planes: np.ndarray) -> Iterator[np.ndarray]:
    """The planes [B, C, N, N] of some positions under each of the eight symmetries."""
    for one in (planes, planes.transpose(0, 1, 3, 2)):
        for axes in ((), (2,), (3,), (2, 3)):
            yield np.ascontiguousarray(np.flip(one, axes))
