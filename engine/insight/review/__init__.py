"""Reviews: what a search says of every position of a game, what each move cost, and the files that tell people."""
