"""Games in bulk from recorded openings: every opening is played, and between two networks twice, colours changed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.go.geometry import BLACK
from engine.records.games import Games, read_games, shard_files
from engine.records.replay import Replayer, recorded
from engine.records.schema import join
from engine.selfplay.many_games import Openings, Setups
from engine.selfplay.plan import BulkOptions, Plan
from engine.system.files import sha256_of


class OpenedPlan(Plan):
    """Games of one network or two that go on from recorded games' first moves."""

    def __init__(self, options: BulkOptions, n_networks: int, shards: Sequence[Path], moves: int = 0) -> None:
        """Plan a run.

        Args:
            shards: of games, or folders of them, as :func:`engine.records.games.shard_files` reads these.
            moves: to take of each game; 0 = all.
        Raises:
            ValueError: a game that cannot be an opening, or none at all; one line.
        """
        super().__init__(options, n_networks)
        files = shard_files(shards, None)
        games = join([read_games(file) for file in files])
        self._identity = {"moves": moves, "sha256": [sha256_of(file) for file in files]}
        plies = np.diff(games.offsets)
        plies = np.minimum(plies, moves) if moves else plies
        _check(games, plies, options)
        self._openings = Openings(recorded(games), np.arange(len(plies)), plies)

    def record(self) -> dict[str, Any]:
        """See :class:`Plan`."""
        return super().record() | {"openings": self._identity}

    def set_up(self, numbers: np.ndarray) -> Setups:
        """See :class:`Plan`; of two networks the games 2k and 2k + 1 have the same opening."""
        rows = numbers // self._n_networks % len(self._openings.rows)
        openings = self._openings._replace(rows=rows, plies=self._openings.plies[rows])
        return super().set_up(numbers)._replace(openings=openings)


def _check(games: Games, plies: np.ndarray, options: BulkOptions) -> None:
    """Refuse what no game can go on from."""
    if not len(plies):
        raise ValueError("openings: no games, expected one or more")
    replayer, limit = Replayer(), options.conduct().limit
    for row, is_even in enumerate(games.starts_even().tolist()):
        size, moves = int(games.size[row]), games.moves[games.offsets[row] :][: plies[row]]
        is_pass = moves == size * size
        try:
            if size != options.size:
                raise ValueError(f"it is of {size}x{size}, expected {options.size}x{options.size}")
            if not is_even:
                raise ValueError("it does not begin on the empty board with Black")
            if np.any(is_pass[1:] & is_pass[:-1]):
                raise ValueError("it is over within the moves to take")
            if len(moves) >= limit:
                raise ValueError(f"it has {len(moves)} moves, and games are broken off after {limit}")
            replayer.check(size, np.zeros(0, np.uint16), BLACK, moves)
        except ValueError as error:
            raise ValueError(f"openings: game {row + 1} of {len(plies)} cannot be one ({error})") from error
