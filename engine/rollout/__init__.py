"""Rollouts: fast games played to the end by random moves or a pattern policy, and estimates of ownership from them."""
