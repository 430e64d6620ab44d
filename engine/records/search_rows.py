"""Rows of self-play by search: games and, for each position with a full search, the training targets.

A shard is an ``.npz`` inside ``.xz``; G games of one board size N, M moves, R rows, A = N*N + 1:

==============  =================  ===================================================================================
``size``        uint8[G]           points a side, all the same
``komi``        float16[G]         White's points
``rules``       uint8[G, 7]        rules in force, flags as in :mod:`engine.go.rules` without the komi
``length``      uint16[G]          moves, passes included
``moves``       uint16[M]          joined; row * size + column, size * size = pass; Black first, from the empty board
``result``      int8[G]            1 Black won, -1 White won, 0 drawn
``ending``      uint8[G]           index into :data:`engine.records.games.ENDINGS`: counted, resigned or limit
``margin``      float32[G]         winning margin in points; NaN = resigned
``owner``       int8[G, N*N]       ownership of the last board, 1 Black's, -1 White's, 0 neither's; resigned: zeros
``number``      int64[G]           number of the game in its self-play run
``network``     uint64[G]          the network that played: the first 8 bytes of its file's SHA-256
``step``        int64[G]           training steps of that network
``resigner``    uint8[G]           the colour whose values fell below the resignation threshold first; 0 = neither
``quits``       bool[G]            whether resigning was allowed; False = the game was played out
``lowest``      float32[G, 2]      for Black and White: minimum over the game of the maximum of the colour's last R
                                   values; the colour would have resigned at any threshold above this
``row_game``    uint32[R]          the row's game; rows are in the order of games and plies
``row_ply``     uint16[R]          the row is the position after this number of moves
``policy``      uint16[R, A]       policy target in policy order, pruned visits or probabilities; rows in any unit
``value``       float32[R]         value of the search for Black
``weight``      float32[R]         sampling weight by policy surprise; the mean over a game is 1
==============  =================  ===================================================================================
"""

from typing import Annotated, NamedTuple

import numpy as np

from engine.records.games import Games, check_games
from engine.records.labels import FLAGS
from engine.records.schema import GAME, MOVE, ROW, Column, Schema, refuse_impossible


class SearchRows(NamedTuple):
    """R rows of G games of one board size, N; the games have known komi, result, margin, ending and number."""

    games: Games
    flags: Annotated[np.ndarray, Column("u1", GAME, (FLAGS,), name="rules")]
    """uint8[G, 7]: rules of the game, fields as in :mod:`engine.go.rules` without the komi"""
    owner: Annotated[np.ndarray, Column("i1", GAME, (None,))]
    """int8[G, N*N]: ownership of the last board in policy order, 1 = Black's, -1 = White's, 0 = neither's; zeros for a
    resigned game"""
    network: Annotated[np.ndarray, Column("u8")]
    """uint64[G]: the network that played: first 8 bytes of the SHA-256 of its file"""
    step: Annotated[np.ndarray, Column("i8")]
    """int64[G]: training steps of the network that played"""
    resigner: Annotated[np.ndarray, Column("u1")]
    """uint8[G]: the colour whose values fell below the resignation threshold first; 0 = neither"""
    quits: Annotated[np.ndarray, Column("?")]
    """bool[G]: whether resigning was allowed; False = the game was played out"""
    lowest: Annotated[np.ndarray, Column("f4", GAME, (2,))]
    """float32[G, 2]: for Black and White, the minimum over the game of the maximum of the colour's last R values: at
    any threshold above this the colour would have resigned"""
    game: Annotated[np.ndarray, Column("u4", ROW, name="row_game", memory="i8")]
    """int64[R]: the row's game, an index into ``games``; ascending"""
    ply: Annotated[np.ndarray, Column("u2", ROW, name="row_ply", memory="i8")]
    """int64[R]: number of moves of the game before the row's position; ascending within each game"""
    policy: Annotated[np.ndarray, Column("u2", ROW, (None,))]
    """uint16[R, A]: policy target in policy order, each row in a unit of its own; see :func:`targets`"""
    value_black: Annotated[np.ndarray, Column("f4", ROW, name="value")]
    """float32[R]: value of the row's search, -1 to 1, for Black"""
    weight: Annotated[np.ndarray, Column("f4", ROW)]
    """float32[R]: sampling weight by policy surprise; the mean over a game is 1"""


def _check(rows: SearchRows) -> None:
    """Check rows for values that are impossible or contradict their games.

    Raises:
        ValueError: a value is impossible; the message names its kind.
    """
    games = rows.games
    check_games(games)
    area = int(games.size[0]) ** 2 if len(games.size) else 0
    if len(games.size) and (rows.owner.shape[1] != area or rows.policy.shape[1] != area + 1):
        raise ValueError("ownership or targets are of another board size")
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


SEARCH_ROWS = Schema(
    "self-play rows", SearchRows, _check,
    dict.fromkeys(("size", "komi", "offsets", "result", "ending", "number"))
    | {"moves": Column("u2", MOVE), "margin": Column("f4")},
)  # fmt: skip
read_search_rows, write_search_rows = SEARCH_ROWS.read, SEARCH_ROWS.write


def replies(rows: SearchRows, which: np.ndarray) -> np.ndarray:
    """Targets for the opponent's reply to the move played at some rows.

    A reply's target is the policy target of the next position if that is a row too, else the move played there.

    Args:
        which: int64[B]: indices of rows.
    Returns:
        float32[B, A]: probabilities in policy order; zeros where the game had no next move.
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
    """float32[B, A]: the policy targets of rows ``which`` (int64[B]), as probabilities in policy order."""
    policy = rows.policy[which].astype(np.float64)
    return (policy / policy.sum(axis=1, keepdims=True)).astype(np.float32)
