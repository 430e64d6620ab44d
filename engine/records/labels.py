"""Labels: a network's outputs for positions of games, read and written as packed shards.

A shard is an ``.npz`` inside ``.xz``; G games, R labelled positions (rows), K moves a row:

==================  ==============  =============================================================================
``size``            uint8[G]        points a side
``komi``            float16[G]      White's points
``length``          uint16[G]       moves, passes included
``moves``           uint16[M]       joined; row * size + column, size * size = pass; Black first, from the empty board
``source``          uint8[G]        ``RECORDED`` or ``SELF_PLAYED``
``number``          int64[G]        number among the games of its source and seed; optional
``rules``           uint8[G, 7]     rules in force, flags as in :mod:`engine.go.rules` without the komi; optional, and
                                    Chinese where it is missing
``row_game``        uint32[R]       the row's game
``row_ply``         uint16[R]       the row is the position after this number of moves
``policy_index``    uint16[K, R]    most probable moves, most probable first; ``NO_MOVE`` = none
``policy_byte``     uint8[K, R]     their probabilities, p = exp(-byte / 24); 255 = none
``value``           float16[R]      win minus loss for Black
``lead``            float16[R]      Black's lead in points; NaN = the network has no score or no ownership
``ownership``       int8            tenths, 10 = certainly Black's; the boards of all rows concatenated
==================  ==============  =============================================================================
"""

from typing import Annotated, NamedTuple

import numpy as np

from engine.go.rules import BONUS_N, RULE_FIELDS, RULE_FRIENDLY_PASS, RULE_HANDICAP_BONUS
from engine.records.games import Games, check_games
from engine.records.schema import GAME, MOVE, POINT, ROW, Arrays, Column, Schema, refuse_impossible

RECORDED, SELF_PLAYED = range(2)
"""Values of ``source``: the game is from a record, or from self-play"""
FLAGS = RULE_FIELDS - 1
NO_MOVE = 65535
"""Filler of ``policy_index`` in a row with fewer than K moves"""
NO_BYTE = 255
BYTES_PER_NAT = 24

CHINESE_FLAGS = np.zeros(FLAGS, np.uint8)
CHINESE_FLAGS[[RULE_HANDICAP_BONUS, RULE_FRIENDLY_PASS]] = BONUS_N, 1


class Labels(NamedTuple):
    """A network's outputs for R positions of ``games``."""

    games: Games
    game: Annotated[np.ndarray, Column("u4", ROW, name="row_game", memory="i8")]
    """int64[R]: the row's game, an index into ``games``"""
    ply: Annotated[np.ndarray, Column("u2", ROW, name="row_ply", memory="i8")]
    """int64[R]: number of moves of the game before the row's position"""
    policy_index: Annotated[np.ndarray, Column("u2", ROW, (None,))]
    """uint16[R, K]: policy indices of the most probable moves, most probable first; ``NO_MOVE`` = none"""
    policy: Annotated[np.ndarray, Column("u1", ROW, (None,), name="policy_byte", memory="f4")]
    """float32[R, K]: probabilities of the moves in ``policy_index``"""
    value_black: Annotated[np.ndarray, Column("f2", ROW, name="value", memory="f4")]
    """float32[R]: probability of a win minus that of a loss, for Black"""
    lead_black: Annotated[np.ndarray, Column("f2", ROW, name="lead", memory="f4")]
    """float32[R]: Black's lead in points; NaN = lead and ownership of the row are unknown"""
    ownership_black: Annotated[np.ndarray, Column("i1", POINT, name="ownership")]
    """int8: ownership in tenths, 10 = certainly Black's; the boards of all rows concatenated, each in policy order"""
    own_offsets: Annotated[np.ndarray, Column("u2", ROW, name="own_length", memory="i8", is_stored=False)]
    """int64[R+1]: the board of row r is ownership_black[own_offsets[r]:own_offsets[r+1]]"""
    flags: Annotated[np.ndarray, Column("u1", GAME, (FLAGS,), name="rules", is_optional=True)]
    """uint8[G, 7]: rules of the game, fields as in :mod:`engine.go.rules` without the komi"""
    source: Annotated[np.ndarray, Column("u1", GAME, is_optional=True)]
    """uint8[G]: ``RECORDED`` or ``SELF_PLAYED``; ``games.number`` numbers the games of each source separately"""


def _check(labels: Labels) -> None:
    """Check labels for values that are impossible or contradict their games.

    Raises:
        ValueError: a value is impossible; the message names its kind.
    """
    check_games(labels.games)
    passing = labels.games.size[labels.game] ** 2
    named = (labels.policy_index <= passing[:, None]) | (labels.policy_index == NO_MOVE) | (labels.policy == 0)
    refuse_impossible({
        "ply": labels.ply <= np.diff(labels.games.offsets)[labels.game],
        "move": named,
        "value": np.isfinite(labels.value_black) & ~np.isinf(labels.lead_black),
    })  # fmt: skip


def _decode(arrays: Arrays) -> Arrays:
    """From a shard's arrays, those that :class:`Labels` has in another order or encoding, or that old shards lack."""
    count, size = len(arrays["size"]), arrays["size"].astype(np.int64)
    lacking = {"rules": np.tile(CHINESE_FLAGS, (count, 1)), "source": np.full(count, RECORDED)}
    return {name: array for name, array in lacking.items() if name not in arrays} | {
        "policy_index": np.ascontiguousarray(arrays["policy_index"].T),
        "policy_byte": unpack_policy(arrays["policy_byte"].T),
        "own_length": size[arrays["row_game"]] ** 2,
    }


def _encode(fields: Arrays) -> Arrays:
    """From the fields of :class:`Labels`, the arrays that a shard has in another order or encoding."""
    return {"policy_index": fields["policy_index"].T, "policy": _policy_byte(fields["policy"]).T}


LABELS = Schema(
    "labels", Labels, _check,
    {"size": None, "komi": None, "offsets": None, "moves": Column("u2", MOVE), "number": None}, _decode, _encode,
)  # fmt: skip
read_labels, write_labels = LABELS.read, LABELS.write
"""Read and write a shard of labels; probabilities made by :func:`unpack_policy` survive a round trip unchanged"""


def pack_policy(probabilities: np.ndarray, moves: int) -> tuple[np.ndarray, np.ndarray]:
    """Encode the K most probable moves of each row as in a shard.

    Args:
        probabilities: float64[B, A]: A moves in policy order.
        moves: K, at most A.
    Returns:
        uint16[B, K] and uint8[B, K]: ``policy_index`` and ``policy_byte``.
    """
    some = np.argpartition(-probabilities, moves - 1, axis=1)[:, :moves]
    order = np.argsort(-np.take_along_axis(probabilities, some, axis=1), axis=1, kind="stable")
    index = np.take_along_axis(some, order, axis=1)
    byte = _policy_byte(np.take_along_axis(probabilities, index, axis=1))
    return np.where(byte == NO_BYTE, NO_MOVE, index).astype(np.uint16), byte


def _policy_byte(probabilities: np.ndarray) -> np.ndarray:
    """uint8: probabilities encoded as ``policy_byte``; ``NO_BYTE`` = too small to encode."""
    return np.minimum(np.rint(-BYTES_PER_NAT * np.log(np.maximum(probabilities, 1e-30))), NO_BYTE).astype(np.uint8)


def unpack_policy(byte: np.ndarray) -> np.ndarray:
    """float32: probabilities decoded from ``policy_byte``; 0 for ``NO_BYTE``."""
    return np.where(byte == NO_BYTE, 0, np.exp(byte / np.float32(-BYTES_PER_NAT))).astype(np.float32)
