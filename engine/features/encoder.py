"""The encoder contract and the registry of encoders.

An encoder turns a :class:`engine.go.position.Position` into planes and global values for the side to move. It
writes into the caller's arrays, in the caller's thread.

Kernels cannot take functions as arguments and stay cached on disk. So the type of the working memory selects the
encoder: a kernel that calls :func:`encode` or :func:`key` is compiled for the scratch it is given, and for no other
encoder. A new encoder is a class for its scratch, two kernels and a call of :func:`register`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from engine.features import alphago, history, katago, keima
from engine.go.board import META_SIZE
from engine.go.geometry import on_board_points
from engine.go.position import META_TO_MOVE, legal_moves, new_position, play_move
from engine.system.jit import KERNEL_OPTIONS, kernel


class Encoder(NamedTuple):
    """What a network reads: its name in files, shapes, and what its planes know of the rules."""

    name: str
    """as network files give it"""
    planes: int
    """C: planes of size N x N"""
    globals: int
    """G: values that are not about points"""
    new_scratch: Callable[[int], NamedTuple]
    """from a board size to working memory; one per thread"""
    rules: str = "those of its training games"
    """for people: what a network that reads it knows of the rules in force"""
    komi: float | None = None
    """the only one that such networks evaluate for, where that is known; White's points"""
    counts_beside_atari: bool = True
    """False = games are counted by :func:`engine.go.position.count_none_beside_atari`"""


class _Kernels(NamedTuple):
    """What a scratch's type stands for."""

    encode: Any
    """``encode(position, symmetry, scratch, planes, globals_)``"""
    key: Any
    """``key(position)``: uint64 that covers all that ``encode`` reads"""


_KERNELS: dict[type, _Kernels] = {}
ENCODERS: dict[str, Encoder] = {}
"""Every encoder by the name that network files give"""


def register(encoder: Encoder, scratch: type, encode: Any, key: Any) -> Encoder:
    """Make an encoder known.

    Args:
        encoder: under a name of its own.
        scratch: NamedTuple of arrays, what ``encoder.new_scratch`` returns and no other encoder uses for other kernels.
        encode, key: kernels; see :class:`_Kernels`.
    Raises:
        ValueError: the name, or the scratch for other kernels, is taken.
    """
    if encoder.name in ENCODERS or _KERNELS.get(scratch, _Kernels(encode, key)) != _Kernels(encode, key):
        raise ValueError(f"encoder {encoder.name!r} or its scratch {scratch.__name__} is known already")
    _KERNELS[scratch] = _Kernels(encode, key)
    ENCODERS[encoder.name] = encoder
    return encoder


def encode(position: Any, symmetry: int, scratch: NamedTuple, planes: np.ndarray, globals_: np.ndarray) -> None:
    """Write a position's input for the side to move. Threads: any, each with a scratch of its own.

    Args:
        position: :class:`engine.go.position.Position`, only read.
        symmetry: 0 to 7 as in :mod:`engine.features.symmetry`; the planes show the board under it.
        scratch: the encoder's ``new_scratch``, for boards of this size.
        planes: float32[C, N, N], overwritten.
        globals_: float32[G], overwritten.
    """
    _KERNELS[type(scratch)].encode(position, symmetry, scratch, planes, globals_)


def kernel_of(scratch: NamedTuple) -> Any:
    """The kernel behind :func:`encode` for an encoder's scratch."""
    return _KERNELS[type(scratch)].encode


def key(position: Any, scratch: NamedTuple) -> int:
    """uint64 that covers everything the scratch's encoder reads of a position: a part of the result cache's key."""
    word: int = _KERNELS[type(scratch)].key(position)
    return word


@overload(encode, jit_options=KERNEL_OPTIONS, strict=True)
def _encode_in_kernels(position: Any, symmetry: Any, scratch: Any, planes: Any, globals_: Any) -> Callable[..., None]:
    # Numba wants both signatures alike.
    chosen = _KERNELS[scratch.instance_class].encode

    def implementation(position: Any, symmetry: Any, scratch: Any, planes: Any, globals_: Any) -> None:
        chosen(position, symmetry, scratch, planes, globals_)

    return implementation


@overload(key, jit_options=KERNEL_OPTIONS, strict=True)
def _key_in_kernels(position: Any, scratch: Any) -> Callable[..., Any]:
    chosen = _KERNELS[scratch.instance_class].key

    def implementation(position: Any, scratch: Any) -> Any:
        return chosen(position)

    return implementation


@kernel
def cache_key(position: Any, scratch: Any) -> Any:
    """uint64: the whole key of a position in the result cache, of its encoder's :func:`key` and its board's size."""
    return key(position, scratch) + np.uint64(position.board.meta[META_SIZE]) * np.uint64(0xD1B54A32D192ED03)


class KeyScratch(NamedTuple):
    """Tells the encoder ``key`` from others; nothing is read of it."""

    unused: np.ndarray = np.zeros(1)
    """float64[1], never read"""


@kernel
def _encode_key(position: Any, symmetry: Any, scratch: KeyScratch, planes: Any, globals_: Any) -> None:
    """A number from -1 to 1 made of the position's key."""
    globals_[0] = (history.key(position) >> np.uint64(40)) / 8388608.0 - 1.0


ANY_RULES = "any: komi, scoring, ko, suicide, taxes are inputs"
KEIMA = register(
    Encoder("keima-2", keima.PLANES, keima.GLOBALS, keima.new_scratch, ANY_RULES),
    keima.KeimaScratch, keima.encode, keima.key,
)  # fmt: skip
KEIMA_1 = register(
    Encoder("keima-1", keima.PLANES, keima.GLOBALS_1, keima.new_scratch, ANY_RULES),
    keima.KeimaScratch, keima.encode, keima.key,
)  # fmt: skip
ALPHAGO_POLICY = register(
    Encoder("alphago-48", alphago.POLICY_PLANES, 0, alphago.new_scratch),
    alphago.AlphaGoScratch, alphago.encode, alphago.key,
)  # fmt: skip
ALPHAGO_VALUE = register(
    Encoder("alphago-49", alphago.VALUE_PLANES, 0, alphago.new_scratch),
    alphago.AlphaGoScratch, alphago.encode, alphago.key,
)  # fmt: skip
ZERO = register(
    Encoder("zero-17", history.PLANES, 0, lambda size: history.ZeroScratch()),
    history.ZeroScratch, history.encode, history.key,
)  # fmt: skip
LEELA = register(
    Encoder("leela-18", history.LEELA_PLANES, 0, lambda size: history.LeelaScratch(),
            "area scoring, komi 7.5, positional superko, no suicide; no others", komi=7.5),
    history.LeelaScratch, history.encode_leela, history.key,
)  # fmt: skip
KATAGO_RULES = "any: komi, scoring, ko, suicide, taxes, button are inputs"
KATAGO = register(
    Encoder("katago-v7", katago.PLANES, katago.GLOBALS, katago.new_scratch, KATAGO_RULES),
    katago.KatagoScratch, katago.encode, katago.key,
)  # fmt: skip
KATAGO_SUICIDE = register(
    Encoder("katago-v7-suicide", katago.PLANES, katago.GLOBALS, katago.new_suicide_scratch, KATAGO_RULES),
    katago.KatagoSuicideScratch, katago.encode_suicide, katago.key,
)  # fmt: skip
"""For KataGo's networks that want areas as if suicide were always legal"""
KATAGO_3_RULES = f"{KATAGO_RULES}; untaxed territory does not count beside an own chain in atari"
KATAGO_ATARI = register(
    KATAGO._replace(name="katago-v7-atari", rules=KATAGO_3_RULES, counts_beside_atari=False),
    katago.KatagoScratch, katago.encode, katago.key,
)  # fmt: skip
KATAGO_SUICIDE_ATARI = register(
    KATAGO_SUICIDE._replace(name="katago-v7-suicide-atari", rules=KATAGO_3_RULES, counts_beside_atari=False),
    katago.KatagoSuicideScratch, katago.encode_suicide, katago.key,
)  # fmt: skip
"""The same two for networks of version 3 of KataGo's rules, which count otherwise and are shown the same"""
KEY = Encoder("key", 0, 1, lambda size: KeyScratch())
"""No planes, and a number that says nothing: to measure searches without a network. No file may ask for it."""
_KERNELS[KeyScratch] = _Kernels(_encode_key, history.key)


STONES = (0.0, 0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Moves played, as shares of the board's points"""
SEED = 1


def sample_inputs(encoder: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Planes and globals of positions from one game of random legal moves, always the same.

    Args:
        encoder: a name in ``ENCODERS``.
    Returns:
        float32[8, C, N, N] and float32[8, G].
    Raises:
        ValueError: no such encoder.
    """
    if encoder not in ENCODERS:
        raise ValueError(f"unknown encoder {encoder!r}, known are {', '.join(ENCODERS)}")
    chosen, rng = ENCODERS[encoder], np.random.default_rng(SEED)
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
