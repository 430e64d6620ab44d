"""The tree search: select, evaluate, expand, back up; and choosing a move from what it found."""
