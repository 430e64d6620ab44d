"""Keima as a library: boards, an engine, networks, search trees and game records.

    import keima

    board = keima.Board(9)
    board.play("E5")
    with keima.Engine() as engine:
        print(engine.analyse(board, keima.Limit(visits=100)).candidates)

What this package exports follows semantic versioning; the packages below it (``engine``, ``gtp``, ``bench``) do not.
Nothing here loads torch, and networks are loaded when an engine or a network is made.
"""

from engine import __version__
from keima.board import Board
from keima.moves import BLACK, WHITE, Color, ColorLike, MarksLike, Move, MoveLike
from keima.network import Evaluation, Evaluations, Network, encode
from keima.perspective import Lead, Ownership, WinRate
from keima.record import Node, Record

__all__ = [
    "BLACK",
    "WHITE",
    "Board",
    "Color",
    "ColorLike",
    "Evaluation",
    "Evaluations",
    "Lead",
    "MarksLike",
    "Move",
    "MoveLike",
    "Network",
    "Node",
    "Ownership",
    "Record",
    "WinRate",
    "__version__",
    "encode",
]
