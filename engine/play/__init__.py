"""One player of one game: moves, clock, passing, resignation."""
