"""A live engine for programs that show or use Keima: one player in its own thread, and the record of a game."""
