"""What the engine asks of the machines it runs on: compiled kernels, files that outlive a crash, work done by many."""
