"""The reliability campaign: fuzzing, faults, kills, clocks, damaged files, memory growth."""
