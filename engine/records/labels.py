"""Labels: a network's outputs for positions of games, read and written as packed shards.

A shard is an ``.npz`` inside ``.xz``; G games, R labelled positions (rows), K moves a row:

==================  ==============  =============================================================================
``size``            uint8[G]        points a side
``komi``            float16[G]      White's points
``length``          uint16[G]       moves, passes included
``moves``           uint16[M]       joined; row * size + column, size * size = pass; Black first, from the empty board
``source``          uint8[G]        ``RECORDED`` or ``SELF_PLAYED``
``number``          int64[G]        which one of its source and seed; optional
``rules``           uint8[G, 7]     rules in force, flags as in :mod:`engine.go.rules` without the komi; optional, and
                                    Chinese where it is missing
``row_game``        uint32[R]       the row's game
``row_ply``         uint16[R]       the row is the position after this number of moves
``policy_index``    uint16[K, R]    most probable moves, most probable first; ``NO_MOVE`` = none
``policy_byte``     uint8[K, R]     their probabilities, p = exp(-byte / 24); 255 = none
``value``           float16[R]      win minus loss for Black
``lead``            float16[R]      points Black leads by; NaN = the network has no score or no ownership
``ownership``       int8            tenths, 10 = certainly Black's; the boards of all rows joined
==================  ==============  =============================================================================
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.go.rules import BONUS_N, RULE_FIELDS, RULE_FRIENDLY_PASS, RULE_HANDICAP_BONUS
from engine.records.games import Games, check_games, offsets_of, read_arrays, refuse_impossible, write_arrays
from engine.system.files import Known

RECORDED, SELF_PLAYED = range(2)
"""Where a labelled game comes from: ``source``"""
FLAGS = RULE_FIELDS - 1
NO_MOVE = 65535
"""``policy_index`` where a row has fewer than K moves"""
NO_BYTE = 255
BYTES_PER_NAT = 24
LABEL_ARRAYS: Known = {
    "size": ("u1", (None,)), "komi": ("f2", (None,)), "length": ("u2", (None,)), "moves": ("u2", (None,)),
    "source": ("u1", (None,)), "number": ("i8", (None,)), "rules": ("u1", (None, FLAGS)),
    "row_game": ("u4", (None,)), "row_ply": ("u2", (None,)), "policy_index": ("u2", (None, None)),
    "policy_byte": ("u1", (None, None)), "value": ("f2", (None,)), "lead": ("f2", (None,)),
    "ownership": ("i1", (None,)),
}  # fmt: skip
"""What a shard holds"""
OPTIONAL = {"source", "number", "rules"}

CHINESE_FLAGS = np.zeros(FLAGS, np.uint8)
CHINESE_FLAGS[[RULE_HANDICAP_BONUS, RULE_FRIENDLY_PASS]] = BONUS_N, 1


class Labels(NamedTuple):
    """A network's outputs for R positions of ``games``."""

    games: Games
    game: np.ndarray
    """int64[R]: index into games"""
    ply: np.ndarray
    """int64[R]: the position after this number of moves"""
    policy_index: np.ndarray
    """uint16[R, K]: most probable moves; ``NO_MOVE`` = none"""
    policy: np.ndarray
    """float32[R, K]: their probabilities"""
    value_black: np.ndarray
    """float32[R]: win minus loss for Black"""
    lead_black: np.ndarray
    """float32[R]: points; NaN = unknown, and so is the row's ownership"""
    ownership_black: np.ndarray
    """int8: tenths, in policy order, the boards of all rows joined"""
    own_offsets: np.ndarray
    """int64[R+1]: the board of row r is ownership_black[own_offsets[r]:own_offsets[r+1]]"""
    flags: np.ndarray
    """uint8[G, 7]: rules in force, as in :mod:`engine.go.rules` without the komi"""


def read_labels(path: Path) -> Labels:
    """Read one shard of labels.

    Raises:
        ValueError: not a shard of labels, or one whose numbers contradict each other.
    """
    data = read_arrays(path, "labels", LABEL_ARRAYS, LABEL_ARRAYS.keys() - OPTIONAL)
    try:
        labels = _labels(data)
        check_games(labels.games)
        _check_labels(labels)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{path}: a damaged shard of labels ({error})") from error
    return labels


def _labels(data: dict[str, np.ndarray]) -> Labels:
    """Labels of a shard's arrays."""
    size, komi = data["size"].astype(np.int64), data["komi"].astype(np.float32)
    games = Games(size=size, komi=komi, offsets=offsets_of(data["length"]), moves=data["moves"])
    game = data["row_game"].astype(np.int64)
    return Labels(
        games=games,
        game=game,
        ply=data["row_ply"].astype(np.int64),
        policy_index=np.ascontiguousarray(data["policy_index"].T),
        policy=unpack_policy(data["policy_byte"].T),
        value_black=data["value"].astype(np.float32),
        lead_black=data["lead"].astype(np.float32),
        ownership_black=data["ownership"],
        own_offsets=offsets_of(games.size[game] ** 2),
        flags=data.get("rules", np.tile(CHINESE_FLAGS, (len(size), 1))),
    )


def _check_labels(labels: Labels) -> None:
    """Refuse labels that do not belong to their games' positions.

    Raises:
        ValueError: what is wrong.
    """
    rows, passing = len(labels.game), labels.games.size[labels.game] ** 2
    for name in ("ply", "policy_index", "policy", "value_black", "lead_black"):
        if len(getattr(labels, name)) != rows:
            raise ValueError(f"{name} has not {rows} rows")
    if labels.flags.shape != (len(labels.games.size), FLAGS) or labels.flags.dtype != np.uint8:
        raise ValueError(f"rules are not uint8 of {len(labels.games.size)} games and {FLAGS} flags")
    if len(labels.ownership_black) != labels.own_offsets[-1]:
        raise ValueError("the ownership has not the length of the boards")
    named = (labels.policy_index <= passing[:, None]) | (labels.policy_index == NO_MOVE) | (labels.policy == 0)
    refuse_impossible({
        "game": labels.game >= 0,
        "ply": (labels.ply >= 0) & (labels.ply <= np.diff(labels.games.offsets)[labels.game]),
        "move": named,
        "value": np.isfinite(labels.value_black) & ~np.isinf(labels.lead_black),
    })  # fmt: skip


def write_labels(path: Path, labels: Labels, source: np.ndarray, number: np.ndarray) -> None:
    """Write one shard of labels; the same labels always make the same bytes.

    Args:
        labels: probabilities as :func:`unpack_policy` gives them, so that none changes.
        source, number: int[G], which game each is.
    """
    games = labels.games
    arrays = {
        "size": games.size, "komi": games.komi, "length": np.diff(games.offsets), "moves": games.moves,
        "source": source, "number": number, "rules": labels.flags, "row_game": labels.game, "row_ply": labels.ply,
        "policy_index": np.ascontiguousarray(labels.policy_index.T),
        "policy_byte": np.ascontiguousarray(_policy_byte(labels.policy).T),
        "value": labels.value_black, "lead": labels.lead_black, "ownership": labels.ownership_black,
    }  # fmt: skip
    write_arrays(path, {name: array.astype(LABEL_ARRAYS[name][0]) for name, array in arrays.items()})


def pack_policy(probabilities: np.ndarray, moves: int) -> tuple[np.ndarray, np.ndarray]:
    """The most probable moves of each row, as a shard holds them.

    Args:
        probabilities: float64[B, A], in policy order.
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
    """uint8: ``policy_byte`` of probabilities; ``NO_BYTE`` for those too small for it."""
    return np.minimum(np.rint(-BYTES_PER_NAT * np.log(np.maximum(probabilities, 1e-30))), NO_BYTE).astype(np.uint8)


def unpack_policy(byte: np.ndarray) -> np.ndarray:
    """float32: probabilities of ``policy_byte``; none = 0."""
    return np.where(byte == NO_BYTE, 0, np.exp(byte / np.float32(-BYTES_PER_NAT))).astype(np.float32)
