"""Hand-made analyses of games, for tests of reviews."""

import numpy as np

from engine.go.geometry import BLACK, WHITE, from_vertex, other
from engine.go.sgf import read_sgf
from engine.go.sgf_tree import read_trees
from engine.insight.review.games import game_to_review
from engine.insight.review.review import AnalysisSettings, review_of
from engine.insight.review.turns import Candidate, Turn

SIZE = 9


def point(vertex):
    return from_vertex(vertex, SIZE)


def candidate(vertex, lead, visits=50, prior=0.5, line=()):
    """A move; without a lead its win rate alone is known, told as ``(win rate,)``."""
    rate, lead = (lead[0], None) if isinstance(lead, tuple) else (0.5 + lead / 100, lead)
    return Candidate(point(vertex), visits, rate, lead, prior, [point(one) for one in (vertex, *line)])


def turn(number, lead, *moves, to_move=None, visits=100, stdev=10.0):
    """A position of the hand-made game: Black begins."""
    color = to_move or (BLACK if number % 2 == 0 else WHITE)
    rate, lead = (lead[0], None) if isinstance(lead, tuple) else (0.5 + lead / 100, lead)
    policy = np.zeros(SIZE * SIZE + 1, np.float16)
    for n, move in enumerate(moves):
        policy[n] = move.prior
    owners = np.zeros(SIZE * SIZE, np.float16)
    return Turn(number, color, visits, rate, lead, stdev, list(moves), owners, policy)


def game(*vertices):
    """Colour and point of moves, Black's first."""
    color, moves = BLACK, []
    for vertex in vertices:
        moves.append((color, point(vertex)))
        color = other(color)
    return moves


MEANS = AnalysisSettings("hash", 100, 0.0)
PLAYED = b"""(;GM[1]FF[4]SZ[9]KM[7]RU[Chinese]PB[Ann]PW[Ben & Co <b>]BR[2k]RE[B+R]C[Ours]XY[kept]
;B[ee]C[centre];W[ce];B[cd];W[dd]TE[1];B[de];W[cf];B[bd](;W[df];B[ed];W[fg])(;W[aa]C[a line of ours];B[ab]))"""
"""Ten moves; a comment, a mark and a variation of people's own"""


def figures_of(played, leads=(), best="G7"):
    """Turns of a game from the leads after each move; the first choice keeps the lead, on a point nobody plays."""
    turns = []
    for n in range(len(played) + 1):
        lead = float(leads[n]) if n < len(leads) else 0.0
        line = ["G6", "F7"] if n % 2 else ["F7"]
        color = played[n][0] if n < len(played) else other(played[-1][0])
        moves = [candidate(best, lead, line=line), candidate("H8", lead - 1, visits=10, prior=0.2)]
        turns.append(turn(n, lead, *moves, to_move=color))
    return turns


def reviewed(data=PLAYED, leads=(), **more):
    """A review of a record with figures made by hand, and the record's tree."""
    (piece, tree), *_ = read_trees(data)
    game = game_to_review(read_sgf(piece))
    return review_of("game", game, figures_of(game.played, leads), MEANS, **more), tree
