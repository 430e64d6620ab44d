"""Metrics of finished networks on held-out positions, and Elo ratings from games."""
