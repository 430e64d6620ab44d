"""Networks: outputs of many boards at once, inputs and hidden layers as arrays, and other formats."""

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from engine.config.declaration import core_count
from engine.features.encoder import encode_all, encoder_named, inputs, sample_inputs, with_profile
from engine.features.symmetry import SYMMETRIES, symmetry_table
from engine.go.position import legal_moves
from engine.inference.server import InferenceServer
from engine.inference.slots import Request, State
from engine.nets.devices import choose_devices
from engine.nets.on_device import load_network
from keima.board import Board, checked_board
from keima.moves import BLACK, Color, Move, moves_of
from keima.perspective import Lead, Ownership, WinRate
from weights import NetworkPath, find_network

if TYPE_CHECKING:
    from engine.nets.model import Model
    from engine.nets.raw import RawNetwork

Inputs: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32]]
"""Planes float32[B, C, N, N] and global values float32[B, G]"""
MOST_ON_CPU, MOST_ON_GPU = 16, 128
"""Maximum number of boards in one request to the inference server: the first are evaluated while others are encoded"""
IN_FLIGHT = 3
"""Maximum number of requests in flight for each evaluator of the server, which bounds memory"""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a network says of one board, without a search; None = the network has no such head."""

    size: int
    """board size N"""
    to_move: Color
    """the side to move"""
    policy: NDArray[np.float32] | None
    """float32[N*N+1]: the probability of each move by policy index, the pass last; 0 for illegal moves"""
    win_rate: WinRate | None
    """each side's probability to win"""
    lead: Lead | None
    """each side's expected lead in points, komi counted"""
    ownership: Ownership | None
    """the expected owner of each point"""

    def best(self, n: int = 5) -> list[tuple[Move, float]]:
        """The likeliest legal moves with their probabilities, best first.

        Raises:
            ValueError: the network has no policy; one line.
        """
        if self.policy is None:
            raise ValueError("the network has no policy, expected one with the head 'policy'")
        moves, policy = moves_of(self.size), self.policy
        order = np.argsort(-policy, kind="stable")[: max(0, n)].tolist()
        return [(moves[index], float(policy[index])) for index in order if policy[index] > 0.0]


@dataclass(frozen=True)
class _OfSize:
    """The outputs for boards of one size, in their order."""

    policy: NDArray[np.float32] | None
    ownership_black: NDArray[np.float32] | None


class Evaluations:
    """What a network says of B boards, without a search: arrays for all of them, and by index an :class:`Evaluation`.

    Arrays are None if the network has no such head.
    """

    to_move: NDArray[np.uint8]
    """uint8[B]: the side to move, 1 = Black, 2 = White"""
    win_rate_black: NDArray[np.float32] | None
    """float32[B]: Black's probability to win, 0 to 1"""
    lead_black: NDArray[np.float32] | None
    """float32[B]: Black's expected lead in points, komi counted"""

    def __init__(self, boards: Sequence[Board], heads: Iterable[str]) -> None:
        sizes = [board.size for board in boards]
        counts = {size: sizes.count(size) for size in dict.fromkeys(sizes)}
        self.to_move = np.array([board._game.to_move for board in boards], np.uint8)
        self.win_rate_black = np.zeros(len(boards), np.float32) if "value" in heads else None
        self.lead_black = np.zeros(len(boards), np.float32) if "score" in heads else None
        self._of_size = {
            size: _OfSize(
                np.zeros((count, size * size + 1), np.float32) if "policy" in heads else None,
                np.zeros((count, size, size), np.float32) if "ownership" in heads else None,
            )
            for size, count in counts.items()
        }
        taken = dict.fromkeys(counts, 0)
        self._places: list[tuple[int, int]] = []
        for size in sizes:
            self._places.append((size, taken[size]))
            taken[size] += 1

    @property
    def policy(self) -> NDArray[np.float32] | None:
        """float32[B, N*N+1]: the probability of each move by policy index, the pass last; 0 for illegal moves.

        Raises:
            ValueError: boards of several sizes, which have no common array; one line.
        """
        return self._of_one_size("policy").policy

    @property
    def ownership_black(self) -> NDArray[np.float32] | None:
        """float32[B, N, N]: 1 = certainly Black's, -1 = certainly White's, row 0 at the top.

        Raises:
            ValueError: boards of several sizes, which have no common array; one line.
        """
        return self._of_one_size("ownership").ownership_black

    def _of_one_size(self, name: str) -> _OfSize:
        if len(self._of_size) > 1:
            sizes = ", ".join(map(str, self._of_size))
            raise ValueError(f"boards of {sizes} have no common array, expected one size, or evaluations[i].{name}")
        return next(iter(self._of_size.values()))

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"<Evaluations of {len(self)} boards>"

    def __iter__(self) -> Iterator[Evaluation]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> Evaluation:
        (size, row), to_move = self._places[index], Color(int(self.to_move[index]))
        policy, ownership = self._of_size[size].policy, self._of_size[size].ownership_black
        return Evaluation(
            size,
            to_move,
            None if policy is None else policy[row],
            None if self.win_rate_black is None else WinRate(float(self.win_rate_black[index]), to_move),
            None if self.lead_black is None else Lead(float(self.lead_black[index]), to_move),
            None if ownership is None else Ownership(ownership[row], to_move),
        )


class Network:
    """A network on a device; use it as a context manager, or call :meth:`close`. Threads: any.

    Example:
        >>> network = keima.Network()
        >>> network.evaluate(keima.Board(9)).best(1)
    """

    _close: Callable[[], object]

    def __init__(
        self, weights: "str | PathLike[str]" = "default", device: str = "auto", *, human_profile: str = ""
    ) -> None:
        """Load a network.

        Args:
            weights: the name of a shipped or downloaded network, a file of Keima, KataGo or Leela Zero, or
                ``POLICY+VALUE`` for AlphaGo's policy network and value network.
            device: ``auto`` (a GPU that torch can use, else the CPU), ``cpu``, ``cuda``, ``cuda:N`` or ``mps``; several
                GPUs separated by commas.
            human_profile: profile for KataGo's networks of human play, such as ``rank_5k``; empty = their default.
        Raises:
            ValueError: no such network, device or profile; one line.
        """
        path = find_network(fspath(weights))
        networks = [load_network(path, one, sample_inputs) for one in choose_devices(device)]
        # Before threads are started: it may be refused.
        with_profile(encoder_named(networks[0].spec.encoder), human_profile)
        server = InferenceServer(networks, reload=partial(load_network, path, samples=sample_inputs))
        self._set_up(path, server, human_profile)
        # Also if the network is dropped without being closed: the server does not refer to it.
        self._close = weakref.finalize(self, server.close)

    @classmethod
    def _of_server(cls, path: NetworkPath, server: InferenceServer, human_profile: str = "") -> Self:
        """The network of a server that another object closes."""
        network = cls.__new__(cls)
        network._set_up(path, server, human_profile)
        network._close = lambda: None
        return network

    def _set_up(self, path: NetworkPath, server: InferenceServer, human_profile: str) -> None:
        self._path, self._server, self._spec, self._human_profile = path, server, server.spec, human_profile
        self._encoder = with_profile(encoder_named(server.spec.encoder), human_profile)
        self._is_closed = False
        self._most = MOST_ON_GPU if server.batches_requests else MOST_ON_CPU
        self._spare: dict[int, list[_Slots]] = {}

    def close(self) -> None:
        """Release the network's threads and memory; a network of an engine releases nothing, but is closed too.

        A closed network raises ``ValueError`` wherever it would compute.
        """
        self._is_closed = True
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise ValueError("the network is closed")

    def __repr__(self) -> str:
        return f"Network({self.name!r}, device={self.device!r})"

    @property
    def name(self) -> str:
        """The network's name: of its file, or as its file says."""
        return self._spec.name

    @property
    def encoder(self) -> str:
        """Name of the network's encoder, such as ``keima-2``."""
        return self._encoder.name

    @property
    def sizes(self) -> tuple[int, int]:
        """Smallest and largest board."""
        return self._spec.sizes

    @property
    def heads(self) -> tuple[str, ...]:
        """The network's heads, of ``policy``, ``value``, ``score`` and ``ownership``."""
        return self._spec.heads

    @property
    def device(self) -> str:
        """The device that computes the network: ``cpu``, ``cuda:N`` or ``mps``."""
        return self._server.network.device

    @property
    def planes(self) -> tuple[str, ...]:
        """Names of the C input planes, such as ``liberties: 1``."""
        return self._encoder.plane_names or tuple(f"plane {number}" for number in range(self._encoder.planes))

    @property
    def globals(self) -> tuple[str, ...]:
        """Names of the G global values of the input, such as ``komi``."""
        return self._encoder.global_names or tuple(f"global {number}" for number in range(self._encoder.globals))

    @overload
    def evaluate(self, boards: Board, symmetry: int = 0) -> Evaluation: ...

    @overload
    def evaluate(self, boards: Iterable[Board], symmetry: int = 0) -> Evaluations: ...

    def evaluate(self, boards: Board | Iterable[Board], symmetry: int = 0) -> Evaluation | Evaluations:
        """The network's outputs for a board, or for many at once, which is many times as fast.

        Args:
            boards: a board, or any number of boards; sizes may differ.
            symmetry: 0 to 7, under which the network sees the boards (:mod:`engine.features.symmetry`); the outputs
                are turned back.
        Returns:
            an :class:`Evaluation` of a board, :class:`Evaluations` of many.
        Raises:
            ValueError: no boards, a board size that the network does not play, no such symmetry, or the network is
                closed; one line.
            RuntimeError: the network failed; one line.
        """
        self._check_open()
        given = [boards] if isinstance(boards, Board) else list(boards)
        _check(given, symmetry)
        self._spec.check_sizes(board.size for board in given)
        found, evaluators = Evaluations(given, self.heads), self._server.evaluators
        flight: deque[tuple[list[int], _Slots]] = deque()
        try:
            for part in _parts(given, evaluators, self._most):
                if len(flight) == IN_FLIGHT * evaluators:
                    self._collect(found, *flight[0], symmetry)
                    flight.popleft()
                flight.append((part, self._submitted([given[index] for index in part], symmetry)))
            while flight:
                self._collect(found, *flight[0], symmetry)
                flight.popleft()
        finally:
            # After an error or an interruption.
            for _, slots in flight:
                self._server.cancel(slots.request)
        return found[0] if isinstance(boards, Board) else found

    def _submitted(self, boards: Sequence[Board], symmetry: int) -> "_Slots":
        """Submit a request for boards of one size."""
        size, count = boards[0].size, len(boards)
        positions = [board._game.position for board in boards]
        try:
            slots = self._spare.setdefault(size, []).pop()
        except IndexError:
            request = self._server.new_request(size, self._most, self._encoder.planes, self._encoder.globals)
            legal = np.zeros((self._most, size * size + 1), np.bool_)
            slots = _Slots(request, legal, self._encoder.new_scratch(size))
        request, legal = slots.request, slots.legal
        request.state, request.count = State.FILLING, count
        encode_all(positions, symmetry, slots.scratch, request.planes, request.globals)
        self._server.submit(request)
        if "policy" in self.heads:
            # While the boards are evaluated.
            for row, position in enumerate(positions):
                legal_moves(position, boards[row]._game.to_move, legal[row])
        return slots

    def _collect(self, found: Evaluations, part: list[int], slots: "_Slots", symmetry: int) -> None:
        """Wait for a request's outputs and write them into ``found``."""
        self._server.wait(slots.request)
        _read(found, part, slots, symmetry)
        self._spare[slots.request.size].append(slots)

    def encode(self, boards: Board | Iterable[Board], symmetry: int = 0) -> Inputs:
        """As :func:`encode`, by the network's encoder, with its human profile."""
        return _encoded(boards, self.encoder, self._human_profile, symmetry)

    def trace(self, board: Board) -> dict[str, NDArray[np.float32]]:
        """The outputs of every layer for a board, computed in float32 on the CPU.

        Returns:
            float32[C, N, N] by the layer's name, in the order of computation; the first are the input planes, and
            ``blocks.0`` is the trunk after the first residual block. Layers of vectors are left out. AlphaGo's pair has
            the layers of both networks.
        Raises:
            ValueError: a board size that the network does not play; one line.
        """
        self._check_open()
        layers = self._raw.trace(*self.encode(checked_board(board))).layers
        return {name: values[0] for name, values in layers.items()}

    def module(self) -> "Model":
        """The network as a torch module on the CPU in float32, in evaluation mode, with its own copy of the weights.

        It is called with planes[B, C, N, N] and globals[B, G], as :meth:`encode` gives them, as tensors, and returns a
        named tuple of heads *before* activation: ``policy`` (logits), ``value`` and ``ownership`` (their tanh is the
        head), ``score`` (points), all from the view of the side to move.

        Raises:
            ValueError: torch is missing, or this is a pair of networks; one line.
        """
        from engine.nets.devices import imported_torch

        imported_torch("a torch module")
        from engine.nets.model import model_of

        return model_of(self._single("a torch module").networks[0]).eval()

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the network as a file of Keima, which is safetensors; an existing file is replaced.

        Raises:
            ValueError: this is a pair of networks, or one of KataGo's, which such files do not hold; one line.
            OSError: the file cannot be written.
        """
        from engine.nets.files.checkpoint import save_network

        raw = self._single("a file of Keima")
        try:
            save_network(Path(path), raw.networks[0], raw.spec, raw.records[0])
        except ValueError as error:
            raise ValueError(f"network {self.name} cannot be saved: {error}") from error

    def to_onnx(self, path: "str | PathLike[str]", size: int | None = None) -> None:
        """Write the network as an ONNX graph, which needs the package onnx; an existing file is replaced.

        Inputs are ``planes`` float32[batch, C, size, size] and, if G > 0, ``globals`` float32[batch, G], as
        :meth:`encode` gives them. Outputs are the :attr:`heads` from the view of the side to move: ``policy`` (logits,
        pass last, not masked for legality), ``value`` (-1 to 1), ``score`` (points), ``ownership`` (-1 to 1). The
        metadata has ``keima.name``, ``keima.encoder`` and ``keima.sizes``.

        Args:
            size: board size of the graph; None = dynamic, if the network plays several. The batch is always dynamic.
        Raises:
            ValueError: the package onnx is missing, or the network does not play the size; one line.
            OSError: the file cannot be written.
        """
        from engine.nets.files.onnx import save_onnx

        save_onnx(Path(path), self._raw.networks, self._raw.spec, size)

    @cached_property
    def _raw(self) -> "RawNetwork":
        """The network's own layers, read when they are first needed."""
        from engine.nets.raw import RawNetwork

        return RawNetwork(self._path)

    def _single(self, what: str) -> "RawNetwork":
        """:attr:`_raw`, of a network that is no pair."""
        if len(self._raw.networks) > 1:
            raise ValueError(f"network {self.name} is a pair, expected one network for {what}")
        return self._raw


def encode(boards: Board | Iterable[Board], encoder: str, symmetry: int = 0) -> Inputs:
    """The input planes and global values of boards, from the view of the side to move.

    Args:
        boards: a board, or boards of one size.
        encoder: name of an encoder, such as ``keima-2``, ``alphago-48``, ``zero-17``, ``leela-18`` or ``katago-v7``.
        symmetry: 0 to 7 (:mod:`engine.features.symmetry`), under which the planes show the boards.
    Returns:
        planes float32[B, C, N, N] and globals float32[B, G]; B is 1 for a single board.
    Raises:
        ValueError: no such encoder or symmetry, no boards, or boards of several sizes; one line.
    """
    return _encoded(boards, encoder, "", symmetry)


def _encoded(boards: Board | Iterable[Board], encoder: str, human_profile: str, symmetry: int) -> Inputs:
    given = [boards] if isinstance(boards, Board) else list(boards)
    _check(given, symmetry)
    if len(sizes := sorted({board.size for board in given})) > 1:
        raise ValueError(f"boards of {', '.join(map(str, sizes))} in one array, expected one size")
    chosen = with_profile(encoder_named(encoder), human_profile)
    return inputs(chosen, [board._game.position for board in given], symmetry, core_count())


def _check(boards: Sequence[Board], symmetry: int) -> None:
    if not boards:
        raise ValueError("no boards, expected one or more")
    for board in boards:
        checked_board(board)
    if symmetry not in range(SYMMETRIES):
        raise ValueError(f"symmetry is {symmetry!r}, expected 0 to {SYMMETRIES - 1}")


class _Slots(NamedTuple):
    """Memory for some boards of one size, which is used again."""

    request: Request
    legal: NDArray[np.bool_]
    """bool[capacity, N*N+1]: their legal moves"""
    scratch: NamedTuple
    """the encoder's"""


def _parts(boards: Sequence[Board], evaluators: int, most: int) -> Iterable[list[int]]:
    """Indices of boards that are evaluated together: of one size, in parts of equal length, as many for each
    evaluator."""
    by_size: dict[int, list[int]] = {}
    for index, board in enumerate(boards):
        by_size.setdefault(board.size, []).append(index)
    for indices in by_size.values():
        rounds = -(-len(indices) // (evaluators * most))
        length = -(-len(indices) // (evaluators * rounds))
        yield from (indices[first : first + length] for first in range(0, len(indices), length))


def _read(found: Evaluations, part: list[int], slots: _Slots, symmetry: int) -> None:
    """Write a request's outputs, turned back by the symmetry, for Black instead of the side to move."""
    request, size, count = slots.request, slots.request.size, len(part)
    table = symmetry_table(size)[symmetry]
    first, of_size = found._places[part[0]][1], found._of_size[size]
    sign = np.where(found.to_move[part] == BLACK, np.float32(1), np.float32(-1))
    if found.win_rate_black is not None:
        found.win_rate_black[part] = (1.0 + sign * request.value[:count]) / 2.0
    if found.lead_black is not None:
        found.lead_black[part] = sign * request.score[:count]
    if of_size.policy is not None:
        logits = np.where(slots.legal[:count], request.policy[:count, table], -np.inf)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        of_size.policy[first : first + count] = weights / weights.sum(axis=1, keepdims=True)
    if of_size.ownership_black is not None:
        home = request.ownership[:count].reshape(count, -1)[:, table[:-1]].reshape(-1, size, size)
        of_size.ownership_black[first : first + count] = sign[:, None, None] * home
