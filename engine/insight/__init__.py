"""What the engine thinks of a position, for people who look at it."""
