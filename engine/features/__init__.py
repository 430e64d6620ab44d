"""Encoders: a position becomes a network's input planes."""
