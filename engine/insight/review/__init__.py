"""Reviews of games: analyses of all positions, losses of all moves, and the files that show them."""
