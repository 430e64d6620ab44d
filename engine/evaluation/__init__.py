"""How good a finished network is."""
