"""Robustness: invalid input, sent to the real process."""
