"""Games played to the end by fast random moves: their results and who owned what."""
