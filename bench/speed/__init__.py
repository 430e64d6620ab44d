"""Speed benchmarks: each prints one JSON line a figure."""
