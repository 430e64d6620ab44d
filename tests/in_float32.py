"""The command `keima` in float32, also where the processor has instructions for 16 bits, which round otherwise.

For results that are compared with another program's, or a part's with the whole's.
"""

import sys

IN_FLOAT32 = (
    *(sys.executable, "-P", "-c"),
    "import sys; from engine.nets.compute import by_torch, precision; "
    "by_torch.prefers_bfloat16 = precision.prefers_bfloat16 = lambda device: False; "
    "from gtp.cli import main; main(sys.argv[1:])",
)
"""What a command line begins with; ``PYTHONPATH`` says where the sources lie if it does not start there"""
