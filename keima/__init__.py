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
from keima.moves import BLACK, WHITE, Color, ColorLike, Move, MoveLike
from keima.perspective import Lead, Ownership, WinRate

__all__ = [
    "BLACK",
    "WHITE",
    "Color",
    "ColorLike",
    "Lead",
    "Move",
    "MoveLike",
    "Ownership",
    "WinRate",
    "__version__",
]
