"""Evaluating positions in batches: request arrays, the result cache and the server's threads."""
