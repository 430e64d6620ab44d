"""Compiling what the loop of AlphaGo Zero calls, before it begins: kernels of games by search, and of batches.

Players need none of these, so :mod:`engine.play.ahead` leaves them out.
"""

import numpy as np

from engine.features.encoder import ENCODERS
from engine.inference.server import InferenceServer
from engine.nets.fakes import UniformNetwork
from engine.records.schema import join
from engine.selfplay.empty_board import look_at_empty_board
from engine.selfplay.search_games import SearchGroup
from engine.selfplay.search_options import SearchPlayOptions
from engine.system import jit
from engine.train.window import WindowBatches

SIZE = 3


def _named(encoder: str) -> str:
    """What the stamp of all of it is called."""
    return f"self-play {encoder}"


def is_compiled(encoder: str) -> bool:
    """Whether an earlier start has compiled all of it."""
    return jit.is_stamped(_named(encoder))


def compile_self_play(encoder: str) -> None:
    """Play and learn once on a tiny board with a network that costs nothing."""
    options = SearchPlayOptions(size=SIZE, visits=4, fast_visits=2, komi=2.0, sensible=0.5)
    with InferenceServer(UniformNetwork(encoder), threads=1) as server:
        rows = join(list(SearchGroup(server, options, 2).play(iter(range(4)))))
        look_at_empty_board(server, SIZE, options.rules, options.komi)
    rows = rows._replace(weight=np.ones_like(rows.weight))
    WindowBatches(ENCODERS[encoder], rows, 2, 1).batch_at(0)
    jit.stamp(_named(encoder))
