"""What the engine asks of the machine it runs on: compiled kernels, and files that outlive a crash."""
