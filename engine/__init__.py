"""Keima's engine: the game, rollouts, features, networks, inference, search and training.

Reading route: ``go/board.py`` (what a position is), ``search/worker.py`` (the numbered main loop),
``nets/network.py`` and ``features/encoder.py`` (the two contracts), ``player.py`` (what a front end drives).
"""

__version__ = "0.1.0"
