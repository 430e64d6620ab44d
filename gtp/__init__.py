"""The front end: Go Text Protocol on standard input and output, and the command line ``keima``.

Reading route: ``protocol.py`` (lines, replies, the registry of commands), ``session.py`` (the running process),
``commands/`` (what the commands do), ``cli/`` (how it is started, and the other commands of ``keima``). Nothing outside
``cli/`` imports NumPy, Numba or torch at module level: the protocol's first questions are answered before those are
loaded.
"""
