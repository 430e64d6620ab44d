"""Measurements of strength, speed and reliability, and matches between GTP engines; most modules are commands."""
