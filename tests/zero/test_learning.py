"""AlphaGo Zero whole: small boards learnt from nothing, against a solver and the known values."""

import numpy as np
import pytest
from click.testing import CliRunner

from engine.config import TrainOptions
from engine.features.encoder import ENCODERS, encode
from engine.go.geometry import BLACK, point_of
from engine.go.position import META_TO_MOVE, apply_rules, begin, new_position, play_move
from engine.go.rules import RULE_SETS
from engine.inference.server import InferenceServer
from engine.nets.on_device import load_network
from engine.selfplay.search_options import SearchPlayOptions
from engine.zero.facts import look_at_empty_board
from engine.zero.loop import Zero
from engine.zero.networks import NETWORK
from engine.zero.options import ZeroConfig, ZeroOptions
from gtp.cli import main
from tests.go.solver import Solver
from tests.zero.runs import CPU

CONFIG = ZeroConfig(
    ZeroOptions(first_rows=1500, rows=1000, batch=64, window=2000, at_once=32),
    SearchPlayOptions(
        size=3, visits=32, fast_visits=8, full_share=0.5, komi=9.0, komi_sd=2.0, wide_komi_share=0.2
    ),
    TrainOptions(schedule="constant", rate=5e-3, warmup=20, ema=0.98),
    {"blocks": 2, "channels": 16, "head_channels": 8, "value_hidden": 16},
)  # fmt: skip
CENTRE = 4


def value_for_black(server, moves, komi):
    """A network's value after some moves on 3x3, the mean over the symmetries."""
    position, encoder = new_position(3), ENCODERS[server.spec.encoder]
    apply_rules(position, RULE_SETS["tromp-taylor"], komi)
    begin(position, BLACK)
    for move in moves:
        play_move(position, point_of(move, 3), position.meta[META_TO_MOVE])
    planes, globals_ = np.zeros((8, encoder.planes, 3, 3), np.float32), np.zeros((8, encoder.globals), np.float32)
    for symmetry in range(8):
        encode(position, symmetry, encoder.new_scratch(3), planes[symmetry], globals_[symmetry])
    value = server.ask(planes, globals_).value.mean()
    return value if position.meta[META_TO_MOVE] == BLACK else -value


@pytest.fixture(scope="module")
def learnt(tmp_path_factory):
    """A server of the network that ten turns on 3x3 come to."""
    folder = tmp_path_factory.mktemp("zero-3")
    Zero(folder / "run", CONFIG, CPU, threads=1).run(turns=10)
    with InferenceServer(load_network(folder / "run" / NETWORK, CPU), threads=1) as server:
        yield server


def test_the_centre_is_the_first_move_of_3x3(learnt):
    board = look_at_empty_board(learnt, 3, "tromp-taylor", 9.0)
    assert board.policy[CENTRE] > 0.9
    assert board.score == pytest.approx(9.0, abs=2.0)


@pytest.mark.parametrize("moves", [(), (CENTRE,), (CENTRE, 1)], ids=["empty", "centre", "side"])
def test_3x3_is_worth_what_the_solver_says(learnt, moves):
    truth = Solver(3).value(moves)
    assert value_for_black(learnt, moves, truth - 1.0) > 0.0 > value_for_black(learnt, moves, truth + 1.0)


@pytest.mark.slow
def test_5x5_is_learnt_from_nothing(tmp_path):
    """Black owns all of 5x5 from the centre (van der Werf, "Solving Go on small boards", 2003)."""
    result = CliRunner().invoke(main, ["zero", "--size", "5", "--out", str(tmp_path / "zero-5"), "--turns", "12"])
    assert result.exit_code == 0, result.output
    with InferenceServer(load_network(tmp_path / "zero-5" / NETWORK, CPU), threads=1) as server:
        board = look_at_empty_board(server, 5, "tromp-taylor", 24.0)
    assert board.policy.argmax() == 12
    assert board.policy[12] > 0.9
    assert board.score > 20.0
