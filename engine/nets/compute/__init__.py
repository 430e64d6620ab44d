"""How networks are computed on processors and GPUs."""
