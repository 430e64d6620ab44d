"""Keima's engine: the game, rollouts, features, networks, inference, search, play, training and self-play.

Reading route: engine/go/board.py and engine/go/position.py (stones, and what a game adds to them),
engine/search/worker.py (the search loop, seven numbered steps), engine/nets/network.py and engine/inference/server.py
(what a network is, how batches reach it), engine/rollout/policy.py (games played to the end), engine/play/player.py
(one move from the clock to the board), engine/train/trainer.py and engine/selfplay/ (where networks come from).
docs/architecture.md lists every file.
"""

__version__ = "0.1.0"
