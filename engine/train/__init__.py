"""Training: records to positions, one loop for every network, checkpoints that resume."""
