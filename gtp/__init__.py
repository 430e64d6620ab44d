"""The front end: Go Text Protocol on standard input and output, and the command line ``keima``.

Reading route: ``protocol.py`` (lines, replies, the registry of commands), ``session.py`` (the running process),
``commands/`` (the GTP commands), ``json/`` (``keima analysis``), ``cli/`` (the command line). Nothing outside ``cli/``
and ``json/`` imports NumPy, Numba or torch at module level: a client's first commands are answered before these three
are loaded.
"""
