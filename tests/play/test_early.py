"""The game before there is a board: what it accepts and refuses is what the game with a board does, and becomes it."""

import random

import pytest

from engine.go.geometry import BLACK, PASS, WHITE
from engine.go.rules import RULE_SETS
from engine.play.early import EarlySession
from engine.play.game_session import GameSession, begun


def said(session, name, *arguments):
    """What a method answers, or how it refuses."""
    try:
        return getattr(session, name)(*arguments)
    except ValueError as error:
        return f"refused: {error}"


def change(random_, size):
    """A change of the game, most often a move, which may be illegal."""
    points = [random_.randrange(-1, (size + 1) * (size + 2) + 2) for _ in range(random_.randrange(5))]
    kind = random_.random()
    if kind < 0.9:
        return "play", random_.choice((BLACK, WHITE)), random_.choice([PASS, *range(1, (size + 1) * (size + 2))])
    return random_.choice(
        [
            ("undo",),
            ("undo",),
            ("new_game", random_.choice([size, size, 1, 26, 30])),
            ("set_komi", random_.choice([0.5, 6.25, -3.0])),
            ("set_rules", RULE_SETS[random_.choice(["japanese", "tromp-taylor", "aga"])]),
            ("set_up", points[::2], points[1::2], WHITE),
            ("fixed_handicap", random_.randrange(10)),
            ("place_free_handicap", random_.randrange(size * size + 2)),
            ("set_free_handicap", points),
        ]
    )


def state(session):
    """All that a session knows of its game."""
    game = session.game
    known = (game.size, game.komi, game.rules, game.n_moves, game.to_move, game.start_to_move)
    return (*known, game.start_stones(), game.moves())


@pytest.mark.parametrize("seed", range(40))
def test_it_accepts_and_refuses_what_the_game_with_a_board_does(seed):
    random_ = random.Random(seed)
    size = random_.choice([2, 3, 4, 7])
    early, session = EarlySession(size), GameSession(size)
    for _ in range(400):
        wanted = change(random_, size)
        assert said(early, *wanted) == said(session, *wanted), wanted
        assert state(early) == state(session)
    later = begun(early)
    assert state(later) == state(session) and later.clock is early.clock
    ours, theirs = later.game.position, session.game.position
    assert (ours.board.color == theirs.board.color).all() and (ours.meta == theirs.meta).all()
    assert (ours.rules == theirs.rules).all() and ours.board.hash[0] == theirs.board.hash[0]
    assert (ours.hashes[: later.game.n_moves + 1] == theirs.hashes[: later.game.n_moves + 1]).all()
