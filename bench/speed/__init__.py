"""How fast everything is: one JSON line a figure."""
