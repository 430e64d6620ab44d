"""Games in bulk, and positions judged in bulk."""
