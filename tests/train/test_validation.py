"""What a network is measured on in training: which held-out positions, and what is refused."""

import numpy as np
import pytest
import torch

from engine.config import TrainOptions
from engine.features.encoder import KEIMA
from engine.nets.network import NetworkSpec
from engine.records.games import write_games
from engine.train.dataset import Material, Mixture
from gtp.cli.train import _validation
from tests.train.made import made_games
from tests.train.trainers import CPU


def test_both_errors_of_a_value_network_are_of_as_many_positions(tmp_path, monkeypatch):
    """Smaller boards have more of them; a sample with few tells the two errors apart by luck."""
    counts = []
    metrics = lambda *args: counts.append(len(args[3])) or {"value_mse": 0.5}  # noqa: E731
    monkeypatch.setattr("gtp.cli.train.game_metrics", metrics)
    monkeypatch.setattr("gtp.cli.train.VALIDATION_POSITIONS", 400)
    write_games(tmp_path / "held.npz.xz", made_games(200))
    data = Mixture(KEIMA, Material([made_games(500, seed=1)]), TrainOptions())
    for has_policy, tested, seen in ((False, 400 * 361 // 81, 1600), (True, 400, 190)):
        counts.clear()
        spec = NetworkSpec("some", KEIMA.name, 9, 9, ("policy", "value") if has_policy else ("value",))
        found = _validation(spec, tmp_path / "held.npz.xz", None, data, CPU)(torch.nn.Identity())
        assert found == {"value_mse": 0.5, "seen/value_mse": 0.5}
        assert counts[0] == tested and seen <= counts[1] <= (200 if has_policy else tested)


def test_a_value_network_is_not_measured_on_games_without_winners(tmp_path):
    games = made_games()
    games.result[:] = 0
    write_games(tmp_path / "open.npz.xz", games)
    spec, data = (
        NetworkSpec("value", KEIMA.name, 9, 9, ("value",)),
        Mixture(KEIMA, Material([games]), TrainOptions()),
    )
    with pytest.raises(ValueError, match=r"open.npz.xz: no game has a winner"):
        _validation(spec, tmp_path / "open.npz.xz", None, data, CPU)


def test_a_policy_is_not_measured_on_positions_without_moves(tmp_path):
    games = made_games()
    games = games._replace(moves=np.full_like(games.moves, 81), position=np.full(len(games.size), 3, np.int16))
    write_games(tmp_path / "reached.npz.xz", games)
    spec = NetworkSpec("some", KEIMA.name, 9, 9)
    data = Mixture(KEIMA, Material([made_games()]), TrainOptions())
    with pytest.raises(ValueError, match=r"reached.npz.xz: no move of any position is known"):
        _validation(spec, tmp_path / "reached.npz.xz", None, data, CPU)
