"""The GTP commands, one family a file.

To add one, write a function in the family's file and register it there; its parameters are the command's arguments
and its docstring the help. Nothing here imports the board at module level: it would delay the first answers.
"""

from gtp.commands import analysis, board, core, gogui, params, play, position, time
from gtp.protocol import Registry

COMMANDS = Registry(*(family.COMMANDS for family in (core, board, play, time, position, params, analysis, gogui)))
