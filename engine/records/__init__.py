"""Game records: from the files people have to packed shards, and back onto the board."""
