"""Rollouts: fast games to the end by uniformly random moves or local patterns; ownership from them."""
