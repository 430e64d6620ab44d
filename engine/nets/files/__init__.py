"""Network files: ours, Leela Zero's, and how any of them is told and read."""
