"""The encoder contract and the registry of encoders.

An encoder turns a :class:`engine.go.position.Position` into planes and global values for the side to move. It
writes into the caller's arrays, in the caller's thread.

Kernels that take functions as arguments cannot be cached on disk. So the type of the working memory selects the
encoder: a kernel that calls :func:`encode` or :func:`key` is compiled for the type of the scratch it is given. A new
encoder is a class for its scratch, two kernels and a call of :func:`register`.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from engine.config.profiles import read_profile
from engine.features import alphago, history, katago, keima, profiles
from engine.go.board import META_SIZE
from engine.go.geometry import on_board_points
from engine.go.position import META_TO_MOVE, Position, legal_moves, new_position, play_move
from engine.nets.files.header import PROFILE_VALUES, katago_encoder
from engine.system.jit import KERNEL_OPTIONS, kernel


class Encoder(NamedTuple):
    """A network's input format: name, shapes, and which rules it distinguishes."""

    name: str
    """name in network files"""
    planes: int
    """C: number of planes, each N x N"""
    globals: int
    """G: number of values for the whole board"""
    new_scratch: Callable[..., NamedTuple]
    """makes working memory for a board size, the only argument; each thread needs its own"""
    rules: str = "those of its training games"
    """help text: the rules that networks with this input distinguish"""
    komi: float | None = None
    """the only komi, in points for White, that networks with this input know; None = any, or unknown"""
    counts_beside_atari: bool = True
    """False = in training, untaxed territory beside an own chain in atari did not count:
    :func:`engine.go.position.count_none_beside_atari`"""
    knows_profiles: bool = False
    """whether a human profile is among the inputs (:func:`with_profile`)"""
    plane_names: tuple[str, ...] = ()
    """names of the planes, for people and programs; empty = they have none"""
    global_names: tuple[str, ...] = ()
    """names of the global values; empty = they have none"""


class _Kernels(NamedTuple):
    """An encoder's kernels, which the type of its scratch selects."""

    encode: Any
    """``encode(position, symmetry, scratch, planes, globals_)``"""
    key: Any
    """``key(position, scratch)``: uint64 hash of everything ``encode`` reads"""


_KERNELS: dict[type, _Kernels] = {}
ENCODERS: dict[str, Encoder] = {}
"""Every encoder by its name in network files"""


def register(encoder: Encoder, scratch: type, encode: Any, key: Any) -> Encoder:
    """Add an encoder to the registry.

    Args:
        encoder: with a name that is not registered.
        scratch: NamedTuple of arrays, the return type of ``encoder.new_scratch``.
        encode, key: kernels; see :class:`_Kernels`.
    Raises:
        ValueError: the name is registered already, or the scratch type is, with other kernels.
    """
    if encoder.name in ENCODERS or _KERNELS.get(scratch, _Kernels(encode, key)) != _Kernels(encode, key):
        raise ValueError(f"encoder {encoder.name!r} or its scratch {scratch.__name__} is known already")
    _KERNELS[scratch] = _Kernels(encode, key)
    ENCODERS[encoder.name] = encoder
    return encoder


def encode(position: Any, symmetry: int, scratch: NamedTuple, planes: np.ndarray, globals_: np.ndarray) -> None:
    """Write a position's planes and globals for the side to move. Threads: any, each with its own scratch.

    Args:
        position: :class:`engine.go.position.Position`, only read.
        symmetry: 0 to 7 as in :mod:`engine.features.symmetry`; the planes show the board under it.
        scratch: the encoder's ``new_scratch``, for boards of this size.
        planes: float32[C, N, N], overwritten.
        globals_: float32[G], overwritten.
    """
    _KERNELS[type(scratch)].encode(position, symmetry, scratch, planes, globals_)


def kernel_of(scratch: NamedTuple) -> Any:
    """The kernel that :func:`encode` calls for a scratch: ``encode`` of the scratch's encoder."""
    return _KERNELS[type(scratch)].encode


def key(position: Any, scratch: NamedTuple) -> int:
    """uint64 hash of everything the scratch's encoder reads of a position; part of :func:`cache_key`."""
    word: int = _KERNELS[type(scratch)].key(position, scratch)
    return word


@overload(encode, jit_options=KERNEL_OPTIONS, strict=True)
def _encode_in_kernels(position: Any, symmetry: Any, scratch: Any, planes: Any, globals_: Any) -> Callable[..., None]:
    # Numba requires equal signatures.
    chosen = _KERNELS[scratch.instance_class].encode

    def implementation(position: Any, symmetry: Any, scratch: Any, planes: Any, globals_: Any) -> None:
        chosen(position, symmetry, scratch, planes, globals_)

    return implementation


@overload(key, jit_options=KERNEL_OPTIONS, strict=True)
def _key_in_kernels(position: Any, scratch: Any) -> Callable[..., Any]:
    chosen = _KERNELS[scratch.instance_class].key

    def implementation(position: Any, scratch: Any) -> Any:
        return chosen(position, scratch)

    return implementation


@kernel
def cache_key(position: Any, scratch: Any) -> Any:
    """uint64: key of a position in the result cache, from the encoder's :func:`key` and the board size."""
    return key(position, scratch) + np.uint64(position.board.meta[META_SIZE]) * np.uint64(0xD1B54A32D192ED03)


class KeyScratch(NamedTuple):
    """Scratch of the encoder ``key``: it holds no working memory, and its type selects the kernels."""

    unused: np.ndarray = np.zeros(1)
    """float64[1], never read"""


@kernel
def _encode_key(position: Any, symmetry: Any, scratch: KeyScratch, planes: Any, globals_: Any) -> None:
    """Write the position's key, scaled to the range -1 to 1, as the only global value."""
    globals_[0] = (history.key(position, scratch) >> np.uint64(40)) / 8388608.0 - 1.0


ANY_RULES = "any: komi, scoring, ko, suicide, taxes are inputs"
KEIMA = register(
    Encoder("keima-2", keima.PLANES, keima.GLOBALS, keima.new_scratch, ANY_RULES,
            plane_names=keima.PLANE_NAMES, global_names=keima.GLOBAL_NAMES),
    keima.KeimaScratch, keima.encode, keima.key,
)  # fmt: skip
KEIMA_1 = register(
    Encoder("keima-1", keima.PLANES, keima.GLOBALS_1, keima.new_scratch, ANY_RULES,
            plane_names=keima.PLANE_NAMES, global_names=keima.GLOBAL_NAMES[: keima.GLOBALS_1]),
    keima.KeimaScratch, keima.encode, keima.key,
)  # fmt: skip
ALPHAGO_POLICY = register(
    Encoder("alphago-48", alphago.POLICY_PLANES, 0, alphago.new_scratch,
            plane_names=alphago.PLANE_NAMES[: alphago.POLICY_PLANES]),
    alphago.AlphaGoScratch, alphago.encode, alphago.key,
)  # fmt: skip
ALPHAGO_VALUE = register(
    Encoder("alphago-49", alphago.VALUE_PLANES, 0, alphago.new_scratch, plane_names=alphago.PLANE_NAMES),
    alphago.AlphaGoScratch, alphago.encode, alphago.key,
)  # fmt: skip
ZERO = register(
    Encoder("zero-17", history.PLANES, 0, lambda size: history.HistoryScratch(), plane_names=history.PLANE_NAMES),
    history.HistoryScratch, history.encode, history.key,
)  # fmt: skip
LEELA = register(
    Encoder("leela-18", history.LEELA_PLANES, 0, lambda size: history.HistoryScratch(),
            "area scoring, komi 7.5, positional superko, no suicide; no others", komi=7.5,
            plane_names=history.LEELA_PLANE_NAMES),
    history.HistoryScratch, history.encode, history.key,
)  # fmt: skip


def _katago(is_human: bool, suicide_areas: bool, without_atari: bool) -> Encoder:
    """Register one of the variants of KataGo's input; arguments as for :func:`katago_encoder`."""
    rules = "any: komi, scoring, ko, suicide, taxes, button are inputs"
    if without_atari:
        rules += "; untaxed territory does not count beside an own chain in atari"
    profile = profiles.DEFAULT_PROFILE if is_human else ""
    encoder = Encoder(
        katago_encoder(is_human, suicide_areas, without_atari), katago.PLANES,
        katago.GLOBALS + PROFILE_VALUES * is_human,
        partial(katago.new_scratch, suicide_areas=suicide_areas, profile=profile), rules,
        counts_beside_atari=not without_atari, knows_profiles=is_human, plane_names=katago.PLANE_NAMES,
        global_names=katago.GLOBAL_NAMES + katago.PROFILE_NAMES * is_human,
    )  # fmt: skip
    return register(encoder, katago.KatagoScratch, katago.encode, katago.key)


for _variant in product((False, True), repeat=3):
    _katago(*_variant)
KATAGO, KATAGO_ATARI, KATAGO_SUICIDE, KATAGO_SUICIDE_ATARI = (
    ENCODERS[katago_encoder(False, *variant)] for variant in product((False, True), repeat=2)
)
"""Inputs of networks without a human profile. ATARI: of those trained under version 3 of KataGo's rules, which counts
differently. SUICIDE: of those trained with pass-alive areas computed as if suicide were legal under all rules"""


def with_profile(encoder: Encoder, profile: str) -> Encoder:
    """The encoder with another human profile than the default one; with an empty profile the encoder itself.

    Raises:
        ValueError: no such profile, or the encoder's networks know none; one line.
    """
    if not profile:
        return encoder
    read_profile(profile)
    if not encoder.knows_profiles:
        raise ValueError(f"human profile {profile}: the network knows none, expected one of KataGo's of human play")
    return encoder._replace(new_scratch=partial(encoder.new_scratch, profile=profile))


KEY = Encoder("key", 0, 1, lambda size: KeyScratch())
"""Encoder without planes and with a hash as global value, to measure searches without a network. It is not registered,
so that no network file can name it."""
_KERNELS[KeyScratch] = _Kernels(_encode_key, history.key)


def encoder_named(name: str) -> Encoder:
    """The registered encoder of a name.

    Raises:
        ValueError: no such encoder; one line.
    """
    if name not in ENCODERS:
        raise ValueError(f"unknown encoder {name!r}, known are {', '.join(ENCODERS)}")
    return ENCODERS[name]


def encode_all(
    positions: Sequence[Position], symmetry: int, scratch: NamedTuple, planes: np.ndarray, globals_: np.ndarray
) -> None:
    """As :func:`encode`, for positions on boards of one size: planes float32[B, C, N, N] and globals_ float32[B, G]."""
    for row, position in enumerate(positions):
        encode(position, symmetry, scratch, planes[row], globals_[row])


def inputs(
    encoder: Encoder, positions: Sequence[Position], symmetry: int = 0, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Encode positions on boards of one size.

    Args:
        positions: one or more, only read; ``symmetry`` as for :func:`encode`.
        threads: maximum number of threads, each for at least ``SHARE`` positions.
    Returns:
        planes float32[B, C, N, N] and globals float32[B, G].
    """
    size, count = int(positions[0].board.meta[META_SIZE]), len(positions)
    planes = np.zeros((count, encoder.planes, size, size), np.float32)
    globals_ = np.zeros((count, encoder.globals), np.float32)
    share = max(SHARE, -(-count // threads))

    def write(first: int) -> None:
        part = slice(first, first + share)
        encode_all(positions[part], symmetry, encoder.new_scratch(size), planes[part], globals_[part])

    if count <= share:
        write(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(write, range(0, count, share)))
    return planes, globals_


SHARE = 16
"""Fewest positions for which :func:`inputs` starts a thread"""
STONES = (0.0, 0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Number of moves before each sample position, as a share of the board's number of points"""
SEED = 1


def sample_inputs(encoder: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Planes and globals of positions from one fixed game of random legal moves.

    Args:
        encoder: a name in ``ENCODERS``.
    Returns:
        float32[8, C, N, N] and float32[8, G].
    Raises:
        ValueError: no such encoder.
    """
    chosen, rng = encoder_named(encoder), np.random.default_rng(SEED)
    planes = np.zeros((len(STONES), chosen.planes, size, size), np.float32)
    globals_ = np.zeros((len(STONES), chosen.globals), np.float32)
    position, scratch = new_position(size), chosen.new_scratch(size)
    points, legal = on_board_points(size), np.zeros(size * size + 1, np.uint8)
    played = 0
    for row, share in enumerate(STONES):
        while played < round(share * size * size):
            legal_moves(position, position.meta[META_TO_MOVE], legal)
            here = np.flatnonzero(legal[:-1])
            play_move(position, int(points[rng.choice(here)]) if len(here) else 0, position.meta[META_TO_MOVE])
            played += 1
        encode(position, 0, scratch, planes[row], globals_[row])
    return planes, globals_
