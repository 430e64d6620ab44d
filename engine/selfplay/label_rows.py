"""Labelled positions before they are in a shard: rows of one board size, and their conversion to labels."""

from collections.abc import Callable

import numpy as np

from engine.go.rules import RULE_KOMI_X2
from engine.records.games import Games, offsets_of
from engine.records.labels import NO_MOVE, SELF_PLAYED, Labels, pack_policy, unpack_policy

IN_RECORD = NO_MOVE
"""Value of the field ``move`` in rows of recorded games, whose moves are in the games' shards"""


def row_type(size: int, moves: int) -> np.dtype:
    """The dtype of a labelled position; value, lead and ownership are for Black, encoded as in a shard of labels.

    Args:
        size: N, the board size.
        moves: K, the number of most probable moves that a row keeps of the policy.
    """
    return np.dtype([
        ("source", "u1"),
        ("number", "<i8"),
        ("ply", "<u2"),
        ("move", "<u2"),  # the next move, a policy index
        ("value", "<f2"),  # win minus loss
        ("lead", "<f2"),  # points; NaN = unknown
        ("policy_index", "<u2", (moves,)),
        ("policy_byte", "u1", (moves,)),
        ("ownership", "i1", (size * size,)),  # tenths
    ])  # fmt: skip


def new_rows(
    size: int, moves: int, source: int, numbers: np.ndarray, plies: np.ndarray, played: np.ndarray | int,
    outputs: dict[str, np.ndarray],
) -> np.ndarray:  # fmt: skip
    """Rows of B labelled positions; Black is to move at even plies.

    Args:
        size, moves: N and K of :func:`row_type`.
        source: ``RECORDED`` or ``SELF_PLAYED``.
        numbers, plies, played: int64[B]: number of the game, moves before the position, next move (a policy index).
        outputs: the network's, as :meth:`engine.train.teacher.Teacher.targets` returns them for symmetry 0.
    """
    rows = np.zeros(len(numbers), row_type(size, moves))
    sign = np.where(plies % 2 == 0, 1.0, -1.0)
    rows["source"], rows["number"], rows["ply"], rows["move"] = source, numbers, plies, played
    rows["value"] = sign * outputs["value"]
    rows["policy_index"], rows["policy_byte"] = pack_policy(outputs["policy"], moves)
    rows["lead"] = np.nan
    if "ownership" in outputs:
        rows["lead"] = sign * outputs["score"]
        rows["ownership"] = np.rint(10 * sign[:, None] * outputs["ownership"].reshape(len(numbers), -1))
    return rows


def pack_rows(size: int, rows: np.ndarray) -> bytes:
    """Rows as bytes for :func:`unpack_rows`."""
    return bytes([size]) + rows.tobytes()


def unpack_rows(body: bytes, moves: int) -> tuple[int, np.ndarray]:
    """Board size and rows from the bytes of :func:`pack_rows`; ``moves`` is K of :func:`row_type`."""
    return body[0], np.frombuffer(body, row_type(body[0], moves), offset=1)


def game_keys(rows: np.ndarray) -> np.ndarray:
    """int64[R]: key of the game of each row, unique among games of one board size."""
    return rows["number"] * 2 + rows["source"]


def to_labels(
    chosen: dict[int, np.ndarray],
    rules_of: Callable[[int, np.ndarray], np.ndarray],
    moves_of: Callable[[int, int], np.ndarray],
) -> Labels:
    """Labels from rows, sorted by game and position.

    Args:
        chosen: rows by board size; at least one row for each size.
        rules_of: returns rules, int64[K, RULE_FIELDS], for a board size and the numbers of K games.
        moves_of: returns the moves of a recorded game (policy indices), given its board size and number.
    """
    chosen = {size: rows[np.lexsort((rows["ply"], game_keys(rows)))] for size, rows in chosen.items()}
    firsts, of_rows = list[np.ndarray](), list[np.ndarray]()
    all_moves = list[np.ndarray]()
    for size, rows in chosen.items():
        _, begins, which = np.unique(game_keys(rows), return_index=True, return_inverse=True)
        of_rows.append(which + len(all_moves))
        firsts.append(rows[begins])
        for game in np.split(rows, begins[1:]):
            moves = game["move"]
            if game["source"][0] != SELF_PLAYED:
                moves = moves_of(size, int(game["number"][0]))[: int(game["ply"][-1])]
            all_moves.append(moves)
    sizes = np.repeat(list(chosen), list(map(len, firsts)))
    rules = np.concatenate([rules_of(size, one["number"]) for size, one in zip(chosen, firsts, strict=True)])

    def joined(name: str) -> np.ndarray:
        return np.concatenate([rows[name] for rows in chosen.values()])

    row_games = np.concatenate(of_rows)
    return Labels(
        games=Games(
            size=sizes,
            komi=(rules[:, RULE_KOMI_X2] / 2).astype(np.float32),
            offsets=offsets_of([len(moves) for moves in all_moves]),
            moves=np.concatenate(all_moves).astype(np.uint16),
            number=np.concatenate([one["number"] for one in firsts]),
        ),
        game=row_games,
        ply=joined("ply").astype(np.int64),
        policy_index=joined("policy_index"),
        policy=unpack_policy(joined("policy_byte")),
        value_black=joined("value").astype(np.float32),
        lead_black=joined("lead").astype(np.float32),
        ownership_black=np.concatenate([rows["ownership"].reshape(-1) for rows in chosen.values()]),
        own_offsets=offsets_of(sizes[row_games] ** 2),
        flags=rules[:, :RULE_KOMI_X2].astype(np.uint8),
        source=np.concatenate([one["source"] for one in firsts]),
    )
