"""The game itself: board, rules, game record, text and SGF. No torch, no search."""
