"""Games in bulk, and positions labelled in bulk."""
