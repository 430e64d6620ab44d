"""The game of Go: board, rules, game record, text and SGF. No torch, no search.

In all kernels a *board* is a :class:`engine.go.board.Board`, a *position* a :class:`engine.go.position.Position`; a
*point* is an int, ``PASS`` (0) for a pass, a *color* ``BLACK`` or ``WHITE``, a *chain* the point of its head stone.
``L`` is the number of cells, ``cell_count(size)``; *policy order* is that of :mod:`engine.go.geometry`. Threads: a
kernel changes only its arguments, so arguments that belong to one thread need no lock.
"""
