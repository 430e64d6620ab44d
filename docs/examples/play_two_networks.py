"""Play two networks against each other: one game in one process, each with a search of its own.

    python docs/examples/play_two_networks.py [BLACK [WHITE [VISITS [SIZE]]]]

BLACK and WHITE are names of shipped networks or files. Prints the moves, the last board and the result. For matches
that say how strong something is, there are ``keima match`` and ``python -m bench.strength.arena``.
"""

import random
import sys

import keima

DRAWN = 8
"""Number of moves at the start that are drawn by their visits, so that another seed plays another game"""
LONGEST = 3
"""A game is ended after this number of moves for each point of the board."""


def main(arguments: list[str]) -> None:
    """Play one game."""
    black, white, visits, size = [*arguments, *["default", "small", "20", "9"][len(arguments) :]]
    board, limit, draw = keima.Board(int(size)), keima.Limit(visits=int(visits)), random.Random(1)
    names = {keima.BLACK: black, keima.WHITE: white}
    with keima.Engine(black, threads=1, seed=1) as first, keima.Engine(white, threads=1, seed=1) as second:
        while not board.is_over and board.n_moves < LONGEST * board.size**2:
            engine = first if board.to_move == keima.BLACK else second
            played = engine.play(board, limit)
            if played.resigned:
                break
            move = played.move
            if played.info and board.n_moves < DRAWN:
                found = played.info.candidates
                move = draw.choices(found, [one.visits + 1e-9 for one in found])[0].move
            board.play(move)
        print(" ".join(move for _, move in board.moves))
        print(board)
        result = first.estimate(board).lead
    print(f"{names[board.to_move.opponent]} wins by resignation" if played.resigned else result)


if __name__ == "__main__":
    main(sys.argv[1:])
