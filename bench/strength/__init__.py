"""How well the engine plays, and whether a change of its options is felt."""
