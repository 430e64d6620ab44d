"""Analyse a position: the default network searches a game record, and says what it found.

    python docs/examples/analyse_position.py [GAME.sgf [VISITS]]

Prints the board, then the best moves with their visits, win rate, lead in points and expected line.
"""

import sys
from contextlib import closing
from pathlib import Path

from engine.config import PlayOptions, SearchOptions
from engine.go.geometry import BLACK, to_vertex
from engine.play.player import Player
from weights import find_network

RECORD = b"(;GM[1]SZ[9]KM[7]RU[chinese];B[ee];W[ec];B[gd];W[dg];B[fg];W[cd])"


def main(arguments: list[str]) -> None:
    """Analyse the record, or one of ours."""
    record = Path(arguments[0]).read_bytes() if arguments else RECORD
    visits = int(arguments[1]) if len(arguments) > 1 else 200
    with closing(Player(SearchOptions(seed=1), PlayOptions(), find_network("default"))) as player:
        player.load_sgf(record)
        game = player.game
        report = player.look(game.to_move, visits)
        print(player.diagram())
    print(f"{'Black' if game.to_move == BLACK else 'White'} to move, {report.visits} visits")
    print("move   visits   win rate   lead   expected line")
    for move in report.moves[:5]:
        line = " ".join(to_vertex(point, game.size) for point in move.pv[:6])
        win = 50 * (move.value_stm + 1)
        print(f"{to_vertex(move.point, game.size):4} {move.visits:8} {win:9.1f}% {move.score_stm:+6.1f}   {line}")
    mine = sum(report.ownership_black > 0)
    print(f"Black is expected to own {mine} points of {game.size**2}")


if __name__ == "__main__":
    main(sys.argv[1:])
