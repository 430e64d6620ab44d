"""What the library gives to kernels: plain integers, since each other type would be compiled and cached anew."""

import subprocess
import sys

SCRIPT = """
import sys
import numpy as np
import keima
from engine.system.jit import _Kernel

board = keima.Board.from_stones(9, ["E5"], ["C3", "C4"], keima.WHITE, captured=(1, 0))
for move, color in (("G7", keima.WHITE), ((0, 0), keima.BLACK), (np.int64(12), None), ("pass", keima.WHITE)):
    board.is_legal(move, color)
    board.play(move, color)
board.legal_mask(keima.BLACK), board.legal_moves, board.captures(keima.WHITE), board.score(dead=["E5"])
board.chain("C3"), board.liberties("C3"), board.color_at("C3"), hash(board), board.copy(), board.undo()
board.rules, board.komi = "japanese", 6.5
keima.Board.from_text(str(board), keima.WHITE)
record = keima.Record(board)
record.root.play("A9", keima.BLACK).time_left = {keima.BLACK: 3.0}
with keima.Engine("small", seed=1, threads=1) as engine:
    engine.play(board, keima.Limit(visits=4), avoid=["E5"])
    engine.analyse([board, keima.Board(7)], keima.Limit(visits=4), allow=["D4", "pass"])
    engine.estimate(board), engine.tree
    engine.network.evaluate([board])
modules = [module for name, module in list(sys.modules.items()) if name.startswith("engine.")]
kernels = {id(one): one for module in modules for one in vars(module).values() if isinstance(one, _Kernel)}
for kernel in kernels.values():
    for signature in kernel.overloads:
        if "Enum" in str(signature) or "keima" in str(signature):
            print(kernel.py_func.__qualname__, signature)
"""


def test_no_kernel_is_compiled_for_a_colour_of_the_library():
    """The cache would then hold ``keima.Color``, and be of no use to a program that does not import it."""
    found = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert found.stdout == ""
