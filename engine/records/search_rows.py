"""Rows of self-play by search: games and, for each full search in them, what the network is to learn from it.

A shard is an ``.npz`` inside ``.xz``; G games of one board size N, M moves, R rows, A = N*N + 1:

==============  =================  ===================================================================================
``size``        uint8[G]           points a side, all the same
``komi``        float16[G]         White's points
``rules``       uint8[G, 7]        rules in force, flags as in :mod:`engine.go.rules` without the komi
``length``      uint16[G]          moves, passes included
``moves``       uint16[M]          joined; row * size + column, size * size = pass; Black first, from the empty board
``result``      int8[G]            1 Black won, -1 White won, 0 drawn
``ending``      uint8[G]           index into :data:`engine.records.games.ENDINGS`: counted, resigned or limit
``margin``      float32[G]         points won by; NaN = resigned
``owner``       int8[G, N*N]       owners of the last board, 1 Black's, -1 White's, 0 neither's; resigned: zeros
``number``      int64[G]           which game of its run
``network``     uint64[G]          the network that played: the first 8 bytes of its file's SHA-256
``step``        int64[G]           steps it was trained for
``resigner``    uint8[G]           the colour that first had reason to resign; 0 = neither
``quits``       bool[G]            hopeless games like this one are resigned; otherwise it was played out
``lowest``      float32[G, 2]      by colour the lowest value that it would have resigned at: any higher bound resigns
``row_game``    uint32[R]          the row's game; rows are in the order of games and plies
``row_ply``     uint16[R]          the row is the position after this number of moves
``policy``      uint16[R, A]       policy target in policy order: visits, pruned, or probabilities, in any unit
``value``       float32[R]         value of the search for Black
``weight``      float32[R]         what the row counts for, 1 in the mean over a game (policy surprise weighting)
==============  =================  ===================================================================================
"""

import io
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.records.games import Games, check_games, join, offsets_of, read_arrays, refuse_impossible, write_arrays
from engine.records.labels import FLAGS
from engine.system.files import Known

ARRAYS: Known = {
    "size": ("u1", (None,)), "komi": ("f2", (None,)), "rules": ("u1", (None, FLAGS)), "length": ("u2", (None,)),
    "moves": ("u2", (None,)), "result": ("i1", (None,)), "ending": ("u1", (None,)), "margin": ("f4", (None,)),
    "owner": ("i1", (None, None)), "number": ("i8", (None,)), "network": ("u8", (None,)), "step": ("i8", (None,)),
    "resigner": ("u1", (None,)), "quits": ("?", (None,)), "lowest": ("f4", (None, 2)), "row_game": ("u4", (None,)),
    "row_ply": ("u2", (None,)), "policy": ("u2", (None, None)), "value": ("f4", (None,)), "weight": ("f4", (None,)),
}  # fmt: skip
"""What a shard holds"""
OF_GAMES = ("flags", "owner", "network", "step", "resigner", "quits", "lowest")
OF_ROWS = ("ply", "policy", "value_black", "weight")


class SearchRows(NamedTuple):
    """R rows of G games of one board size; in the games komi, result, margin, ending and number are known."""

    games: Games
    flags: np.ndarray
    """uint8[G, 7]: rules in force, as in :mod:`engine.go.rules` without the komi"""
    owner: np.ndarray
    """int8[G, N*N] in policy order: 1 = Black's, -1 = White's; zeros where the game was resigned"""
    network: np.ndarray
    """uint64[G]"""
    step: np.ndarray
    """int64[G]"""
    resigner: np.ndarray
    """uint8[G]"""
    quits: np.ndarray
    """bool[G]"""
    lowest: np.ndarray
    """float32[G, 2]"""
    game: np.ndarray
    """int64[R]: index into games, ascending"""
    ply: np.ndarray
    """int64[R]: the position after this number of moves, ascending in each game"""
    policy: np.ndarray
    """uint16[R, A]: in any unit"""
    value_black: np.ndarray
    """float32[R]"""
    weight: np.ndarray
    """float32[R]"""


def read_search_rows(path: Path) -> SearchRows:
    """Read one shard.

    Raises:
        ValueError: not a shard of self-play rows, or one whose numbers contradict each other.
    """
    data = read_arrays(path, "self-play rows", ARRAYS, ARRAYS.keys())
    try:
        return _rows(data)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{path}: a damaged shard of self-play rows ({error})") from error


def write_search_rows(path: Path, rows: SearchRows) -> None:
    """Write one shard, whole or not at all; the same rows always make the same bytes."""
    write_arrays(path, _arrays(rows))


def packed(rows: SearchRows) -> bytes:
    """Rows as bytes, not compressed, for :func:`unpacked`."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **_arrays(rows))
    return file.getvalue()


def unpacked(content: bytes) -> SearchRows:
    """Rows of :func:`packed`."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return _rows(dict(arrays))


def _arrays(rows: SearchRows) -> dict[str, np.ndarray]:
    """A shard's arrays."""
    games = rows.games
    arrays = {
        "size": games.size, "komi": games.komi, "rules": rows.flags, "length": np.diff(games.offsets),
        "moves": games.moves, "result": games.result, "ending": games.ending, "margin": games.margin,
        "owner": rows.owner, "number": games.number, "network": rows.network, "step": rows.step,
        "resigner": rows.resigner, "quits": rows.quits, "lowest": rows.lowest, "row_game": rows.game,
        "row_ply": rows.ply, "policy": rows.policy, "value": rows.value_black, "weight": rows.weight,
    }  # fmt: skip
    return {name: array.astype(ARRAYS[name][0]) for name, array in arrays.items()}


def _rows(data: dict[str, np.ndarray]) -> SearchRows:
    """Rows of a shard's arrays.

    Raises:
        ValueError: they contradict each other.
    """
    games = Games(
        size=data["size"].astype(np.int64),
        komi=data["komi"].astype(np.float32),
        offsets=offsets_of(data["length"]),
        **{name: data[name] for name in ("moves", "result", "ending", "margin", "number")},
    )
    check_games(games)
    rows = SearchRows(
        games=games,
        flags=data["rules"],
        **{name: data[name] for name in OF_GAMES[1:]},
        game=data["row_game"].astype(np.int64),
        ply=data["row_ply"].astype(np.int64),
        policy=data["policy"],
        value_black=data["value"],
        weight=data["weight"],
    )
    _check(rows)
    return rows


def _check(rows: SearchRows) -> None:
    """Refuse rows that do not belong to their games.

    Raises:
        ValueError: what is wrong.
    """
    games, count = rows.games, len(rows.game)
    area = int(games.size[0]) ** 2 if len(games.size) else 0
    for names, expected in ((OF_GAMES, len(games.size)), (OF_ROWS, count)):
        for name in names:
            if len(getattr(rows, name)) != expected:
                raise ValueError(f"{name} has {len(getattr(rows, name))} entries, expected {expected}")
    if len(games.size) and (rows.owner.shape[1] != area or rows.policy.shape[1] != area + 1):
        raise ValueError("owners or targets are not those of the board")
    key = rows.game * (1 << 16) + rows.ply
    refuse_impossible({
        "board size": games.size**2 == area,
        "komi": np.isfinite(games.komi),
        "game": rows.game < len(games.size),
        "order of rows": key[1:] > key[:-1],
    })  # fmt: skip
    refuse_impossible({
        "ply": rows.ply <= np.diff(games.offsets)[rows.game],
        "target": rows.policy.max(axis=1, initial=0) > 0,
        "owner": np.all((rows.owner >= -1) & (rows.owner <= 1), axis=1),
        "number": np.isfinite(rows.value_black) & np.isfinite(rows.weight) & (rows.weight >= 0),
    })  # fmt: skip


def join_rows(parts: list[SearchRows]) -> SearchRows:
    """Rows of several blocks of games, one after the other; at least one part."""
    firsts = offsets_of([len(part.games.size) for part in parts])
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in (*OF_GAMES, *OF_ROWS)}
    game = np.concatenate([part.game + first for part, first in zip(parts, firsts[:-1], strict=True)])
    return SearchRows(games=join([part.games for part in parts]), game=game, **joined)


def replies(rows: SearchRows, which: np.ndarray) -> np.ndarray:
    """What the opponent did next: its policy target if that was a full search's, else the move that it played.

    Args:
        which: int64[B], rows.
    Returns:
        float32[B, A]: in policy order, probabilities; zeros where the game was over.
    Source: Wu 2019 (arXiv 1902.10565), section 3.4.
    """
    after = np.minimum(which + 1, len(rows.game) - 1)
    follows = (which + 1 < len(rows.game)) & (rows.game[after] == rows.game[which])
    follows &= rows.ply[after] == rows.ply[which] + 1
    found = np.zeros((len(which), rows.policy.shape[1]), np.float32)
    found[follows] = targets(rows, after[follows])
    at = rows.games.offsets[rows.game[which]] + rows.ply[which] + 1
    was_played = ~follows & (at < rows.games.offsets[rows.game[which] + 1])
    found[was_played, rows.games.moves[at[was_played]]] = 1.0
    return found


def targets(rows: SearchRows, which: np.ndarray) -> np.ndarray:
    """float32[B, A]: the policy targets of some rows (int64[B]) as probabilities."""
    policy = rows.policy[which].astype(np.float64)
    return (policy / policy.sum(axis=1, keepdims=True)).astype(np.float32)
