"""Ownership of the final boards of scored games: training targets for ownership and score without a teacher.

Records leave dead stones on the board. Rollouts estimate which stones are dead; an estimate is used only if it
reproduces the recorded margin exactly, so the targets are right. Games without such an estimate get no targets. Several
thresholds are tried, because a doubtful chain is dead in one game and in seki in the next.
"""

import contextlib
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.go.position import new_position
from engine.go.random import seed_state
from engine.go.scoring import area_owner
from engine.go.seki import count_without_dead, new_count_memory
from engine.records.games import Games
from engine.records.replay import game_rules, recorded, replay
from engine.rollout.ownership import average_ownership
from engine.system.files import Known, read_arrays, written_whole
from engine.system.jit import kernel

ROLLOUTS = 32
CERTAINTIES = (0.1, 0.2, 0.35, 0.0, 0.5)
"""Thresholds, in the order tried: a chain counts as dead if its mean ownership by the opponent (-1 to 1) is higher"""
MARGIN_ERROR = 0.01
CHUNK = 256
"""Number of games in one task of a thread"""
VERSION = 5
"""Version of the results, part of the names of saved files; to be raised with every change of the results"""
KEY_ARRAYS = (
    "size", "offsets", "moves", "setup_offsets", "setup", "first", "handicap", "result", "margin", "komi", "territory",
    "position",
)  # fmt: skip
"""Arrays of :class:`Games` on which the results depend, hashed in the names of saved files"""
SAVED_ARRAYS: Known = {"row": ("i8", (None,)), "lead_black": ("f4", (None,)), "ownership_black": ("i1", (None, None))}


class FinalOwners(NamedTuple):
    """Ownership of the last boards of G games; known for R games, whose estimate reproduces the recorded margin."""

    row: np.ndarray
    """int64[G]: the game's row of ``ownership_black``; -1 = unknown"""
    lead_black: np.ndarray
    """float32[G]: Black's final lead in points, komi included; 0 also where ``row`` is -1 (unknown)"""
    ownership_black: np.ndarray
    """int8[R + 1, N*N] in policy order, N the largest board: 1 = Black's, -1 = White's, 0 = neutral; the last row,
    which ``row`` -1 selects, is all zero"""


@kernel
def _find_in_rows(fresh, position, memory, ownership, record, rules, rows, margins, state, known, owned):
    """Replay games of one board size and look for dead stones that reproduce the recorded margin.

    Args:
        fresh, position: an empty position, read only, and one to overwrite.
        memory: :class:`engine.go.seki.CountMemory`, overwritten.
        ownership: float32[N*N], overwritten.
        record: :class:`engine.records.replay.Recorded`.
        rules: int64[B, RULE_FIELDS]: each game's rules and komi.
        rows: int64[B]: indices of the games in ``record``.
        margins: float64[B]: Black's recorded lead in points, komi included.
        state: uint64[4], overwritten: the random state.
        known: uint8[B], overwritten: whether an estimate reproduces the margin.
        owned: int8[B, N*N], overwritten where known: 1 = Black's, -1 = White's, 0 = neutral.
    """
    counted = memory.cleared.board
    for b in range(len(rows)):
        known[b] = 0
        length = record.offsets[rows[b] + 1] - record.offsets[rows[b]]
        if replay(position, fresh, record, rows[b], length, rules[b]) >= 0:
            continue
        average_ownership(position.board, counted, None, ROLLOUTS, state, ownership)
        for certainty in CERTAINTIES:
            lead = count_without_dead(position, ownership, certainty, memory)
            if abs(lead - margins[b]) < MARGIN_ERROR:
                area_owner(counted, owned[b])
                known[b] = 1
                break


def find_final_owners(games: Games, threads: int = 1, on_progress: Callable[[int], None] | None = None) -> FinalOwners:
    """Find the final ownership of all scored games; takes 1 ms a game, equal for any number of threads.

    Args:
        on_progress: called, in any of the threads, with the number of games done since its last call.
    """
    # Games cut off for a single position do not contain their final board.
    is_whole = games.position < 0
    rows = np.flatnonzero(is_whole & ~np.isnan(games.margin) & ((games.result != 0) | (games.margin == 0)))
    largest = int(games.size.max(initial=0)) ** 2
    owned = np.zeros((len(rows) + 1, largest), np.int8)
    known = np.zeros(len(rows), np.uint8)

    def work(part: np.ndarray) -> None:
        for size in np.unique(games.size[rows[part]]):
            chosen = part[games.size[rows[part]] == size]
            _find_in_chunk(games, rows[chosen], int(size), chosen, known, owned)
        if on_progress:
            on_progress(len(part))

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, np.arange(i, min(i + CHUNK, len(rows)))) for i in range(0, len(rows), CHUNK)]:
            done.result()
    found = np.flatnonzero(known)
    row = np.full(len(games.size), -1, np.int64)
    row[rows[found]] = np.arange(len(found))
    lead = np.zeros(len(games.size), np.float32)
    lead[rows[found]] = (games.margin * games.result)[rows[found]]
    return FinalOwners(row, lead, np.concatenate([owned[found], owned[-1:]]))


def _find_in_chunk(games: Games, rows: np.ndarray, size: int, places: np.ndarray, known, owned) -> None:
    """Do :func:`find_final_owners` for games ``rows`` (int64[B]) of one board size.

    Args:
        places: int64[B]: where to write each game's results in ``known`` and ``owned``.
    """
    longest = int(np.diff(games.offsets)[rows].max())
    fresh, position = (new_position(size, longest + 1) for _ in range(2))
    memory, ownership = new_count_memory(size, longest + 1), np.zeros(size * size, np.float32)
    rules = game_rules(games, rows, games.territory[rows])
    margins = (games.margin * games.result)[rows].astype(np.float64)
    found, area = np.zeros(len(rows), np.uint8), np.zeros((len(rows), size * size), np.int8)
    state = seed_state(0, int(rows[0]))
    _find_in_rows(fresh, position, memory, ownership, recorded(games), rules, rows, margins, state, found, area)
    known[places] = found
    owned[places, : size * size] = area


def saved_final_owners(games: Games, folder: Path | None, threads: int = 1, on_progress=None) -> FinalOwners:
    """Do :func:`find_final_owners`, with results cached in a folder that processes may share; None = no cache.

    A damaged file is ignored, and its result computed again.
    """
    if folder is None:
        return find_final_owners(games, threads, on_progress)
    digest = hashlib.sha256(repr((VERSION, ROLLOUTS, CERTAINTIES)).encode())
    for name in KEY_ARRAYS:
        digest.update(np.ascontiguousarray(getattr(games, name)).tobytes())
    path = folder / f"settled-{digest.hexdigest()[:16]}.npz"
    if path.exists():
        with contextlib.suppress(ValueError):
            saved = _saved(path, games)
            with contextlib.suppress(OSError):  # The time of use, by which old files are deleted.
                path.touch()
            return saved
    found = find_final_owners(games, threads, on_progress)
    folder.mkdir(parents=True, exist_ok=True)
    # Processes that train together may all write the file at once.
    with written_whole(path, is_shared=True) as part, part.open("wb") as file:
        np.savez_compressed(file, **found._asdict())
    return found


def _saved(path: Path, games: Games) -> FinalOwners:
    """Read a result that :func:`saved_final_owners` saved.

    Raises:
        ValueError: the file is damaged, or is the result of other games.
    """
    arrays = read_arrays(path, SAVED_ARRAYS)
    if arrays.keys() != SAVED_ARRAYS.keys():
        raise ValueError(f"{path}: lacks an array")
    found = FinalOwners(**arrays)
    count, rows = len(games.size), len(found.ownership_black) - 1
    if found.row.shape != (count,) or found.lead_black.shape != (count,) or not np.isfinite(found.lead_black).all():
        raise ValueError(f"{path}: saved for games other than these {count}")
    # The absolute value of an int8 of -128 is -128.
    owners = found.ownership_black.min(), found.ownership_black.max()
    if found.row.min(initial=-1) < -1 or found.row.max(initial=-1) >= rows or owners[0] < -1 or owners[1] > 1:
        raise ValueError(f"{path}: damaged")
    return found
