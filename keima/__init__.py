"""Keima as a library: boards, an engine, networks, search trees and game records::

    import keima

    board = keima.Board(9)
    board.play("E5")
    with keima.Engine() as engine:
        print(engine.analyse(board, keima.Limit(visits=100)).candidates)

What this package exports follows semantic versioning; the packages below it (``engine``, ``gtp``, ``bench``) do not.
Nothing here loads torch, and networks are loaded when an engine or a network is made.
"""

from engine import __version__
from engine.config import SearchOptions, TrainOptions
from engine.pictures.drawing import Picture
from keima.analysis import Analysis
from keima.board import Board
from keima.engine import Engine, Estimate, Limit, Played
from keima.info import Candidate, Info
from keima.matches import MatchResult, match
from keima.moves import BLACK, WHITE, Color, ColorLike, MarksLike, Move, MoveLike
from keima.network import Evaluation, Evaluations, Network, encode
from keima.perspective import Lead, Ownership, WinRate
from keima.record import Node, Record
from keima.reviews import Review, ReviewedMove, review
from keima.training import build_data, train
from keima.tree import Tree, TreeNode

__all__ = [
    "BLACK",
    "WHITE",
    "Analysis",
    "Board",
    "Candidate",
    "Color",
    "ColorLike",
    "Engine",
    "Estimate",
    "Evaluation",
    "Evaluations",
    "Info",
    "Lead",
    "Limit",
    "MarksLike",
    "MatchResult",
    "Move",
    "MoveLike",
    "Network",
    "Node",
    "Ownership",
    "Picture",
    "Played",
    "Record",
    "Review",
    "ReviewedMove",
    "SearchOptions",
    "TrainOptions",
    "Tree",
    "TreeNode",
    "WinRate",
    "__version__",
    "build_data",
    "encode",
    "match",
    "review",
    "train",
]
