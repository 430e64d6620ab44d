"""Games made up for tests."""

from engine.go.sgf import read_sgf
from engine.records.games import Games
from engine.records.sgf_records import row_of, to_games


def games_of(*texts: str) -> Games:
    """Games from SGF."""
    return to_games([row_of(read_sgf(text.encode())) for text in texts])
