"""Who owned what at the end of scored games: targets for ownership and score that no teacher has to give.

Records leave dead stones on the board. Rollouts guess which are dead; a guess counts only if it gives the recorded
margin to the point, so what is learnt from is right, and the other games simply have no such target. Several
certainties are tried, because a chain in doubt is dead in one game and in seki in the next.
"""

import contextlib
import hashlib
import os
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.go.board import copy_board
from engine.go.position import copy_position, new_position
from engine.go.scoring import area_owner, final_score_black, mark_dead, take_off
from engine.jit import kernel
from engine.records.games import Games
from engine.records.replay import game_rules, recorded, replay
from engine.rollout.ownership import average_ownership
from engine.rollout.random import seed_state

ROLLOUTS = 32
CERTAINTIES = (0.1, 0.2, 0.35, 0.0, 0.5)
"""How surely a chain must be the opponent's to be dead, in the order tried."""
MARGIN_ERROR = 0.01
CHUNK = 256
"""Games a thread settles at a time."""
VERSION = 2
"""Part of the name of saved results: raise it when they would come out differently."""
KEY_ARRAYS = (
    "size", "offsets", "moves", "setup_offsets", "setup", "first", "handicap", "result", "margin", "komi", "territory"
)  # fmt: skip
"""What of the games the result depends on."""


class Settled(NamedTuple):
    """The last boards of G games, where they could be scored."""

    row: np.ndarray
    """int64[G]: row of ``ownership_black``, -1 = not known"""
    lead_black: np.ndarray
    """float32[G]: points, komi counted; 0 = not known"""
    ownership_black: np.ndarray
    """int8[R + 1, N*N] by policy order, N the largest board: 1 = Black's, -1 = White's, 0 = nobody's; the last row is
    zero, so that row -1 is nobody's"""


@kernel
def _settle_rows(fresh, position, cleared, work, record, rules, rows, margins, state, known, owned):
    """Replay each game and look for dead stones that give its margin (Black's); writes ``known`` and ``owned``."""
    ownership, against, dead = work
    board = position.board
    for b in range(len(rows)):
        known[b] = 0
        if (
            replay(position, fresh, record, rows[b], record.offsets[rows[b] + 1] - record.offsets[rows[b]], rules[b])
            >= 0
        ):
            continue
        average_ownership(board, cleared.board, ROLLOUTS, state, ownership)
        for certainty in CERTAINTIES:
            mark_dead(board, ownership, certainty, against, dead)
            copy_position(cleared, position)
            copy_board(cleared.board, fresh.board)
            take_off(cleared.board, board, dead)
            if abs(final_score_black(cleared) - margins[b]) < MARGIN_ERROR:
                area_owner(cleared.board, owned[b])
                known[b] = 1
                break


def settle_games(games: Games, threads: int = 1, on_progress: Callable[[int], None] | None = None) -> Settled:
    """Settle the scored games of a shard: a millisecond each, the same result however many threads.

    Args:
        on_progress: called with the number of games done since the last call.
    """
    rows = np.flatnonzero(~np.isnan(games.margin) & ((games.result != 0) | (games.margin == 0)))
    largest = int(games.size.max(initial=0)) ** 2
    owned = np.zeros((len(rows) + 1, largest), np.int8)
    known = np.zeros(len(rows), np.uint8)

    def work(part: np.ndarray) -> None:
        for size in np.unique(games.size[rows[part]]):
            chosen = part[games.size[rows[part]] == size]
            _settle_chunk(games, rows[chosen], int(size), chosen, known, owned)
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
    return Settled(row, lead, np.concatenate([owned[found], owned[-1:]]))


def _settle_chunk(games: Games, rows: np.ndarray, size: int, places: np.ndarray, known, owned) -> None:
    """Settle games of one board size; ``places`` are their rows of ``known`` and ``owned``."""
    longest = int(np.diff(games.offsets)[rows].max())
    fresh, position, cleared = (new_position(size, longest + 1) for _ in range(3))
    cells = len(fresh.board.color)
    memory = (np.zeros(size * size, np.float32), np.zeros(cells), np.zeros(cells, np.uint8))
    rules = game_rules(games, rows, games.territory[rows])
    margins = (games.margin * games.result)[rows].astype(np.float64)
    settled, area = np.zeros(len(rows), np.uint8), np.zeros((len(rows), size * size), np.int8)
    _settle_rows(
        fresh, position, cleared, memory, recorded(games), rules, rows, margins, seed_state(0, int(rows[0])), settled,
        area,
    )  # fmt: skip
    known[places] = settled
    owned[places, : size * size] = area


def settled_games(games: Games, folder: Path, threads: int = 1, on_progress=None) -> Settled:
    """:func:`settle_games`, remembered in a folder: a second run on the same games reads it back."""
    digest = hashlib.sha256(repr((VERSION, ROLLOUTS, CERTAINTIES)).encode())
    for name in KEY_ARRAYS:
        digest.update(np.ascontiguousarray(getattr(games, name)).tobytes())
    path = folder / f"settled-{digest.hexdigest()[:16]}.npz"
    if path.exists():
        with contextlib.suppress(OSError, ValueError, KeyError, zipfile.BadZipFile), np.load(path) as saved:
            return Settled(**{name: saved[name] for name in Settled._fields})
    found = settle_games(games, threads, on_progress)
    folder.mkdir(parents=True, exist_ok=True)
    # Processes that train together may all come here at once.
    part = path.with_suffix(f".{os.getpid()}.part.npz")
    np.savez_compressed(part, **found._asdict())
    part.replace(path)
    return found
