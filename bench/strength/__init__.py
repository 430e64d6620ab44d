"""Strength: self-matches with different options, regret of moves, test suites, scoring of finished games."""
