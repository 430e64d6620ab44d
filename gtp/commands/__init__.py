"""The GTP commands, one family a file.

A command is a function registered in its family's file; its parameters are the command's arguments, its docstring is
the help. Nothing here imports the board at module level, which would delay the first answers.
"""

from gtp.commands import analysis, board, core, gogui, params, play, position, time
from gtp.protocol import Registry

COMMANDS = Registry(*(family.COMMANDS for family in (core, board, play, time, position, params, analysis, gogui)))
