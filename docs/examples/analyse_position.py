"""Analyse a position: the default network searches a game record, and says what it found.

    python docs/examples/analyse_position.py [GAME.sgf [VISITS]]

Prints the board, then the best moves with their visits, win rate, lead in points and expected line.
"""

import sys

import keima

RECORD = "(;GM[1]SZ[9]KM[7]RU[chinese];B[ee];W[ec];B[gd];W[dg];B[fg];W[cd])"


def main(arguments: list[str]) -> None:
    """Analyse the record, or one of ours."""
    board = keima.Board.from_sgf(arguments[0] if arguments else RECORD)
    visits = int(arguments[1]) if len(arguments) > 1 else 200
    with keima.Engine(threads=1, seed=1) as engine:
        info = engine.analyse(board, keima.Limit(visits=visits))
    print(board)
    print(f"{info.visits} visits\nmove   visits   win rate   lead   expected line")
    for one in info.candidates[:5]:
        line = " ".join(one.pv[:6])
        print(f"{one.move:4} {one.visits:8} {one.win_rate.relative:10.1%} {one.lead.relative:+6.1f}   {line}")
    mine = (info.ownership.black > 0).sum()
    print(f"Black is expected to own {mine} points of {board.size**2}")


if __name__ == "__main__":
    main(sys.argv[1:])
