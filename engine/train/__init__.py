"""Training: batches of positions, one loop for every network, checkpoints that resume."""
