"""Analyses, reviews and pictures of positions, for users and their programs."""
