"""The GTP commands, one family a file.

To add one, write a function in the family's file and register it there; its parameters are the command's arguments
and its docstring the help. Nothing here imports the board at module level: it would delay the first answers.
"""

from gtp.commands import (
    analysis,
    benchmark,
    board,
    core,
    endgame,
    estimate,
    files,
    gogui,
    legality,
    params,
    play,
    raw,
    rules,
    time,
)
from gtp.commands import gogui_pictures as pictures
from gtp.protocol import Registry

COMMANDS = Registry(
    core.COMMANDS, board.COMMANDS, rules.COMMANDS, play.COMMANDS, time.COMMANDS, endgame.COMMANDS, files.COMMANDS,
    raw.COMMANDS, params.COMMANDS, legality.COMMANDS, estimate.COMMANDS, analysis.COMMANDS, gogui.COMMANDS,
    pictures.COMMANDS, benchmark.COMMANDS,
)  # fmt: skip
