"""Keima's engine: the game, rollouts, features, networks, inference, search, play, training and self-play.

Reading route: ``go/board.py`` and ``go/position.py`` (stones, and what a game adds to them), ``search/worker.py`` (the
search loop, seven numbered steps), ``nets/network.py`` and ``inference/server.py`` (what a network is, how batches
reach it), ``rollout/policy.py`` (games played to the end), ``play/player.py`` (one move from the clock to the board),
``train/trainer.py`` and ``selfplay/`` (where networks come from). docs/architecture.md lists every file.
"""

__version__ = "0.1.0"
