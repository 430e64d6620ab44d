"""Labelled positions on disk from the moment they are evaluated: one file a board size, of rows of one length.

A row is a packed little-endian record (:func:`row_type`); what of it a shard takes over has the shard's encoding
(:mod:`engine.records.labels`).

A process that is killed leaves at most part of a row at the end, which is cut off when the file is opened again.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from engine.go.rules import RULE_KOMI_X2
from engine.records.games import Games, offsets_of, read_arrays
from engine.records.labels import LABEL_ARRAYS, NO_MOVE, SELF_PLAYED, Labels, pack_policy, unpack_policy
from engine.system.files import written_whole

IN_RECORD = NO_MOVE
"""``move`` of a row of a recorded game, whose moves are in its record"""


def row_type(size: int, moves: int) -> np.dtype:
    """The record of a labelled position; values, lead and ownership are for Black.

    Args:
        size: N, of the board.
        moves: K, the number of the policy's moves that are kept.
    """
    return np.dtype([
        ("source", "u1"),
        ("number", "<i8"),
        ("ply", "<u2"),
        ("move", "<u2"),  # played from here, a policy index
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
    """Rows, in no journal yet, of positions in which Black is to move at even plies.

    Args:
        size, moves: N and K of :func:`row_type`.
        source: ``RECORDED`` or ``SELF_PLAYED``.
        numbers, plies, played: int64[B]: game, position, move played from it (a policy index).
        outputs: as :meth:`engine.train.teacher.Teacher.targets` gives them for symmetry 0.
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


class Journal:
    """The rows of one board size that are in no shard yet. Threads: one at a time."""

    def __init__(self, folder: Path, size: int, moves: int):
        """Open the file, or begin one.

        Args:
            moves: K of :func:`row_type`.
        """
        self._path, self._type = folder / f"journal-{size}.bin", row_type(size, moves)
        self._parts: list[np.ndarray] = []
        if self._path.exists():
            whole = self._path.stat().st_size // self._type.itemsize
            self._parts.append(np.fromfile(self._path, self._type, whole))
            with self._path.open("r+b") as file:
                file.truncate(whole * self._type.itemsize)
        self._file = self._path.open("ab")

    def rows(self) -> np.ndarray:
        """All rows, oldest first."""
        if len(self._parts) != 1:
            self._parts = [np.concatenate([np.zeros(0, self._type), *self._parts])]
        return self._parts[0]

    def append(self, rows: np.ndarray) -> None:
        """Add rows; they outlive the process from now on."""
        self._parts.append(rows)
        self._file.write(rows.tobytes())
        self._file.flush()

    def keep(self, rows: np.ndarray) -> None:
        """Forget all but these."""
        self._parts = [rows]
        self._file.close()
        with written_whole(self._path) as partial:
            rows.tofile(partial)
        self._file = self._path.open("ab")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def game_keys(rows: np.ndarray) -> np.ndarray:
    """int64[R]: for each row a number of its game, unique within a board size."""
    return rows["number"] * 2 + rows["source"]


def keys_of(shard: Path, size: int) -> np.ndarray:
    """int64: what :func:`game_keys` gives for the games of one board size in a shard."""
    data = read_arrays(shard, "numbered labels", LABEL_ARRAYS, {"size", "source", "number"})
    return (data["number"] * 2 + data["source"])[data["size"] == size]


def to_shard(
    chosen: dict[int, np.ndarray],
    rules_of: Callable[[int, np.ndarray], np.ndarray],
    moves_of: Callable[[int, int], np.ndarray],
) -> tuple[Labels, np.ndarray, np.ndarray]:
    """Rows as labels, games and positions in order.

    Args:
        chosen: rows by board size.
        rules_of: from a size and the numbers of K games to their rules, int64[K, RULE_FIELDS].
        moves_of: from size and number of a recorded game to its moves, policy indices.
    Returns:
        the labels, and int64[G] source and number of their games.
    """
    chosen = {size: rows[np.lexsort((rows["ply"], game_keys(rows)))] for size, rows in chosen.items() if len(rows)}
    played: list[tuple[int, int, int, np.ndarray]] = []
    of_rows = []
    for size, rows in chosen.items():
        _, begins, which = np.unique(game_keys(rows), return_index=True, return_inverse=True)
        of_rows.append(which + len(played))
        for game in np.split(rows, begins[1:]):
            source, number = int(game["source"][0]), int(game["number"][0])
            moves = game["move"] if source == SELF_PLAYED else moves_of(size, number)[: int(game["ply"][-1])]
            played.append((size, source, number, moves))
    sizes, sources, numbers, all_moves = zip(*played, strict=True)
    flags = np.concatenate([
        rules_of(size, np.array([number for of_size, _, number, _ in played if of_size == size])) for size in chosen
    ])  # fmt: skip
    games = Games(
        size=np.array(sizes, np.int64),
        komi=(flags[:, RULE_KOMI_X2] / 2).astype(np.float32),
        offsets=offsets_of([len(moves) for moves in all_moves]),
        moves=np.concatenate(all_moves).astype(np.uint16),
    )

    def joined(name: str) -> np.ndarray:
        return np.concatenate([rows[name] for rows in chosen.values()])

    row_games = np.concatenate(of_rows)
    labels = Labels(
        games=games,
        game=row_games,
        ply=joined("ply").astype(np.int64),
        policy_index=joined("policy_index"),
        policy=unpack_policy(joined("policy_byte")),
        value_black=joined("value").astype(np.float32),
        lead_black=joined("lead").astype(np.float32),
        ownership_black=np.concatenate([rows["ownership"].reshape(-1) for rows in chosen.values()]),
        own_offsets=offsets_of(games.size[row_games] ** 2),
        flags=flags[:, :RULE_KOMI_X2].astype(np.uint8),
    )
    return labels, np.array(sources), np.array(numbers)
