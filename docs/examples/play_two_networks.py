"""Play two networks against each other: one game in one process, each with a search of its own.

    python docs/examples/play_two_networks.py [BLACK [WHITE [VISITS [SIZE]]]]

BLACK and WHITE are names of shipped networks or files. Prints the moves, the last board and the result. For matches
that say how strong something is, there are ``keima match`` and ``python -m bench.strength.arena``.
"""

import sys
from contextlib import ExitStack, closing

from engine.config import PlayOptions, SearchOptions
from engine.go.geometry import BLACK, WHITE, other, to_vertex
from engine.play.game_session import RESIGN
from engine.play.player import Player
from weights import find_network

LONGEST = 3
"""A game is ended after this number of moves for each point of the board."""


def main(arguments: list[str]) -> None:
    """Play one game."""
    black, white, visits, size = [*arguments, *["default", "small", "20", "9"][len(arguments) :]]
    search = SearchOptions(seed=1)
    # The first moves are drawn by their visits, so that another seed plays another game.
    play = PlayOptions(visits=int(visits), seconds=0.0, temperature=1.0, temperature_moves=8)
    with ExitStack() as stack:
        players = {
            color: stack.enter_context(closing(Player(search, play, find_network(name), size=int(size))))
            for color, name in ((BLACK, black), (WHITE, white))
        }
        color, moves = BLACK, []
        while not players[BLACK].game.is_over and len(moves) < LONGEST * int(size) ** 2:
            point = players[color].genmove(color)
            moves.append("resign" if point == RESIGN else to_vertex(point, int(size)))
            if point == RESIGN:
                break
            players[other(color)].play(color, point)
            color = other(color)
        print(" ".join(moves))
        print(players[BLACK].diagram())
        winner = white if color == BLACK else black
        print(f"{winner} wins by resignation" if moves[-1] == "resign" else players[BLACK].final_score())


if __name__ == "__main__":
    main(sys.argv[1:])
