"""Rollouts of a policy network: values of positions from games that it plays to the end, in batches.

Source: AlphaGo, Figure 2b, which compares the value network with rollouts of several policies.
"""

import threading
from collections.abc import Callable
from functools import partial

import numpy as np

from engine.go.geometry import BLACK
from engine.inference.server import InferenceServer
from engine.records.games import Games
from engine.records.replay import game_rules, recorded
from engine.selfplay.games import GameBatch, Openings, Player, Setups
from engine.selfplay.plan import LIMIT_BOARDS
from engine.selfplay.table import NEVER, GameConfig
from engine.system.executor import work_in_threads

SEED = 20160130
LOOK_EVERY_S = 1.0
"""Seconds between checks for failed threads"""


def policy_values(
    server: InferenceServer, games: Games, rows: np.ndarray, plies: np.ndarray, count: int, at_once: int, groups: int,
    on_progress: Callable[[float], None] | None = None,
) -> np.ndarray:  # fmt: skip
    """Mean results of games that a policy network plays from recorded positions to the end, at the recorded komi.

    Moves are drawn from the policy at temperature 1, with a pass only if no sensible move is left; so the end is scored
    by area, whatever the rules of the recorded game.

    Args:
        server: that of the network, which needs a policy.
        rows, plies: int64[P]: index of each position's game in ``games``, and number of moves before the position.
        count: number of games from each position.
        at_once: batch size, in games.
        groups: number of batches that play concurrently, each in a thread.
        on_progress: called with the number of games finished since its last call, divided by ``count``.
    Returns:
        float64[P]: -1 to 1 for the side to move.
    Raises:
        ValueError: the network does not support these games; one line.
        RuntimeError: the network failed.
    """
    spec, sizes = server.spec, games.size[rows]
    if "policy" not in spec.heads:
        raise ValueError(f"network {spec.name} has no policy to play by")
    spec.check_sizes(sizes)
    sums, set_up = np.zeros(len(rows)), partial(_setups, games, rows, plies, count)
    stopped = threading.Event()
    for size in np.unique(sizes).tolist():
        chosen = np.flatnonzero(sizes == size)
        limit = int(plies[chosen].max()) + LIMIT_BOARDS * size**2
        player = Player(server, GameConfig(limit, SEED, sensible_moves=NEVER))
        numbers = (chosen[:, None] * count + np.arange(count)).ravel()
        # Batches have positions of their own, so that their updates of the sums do not conflict.
        parts = np.split(numbers, count * (len(chosen) * np.arange(1, groups) // groups))

        def work(size: int = size, player: Player = player, parts: list[np.ndarray] = parts) -> None:
            part = parts.pop()
            batch = GameBatch([player], size, min(at_once, max(1, len(part))), set_up, stopped)
            for finished in batch.play(iter(part.tolist())):
                np.add.at(sums, finished.games.number // count, finished.games.result)
                if on_progress:
                    on_progress(len(finished.games.number) / count)

        work_in_threads(work, groups, stopped, lambda: None, LOOK_EVERY_S)
    is_black = (plies % 2 == 0) == (games.first[rows] == BLACK)
    return np.where(is_black, sums, -sums) / count


def _setups(games: Games, rows: np.ndarray, plies: np.ndarray, count: int, numbers: np.ndarray) -> Setups:
    """Initial state of games, given their numbers (int64[K]): game n begins at position ``n // count``."""
    at = numbers // count
    return Setups(
        rules=game_rules(games, rows[at], np.zeros(len(at), bool)),
        openings=Openings(recorded(games), rows[at], plies[at]),
    )
